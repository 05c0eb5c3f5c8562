import LLSockets
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
    private static let key = "X-Api-Key: secret"
    private static let form = "Content-Type: application/x-www-form-urlencoded"

    private static func service(
        minters: [TokenMinter] = [StandInKeys.current],
        gateway: GatewaySettings = GatewaySettings()
    ) async throws -> InProcessService {
        let keys = try ClientKeys(parsing: Array("backend \(ClientKeysTests.secret)".utf8), place: "clients")
        return try await InProcessService(minters: minters, clients: keys, gateway: gateway)
    }

    private static func lookups(_ service: InProcessService) -> [Int] {
        ["hit", "miss"].map { result in
            let prefix = "limited_login_signature_cache_lookups_total{result=\"\(result)\"} "
            let line = service.registry.render().split(separator: "\n").first { $0.hasPrefix(prefix) }
            return line.flatMap { Int($0.dropFirst(prefix.count)) } ?? -1
        }
    }

    private static func auth(_ service: InProcessService, _ token: String, _ query: String = "") throws -> TestResponse
    {
        try service.answer("GET", "/auth\(query)", fields: ["Authorization: Bearer \(token)"])
    }

    @Test("/auth and /introspect share the remembered signatures and count the lookups; /verify does not use them")
    func counted() async throws {
        let service = try await Self.service()
        let token = try Tokens.mint(Tokens.claims())
        #expect(Self.lookups(service) == [0, 0])
        for _ in 0..<2 {
            let answer = try service.answer(
                fields: ["Content-Type: application/json", Self.key],
                body: "{\"id_token\":\"\(token)\",\"nonce\":\"n-1\"}"
            )
            #expect(answer.status == 200)
        }
        #expect(Self.lookups(service) == [0, 0])
        #expect(try Self.auth(service, token).status == 200)
        #expect(Self.lookups(service) == [0, 1])
        #expect(try Self.auth(service, token).status == 200)
        #expect(Self.lookups(service) == [1, 1])
        let introspected = try service.introspect("token=\(token)")
        #expect(introspected.text.hasPrefix("{\"active\":true"))
        #expect(Self.lookups(service) == [2, 1])
    }

    @Test("A remembered token is still checked against each request's demand, app and settings")
    func judgedAnew() async throws {
        let service = try await Self.service()
        let token = try Tokens.mint(Tokens.claims())
        #expect(try Self.auth(service, token).status == 200)
        #expect(try Self.auth(service, token, "?permissions=email").status == 403)
        #expect(try Self.auth(service, token, "?app_id=42").code == "invalid_audience")
        #expect(try Self.auth(service, String(token.dropLast())).status == 401)
        #expect(try Self.auth(service, token).status == 200)
        service.core.settings.publish(
            RuntimeSettings(
                verifier: TokenVerifier(policy: try VerificationPolicy(appIDs: ["42"])),
                clients: nil,
                gateway: GatewaySettings()
            )
        )
        #expect(try Self.auth(service, token).code == "invalid_audience")
        let hits = Self.lookups(service)[0]
        #expect(hits == 4)
    }

    @Test("A remembered token gets the same answers as a new one, with every claim and with few")
    func sameAnswers() async throws {
        let all = AuthField.claims.enumerated().map { "X-\($0)=\($1.name)" }
        var claims = Tokens.claims()
        claims.name = "Анна Zoë"
        (claims.email, claims.picture, claims.givenName) = ("anna@example.com", "https://example.com/%20?a=1", "Анна")
        claims.confirmationThumbprint = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
        for token in [try Tokens.mint(Tokens.claims()), try Tokens.mint(claims)] {
            for list in [all, ["X-Name=name"], ["X-Exp=exp"]] {
                let fields = try list.map { try AuthField($0) }
                let service = try await Self.service(gateway: GatewaySettings(fields: fields))
                let answers = try (0..<3).map { _ in try Self.auth(service, token) }
                for answer in answers {
                    #expect(answer.status == 200)
                    for field in fields {
                        #expect(answer[field.name.lowercased()] == answers[0][field.name.lowercased()])
                    }
                }
                let texts = try (0..<3).map { _ in
                    try service.introspect("token=\(token)")
                        .text
                }
                #expect(texts[0].hasPrefix("{\"active\":true") && Set(texts).count == 1)
                let unseen = try await Self.service()
                let first = try unseen.introspect("token=\(token)")
                #expect(texts[0] == first.text)
            }
        }
    }

    @Test("A remembered token is refused after its login is revoked")
    func revoked() async throws {
        let service = try await Self.service()
        let token = try Tokens.mint(Tokens.claims(issuedAt: WallClock.unixSeconds() - 5))
        for _ in 0..<2 { #expect(try Self.auth(service, token).status == 200) }
        let (app, user) = (Array(InProcessService.appID.utf8), Array("2954873201847263".utf8))
        service.core.revocations.revoke(app: app.span, user: user.span, at: WallClock.unixSeconds()) { _ in }
        for _ in 0..<2 { #expect(try Self.auth(service, token).code == "login_revoked") }
        #expect(Self.lookups(service) == [3, 1])
    }

    @Test("A new key set without the key, or with another key under its ID, ends a remembered token at once")
    func otherKeys() async throws {
        let impostor = TokenMinter(key: StandInKeys.stranger.key, keyID: StandInKeys.current.keyID)
        let service = try await Self.service(minters: [StandInKeys.current, StandInKeys.previous])
        let token = try Tokens.mint(Tokens.claims())
        for _ in 0..<2 { #expect(try Self.auth(service, token).status == 200) }
        service.source.publish([impostor, StandInKeys.previous])
        _ = await service.cache.refresh()
        for _ in 0..<2 { #expect(try Self.auth(service, token).code == "invalid_signature") }
        service.source.publish([StandInKeys.current, StandInKeys.previous])
        _ = await service.cache.refresh()
        #expect(try Self.auth(service, token).status == 200)
    }
}
