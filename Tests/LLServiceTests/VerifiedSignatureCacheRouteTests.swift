import LLHTTP
import LLStandIn
import LLStores
import LLTestSupport
import LimitedLogin
import LimitedLoginKeys
import Testing

@testable import LLService

/// The tests of VerifiedSignatureCacheTests through the whole service. One handler is one worker.
@Suite("Remembered signatures at /auth and /introspect", .live)
struct VerifiedSignatureCacheRouteTests {
    private static func lookups(_ service: InProcessService) -> [Int] {
        ["hit", "miss"].map { result in
            let prefix = "limited_login_signature_cache_lookups_total{result=\"\(result)\"} "
            let line = service.registry.render().split(separator: "\n").first { $0.hasPrefix(prefix) }
            return line.flatMap { Int($0.dropFirst(prefix.count)) } ?? -1
        }
    }

    @Test("/auth and /introspect share the remembered signatures and count the lookups; /verify does not use them")
    func counted() async throws {
        let keys = try ClientKeys(parsing: Array("backend \(ClientKeysTests.secret)".utf8), place: "clients")
        let service = try await InProcessService(clients: keys, gatewayIsEnabled: true)
        let token = try Tokens.mint(Tokens.claims())
        let body = "{\"id_token\":\"\(token)\",\"nonce\":\"n-1\"}"
        for _ in 0..<2 {
            let fields = ["Content-Type: application/json", "X-Api-Key: secret"]
            #expect(try service.answer(fields: fields, body: body).status == 200)
        }
        #expect(Self.lookups(service) == [0, 0])
        for hits in 0..<2 {
            #expect(try service.answer("GET", "/auth", fields: ["Authorization: Bearer \(token)"]).status == 200)
            #expect(Self.lookups(service) == [hits, 1])
        }
        let introspected = try service.introspect("token=\(token)")
        #expect(introspected.text.hasPrefix("{\"active\":true"))
        #expect(Self.lookups(service) == [2, 1])
        // What the caller says about the login is compared each time.
        for (more, isActive) in [
            ("nonce=other", false), ("raw_nonce=n-1", false), ("subject=1", false), ("app_id=42", false),
            ("nonce=n-1", true), ("subject=2954873201847263", true),
        ] {
            let text = try service.introspect("token=\(token)&\(more)").text
            #expect(text.hasPrefix("{\"active\":\(isActive)"), "\(more): \(text)")
        }
    }
}
