import FoundationEssentials
import LLHTTP
import LLTestSupport
import Logging
import Testing

@testable import LLService

@Suite("The audit of /auth, /verify and /token", .live)
struct AuditTrailTests {
    private static let traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
    private static let person = WorkerContext.hash(appID: InProcessService.appID, userID: "2954873201847263")

    /// A service, and the JSON lines that its audit writes.
    private static func service() async throws -> (InProcessService, Locked<[String]>) {
        let (logger, lines) = lineLogger(.info)
        let service = try await InProcessService(
            clients: ClientKeysTests.backend(),
            gatewayIsEnabled: true,
            auditLogger: logger,
            tokens: OwnTokens.settings()
        )
        return (service, lines)
    }

    /// The lines since the last call.
    private static func take(_ lines: Locked<[String]>) throws -> [[String: String]] {
        let all = lines.withLock { lines in
            defer { lines = [] }
            return lines
        }
        return try all.map { try JSONDecoder().decode([String: String].self, from: Data($0.utf8)) }
    }

    private static func token() throws -> String {
        var claims = Tokens.claims()
        (claims.name, claims.email) = ("Jane Quinn Doe", "jane.doe@example.com")
        return try Tokens.mint(claims)
    }

    private static let json = ["Content-Type: application/json", "X-Api-Key: secret", "X-Request-Id: r-1"]

    @Test("An accepted token writes one line on each route, with the same hash for the same person")
    func accepted() async throws {
        let (service, lines) = try await Self.service()
        let token = try Self.token()
        let fields = Self.json + ["traceparent: 00-\(Self.traceID)-00f067aa0ba902b7-01"]
        let body = "{\"id_token\":\"\(token)\",\"nonce\":\"n-1\"}"
        #expect(try service.answer(fields: fields, body: body).status == 200)
        let verified = try #require(try Self.take(lines).first)
        for (name, text) in [
            ("message", "audit"), ("route", "/verify"), ("method", "POST"), ("outcome", "accepted"),
            ("request_id", "r-1"), ("trace_id", Self.traceID), ("user", Self.person),
        ] { #expect(verified[name] == text, "\(name)") }
        let bearer = ["Authorization: bearer   \(token)", "X-Request-Id: r-2"]
        #expect(try service.answer("GET", "/auth/a?original=/b", fields: bearer).status == 200)
        let found = try Self.take(lines)
        #expect(found.count == 1 && found.first?["user"] == Self.person)
        #expect(found.first?["route"] == "/auth" && found.first?["request_id"] == "r-2")
    }

    @Test("A refusal writes one line with its code and without a hash; other routes write none")
    func refused() async throws {
        let (service, lines) = try await Self.service()
        let expired = "Bearer \(try Tokens.mint(Tokens.claims(issuedAt: WallClock.unixSeconds() - 10_000)))"
        let form = "Content-Type: application/x-www-form-urlencoded"
        let cases: [(method: String, target: String, fields: [String], body: String, code: String?)] = [
            ("GET", "/auth", ["Authorization: \(expired)"], "", "expired"),
            ("GET", "/auth?x=1", ["Authorization: \(expired)"], "", "invalid_request"),
            ("GET", "/auth", [], "", "missing_token"), ("GET", "/verify", [], "", "method_not_allowed"),
            ("POST", "/verify", Self.json, #"{"id_token":"a.b.c","nonce":"n"}"#, "malformed_token"),
            ("POST", "/verify", Self.json, "{", "invalid_request"),
            ("POST", "/verify", ["Content-Type: application/json"], "{}", "unauthorized_client"),
            ("GET", "/livez", [], "", nil), ("GET", "/nowhere", [], "", nil),
            ("POST", "/introspect", [form, "X-Api-Key: secret"], "token=\(try Self.token())", nil),
        ]
        for (method, target, fields, body, code) in cases {
            _ = try service.answer(method, target, fields: fields, body: body)
            let found = try Self.take(lines)
            #expect(found.map { $0["outcome"] } == (code.map { [$0] } ?? []), "\(method) \(target)")
            #expect(found.first?["user"] == nil)
        }
    }

    @Test("No line holds a token, a nonce, a name, an e-mail address or the user's id")
    func nothingPersonal() async throws {
        let (service, lines) = try await Self.service()
        let token = try Self.token()
        for nonce in ["n-1", "another-nonce"] {
            _ = try service.answer(fields: Self.json, body: "{\"id_token\":\"\(token)\",\"nonce\":\"\(nonce)\"}")
        }
        for (query, token) in [("?permissions=user_birthday", token), ("", token), ("", String(token.dropLast(3)))] {
            _ = try service.answer("GET", "/auth\(query)", fields: ["Authorization: Bearer \(token)"])
        }
        let text = lines.withLock { $0.joined() }
        #expect(text.split(separator: "\n").count == 5)
        let parts = token.split(separator: ".").map { String($0.prefix(16)) }
        for secret in parts + ["n-1\"", "another-nonce", "Jane", "Doe", "jane.doe", "example.com", "2954873201847263"] {
            #expect(!text.contains(secret), "\(secret)")
        }
    }
}
