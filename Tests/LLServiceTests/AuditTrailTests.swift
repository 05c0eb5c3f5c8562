import FoundationEssentials
import LLHTTP
import LLStandIn
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
        let lines = Locked<[String]>([])
        let level = LogLevelSwitch(.critical)
        var logger = Logger(label: "audit") { label in
            LineLogHandler(label: label, level: level, format: .json) { line in
                lines.withLock { $0.append(String(decoding: line, as: UTF8.self)) }
            }
        }
        logger.logLevel = .info
        let keys = try ClientKeys(parsing: Array("backend \(ClientKeysTests.secret)".utf8), place: "clients")
        let service = try await InProcessService(
            clients: keys,
            gatewayIsEnabled: true,
            auditLogger: logger,
            tokens: try OwnTokens.settings()
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
        claims.name = "Jane Quinn Doe"
        claims.email = "jane.doe@example.com"
        return try Tokens.mint(claims)
    }

    private static let json = ["Content-Type: application/json", "X-Api-Key: secret", "X-Request-Id: r-1"]

    @Test("An accepted token writes one line on each route, with the same hash for the same person")
    func accepted() async throws {
        let (service, lines) = try await Self.service()
        let token = try Self.token()
        let body = "{\"id_token\":\"\(token)\",\"nonce\":\"n-1\"}"
        let trace = "traceparent: 00-\(Self.traceID)-00f067aa0ba902b7-01"
        #expect(try service.answer(fields: Self.json + [trace], body: body).status == 200)
        let verified = try #require(try Self.take(lines).first)
        for (name, text) in [
            ("message", "audit"), ("route", "/verify"), ("method", "POST"), ("outcome", "accepted"),
            ("request_id", "r-1"),
            ("trace_id", Self.traceID), ("user", Self.person),
        ] { #expect(verified[name] == text, "\(name)") }
        for field in ["Authorization: Bearer \(token)", "Authorization: bearer   \(token)"] {
            #expect(
                try service.answer("GET", "/auth/a?original=/b", fields: [field, "X-Request-Id: r-2"]).status == 200
            )
            let found = try Self.take(lines)
            #expect(found.count == 1 && found.first?["user"] == Self.person)
            #expect(found.first?["route"] == "/auth" && found.first?["request_id"] == "r-2")
        }
    }

    @Test("A refusal writes one line with its code and without a hash, on every route")
    func refused() async throws {
        let (service, lines) = try await Self.service()
        let expired = try Tokens.mint(Tokens.claims(issuedAt: WallClock.unixSeconds() - 10_000))
        let cases: [(() throws -> TestResponse, String)] = [
            ({ try service.answer("GET", "/auth", fields: ["Authorization: Bearer \(expired)"]) }, "expired"),
            (
                { try service.answer("GET", "/auth?x=1", fields: ["Authorization: Bearer \(expired)"]) },
                "invalid_request"
            ),
            ({ try service.answer("GET", "/auth", fields: []) }, "missing_token"),
            (
                { try service.answer(fields: Self.json, body: "{\"id_token\":\"a.b.c\",\"nonce\":\"n\"}") },
                "malformed_token"
            ),
            ({ try service.answer(fields: Self.json, body: "{") }, "invalid_request"),
            ({ try service.answer(fields: ["Content-Type: application/json"], body: "{}") }, "unauthorized_client"),
            ({ try service.answer("GET", "/verify", fields: []) }, "method_not_allowed"),
        ]
        for (ask, code) in cases {
            #expect(try ask().code == code)
            let found = try Self.take(lines)
            #expect(found.count == 1 && found.first?["outcome"] == code && found.first?["user"] == nil)
        }
    }

    @Test("No line holds a token, a nonce, a name, an e-mail address or the user's id")
    func nothingPersonal() async throws {
        let (service, lines) = try await Self.service()
        let token = try Self.token()
        let bearer = ["Authorization: Bearer \(token)"]
        _ = try service.answer(fields: Self.json, body: "{\"id_token\":\"\(token)\",\"nonce\":\"n-1\"}")
        _ = try service.answer(fields: Self.json, body: "{\"id_token\":\"\(token)\",\"nonce\":\"another-nonce\"}")
        _ = try service.answer("GET", "/auth?permissions=user_birthday", fields: bearer)
        _ = try service.answer("GET", "/auth", fields: bearer)
        _ = try service.answer("GET", "/auth", fields: ["Authorization: Bearer \(token.dropLast(3))"])
        let text = lines.withLock { $0.joined() }
        #expect(text.split(separator: "\n").count == 5)
        let parts = token.split(separator: ".").map { String($0.prefix(16)) }
        for secret in parts + ["n-1\"", "another-nonce", "Jane", "Doe", "jane.doe", "example.com", "2954873201847263"] {
            #expect(!text.contains(secret), "\(secret)")
        }
    }

    @Test("Other routes write no line, and without the setting no route does")
    func others() async throws {
        let (service, lines) = try await Self.service()
        _ = try service.answer("GET", "/livez", fields: [])
        _ = try service.answer("GET", "/nowhere", fields: [])
        let form = ["Content-Type: application/x-www-form-urlencoded", "X-Api-Key: secret"]
        _ = try service.answer("POST", "/introspect", fields: form, body: "token=\(try Self.token())")
        #expect(try Self.take(lines).isEmpty)
    }
}
