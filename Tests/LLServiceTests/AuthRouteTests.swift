import LLHTTP
import LLStandIn
import LLTestSupport
import LimitedLogin
import LimitedLoginKeys
import Testing

@testable import LLService

@Suite("/auth: the gateway's subrequest", .live)
struct AuthRouteTests {
    private static func bearer(_ token: String) -> [String] { ["Authorization: Bearer \(token)"] }

    private static func rich() -> MintedClaims {
        var claims = Tokens.claims()
        claims.email = "jane@example.com"
        return claims
    }

    @Test("A good token is exactly 200 with its facts in fields, without a binding and without a caller's key")
    func accepted() async throws {
        let service = try await InProcessService(clients: ClientKeysTests.backend(), gatewayIsEnabled: true)
        #expect(try service.answer("GET", "/auth", fields: ["X-Api-Key: secret"]).status == 401)
        let token = try Tokens.mint(Self.rich())
        let forged = ["X-Auth-Subject: 1", "X-Auth-Email: root@example.com"]
        let answer = try service.answer("GET", "/auth", fields: Self.bearer(token) + forged)
        #expect(answer.status == 200 && answer["x-auth-subject"] == "2954873201847263")
        #expect(answer["x-auth-audience"] == InProcessService.appID)
        #expect(Int64(answer["x-auth-expires"] ?? "").map { $0 > WallClock.unixSeconds() } == true)
        #expect(answer["x-auth-email"] == "jane@example.com" && answer["cache-control"] == "no-store")
        #expect(answer.fields.count { $0.name.hasPrefix("x-auth-") } == 4 && answer.body.isEmpty)
    }

    @Test("Every method and every path below /auth is judged alike")
    func methodsAndPaths() async throws {
        let service = try await InProcessService(gatewayIsEnabled: true)
        let token = Self.bearer(try Tokens.mint(Tokens.claims()))
        for (method, path) in [
            ("HEAD", "/auth"), ("POST", "/auth"), ("PUT", "/auth/"), ("DELETE", "/auth/orders/7"), ("REPORT", "/auth"),
            ("PATCH", "/auth/a?original&b=c"), ("OPTIONS", "/auth"), ("TRACE", "/auth/x"), ("GET", "/auth/verify"),
            ("PROPFIND", "/auth/../verify"),
        ] {
            #expect(try service.answer(method, path, fields: token).status == 200, "\(method) \(path)")
            #expect(try service.answer(method, path, fields: []).status == 401, "\(method) \(path)")
        }
    }

    @Test("/auth does not exist unless it is configured, nor at another listener or a path that only begins like it")
    func otherPaths() async throws {
        let service = try await InProcessService(gatewayIsEnabled: true)
        for path in ["/authorize", "/auth%2f", "/Auth", "/auth.json"] {
            #expect(try service.answer("GET", path, fields: []).status == 404)
        }
        let administration = try await InProcessService(listener: .administration, gatewayIsEnabled: true)
        let disabled = try await InProcessService()
        let fields = Self.bearer(try Tokens.mint(Tokens.claims()))
        for (service, path) in [(administration, "/auth"), (disabled, "/auth"), (disabled, "/auth/x")] {
            #expect(try service.answer("GET", path, fields: fields).status == 404)
        }
    }

    @Test("Without one bearer token the challenge names no error")
    func missing() async throws {
        let service = try await InProcessService(gatewayIsEnabled: true)
        for fields in [
            [], ["Authorization: Basic dTpw"], ["Authorization: Bearer"], ["Authorization: Bearer "],
            ["Authorization: Bearer a.b.c", "Authorization: Bearer a.b.c"], ["X-Api-Key: a.b.c"],
        ] {
            let answer = try service.answer("GET", "/auth", fields: fields)
            #expect(answer.status == 401 && answer.code == "missing_token", "\(fields)")
            #expect(answer["www-authenticate"] == "Bearer realm=\"limited-login\"")
        }
    }

    @Test("A bad token is 401 with error=invalid_token and no exported field")
    func refused() async throws {
        let service = try await InProcessService(gatewayIsEnabled: true)
        let expired = try Tokens.mint(Tokens.claims(issuedAt: WallClock.unixSeconds() - 10_000))
        let header = Array(#"{"alg":"RS256","kid":"k","crit":["x"],"x":1}"#.utf8)
        let critical = try StandInKeys.current.mint(header: header, payload: Array("{}".utf8))
        for (token, code) in [
            (expired, "expired"), (critical, "unsupported_critical_header"),
            ("EAABwzLixnjYBO0123456789", "not_an_id_token"),
        ] {
            let answer = try service.answer("GET", "/auth", fields: Self.bearer(token))
            #expect(answer.status == 401 && answer.code == code)
            #expect(answer["www-authenticate"] == "Bearer error=\"invalid_token\", code=\"\(code)\"")
            #expect(answer["x-auth-subject"] == nil)
        }
    }

    @Test("With ?optional=true a request without credentials passes without a person; anything that is there is judged")
    func optional() async throws {
        let service = try await InProcessService(gatewayIsEnabled: true)
        for path in ["/auth?optional=true", "/auth/a?optional=true&original=/b?c=d&permissions=email"] {
            let answer = try service.answer("GET", path, fields: ["X-Auth-Subject: forged"])
            #expect(answer.status == 200 && !answer.text.lowercased().contains("x-auth-"), "\(answer.text)")
            let good = Self.bearer(try Tokens.mint(Self.rich()))
            #expect(try service.answer("GET", path, fields: good)["x-auth-subject"] != nil)
            for fields in [
                Self.bearer("a.b.c"), ["Authorization:"], ["Authorization: Bearer"], ["DPoP: a"], good + good,
                ["Authorization: Basic dTpw"],
            ] { #expect(try service.answer("GET", path, fields: fields).status == 401, "\(fields)") }
        }
        for query in ["optional=false", "optional", "Optional=true", "original&optional=true", "optional=true&x"] {
            #expect(try service.answer("GET", "/auth?\(query)", fields: []).status == 401, "\(query)")
        }
        // A demand is no part of an optional login: the gateway's mistake opens nothing.
        let token = Self.bearer(try Tokens.mint(Self.rich()))
        for demand in ["permissions=email", "app_id=\(InProcessService.appID)", "optional=true"] {
            for query in ["optional=true&\(demand)", "\(demand)&optional=true"] {
                #expect(try service.answer("GET", "/auth?\(query)", fields: []).status == 401, "\(query)")
                let code = try service.answer("GET", "/auth?\(query)", fields: token).code
                #expect(code == "invalid_request", "\(query)")
            }
        }
        #expect(!service.registry.render().contains(#"credential="id_token",result="accepted"} 3"#))
    }

    @Test("A permission that the token does not show is 403 insufficient_scope")
    func permissions() async throws {
        let service = try await InProcessService(gatewayIsEnabled: true)
        let token = Self.bearer(try Tokens.mint(Self.rich()))
        for query in [
            "permissions=email", "permissions=email&permissions=user_birthday", "", "&",
            "permissions=email&original=/a?b=c&permissions=user_birthday&app_id=9&x=1", "original", "original&x",
        ] { #expect(try service.answer("GET", "/auth?\(query)", fields: token).status == 200, "\(query)") }
        let answer = try service.answer("GET", "/auth?permissions=email,user_birthday", fields: token)
        #expect(answer.status == 403 && answer.code == "insufficient_scope")
        #expect(answer["www-authenticate"] == "Bearer error=\"insufficient_scope\", scope=\"email user_birthday\"")
        for query in [
            "permissions=email%20user_birthday", "permissions=user_birthday+email", "permissions=user_likes",
            "permissions=user_messenger_contact", "permissions=user_birthday&permissions=email",
            "permissions=user_birthday&original=/a", "permissions=", "permissions", "permissions=%20,",
            "permissions=&permissions=email", "permissions=&original",
        ] { #expect(try service.answer("GET", "/auth?\(query)", fields: token).status == 403, "\(query)") }
    }

    @Test("An unknown or misspelt parameter would demand nothing, so it is refused before any token is accepted")
    func unknownParameter() async throws {
        let service = try await InProcessService(gatewayIsEnabled: true)
        let token = Self.bearer(try Tokens.mint(Self.rich()))
        for query in [
            "x=1", "permission=email", "Permissions=email", "permissions=email&x", "=email", "originals=/a",
            "x&original=/a", "app-id=42", "permissions%20=email",
        ] {
            let answer = try service.answer("GET", "/auth?\(query)", fields: token)
            #expect(answer.status == 400 && answer.code == "invalid_request", "\(query)")
            #expect(answer["x-auth-subject"] == nil, "\(query)")
        }
    }

    @Test("An app id in the query narrows the configured ones; another app id is 403, not 401")
    func appID() async throws {
        let service = try await InProcessService(gatewayIsEnabled: true)
        let token = Self.bearer(try Tokens.mint(Tokens.claims()))
        #expect(try service.answer("GET", "/auth?app_id=\(InProcessService.appID)", fields: token).status == 200)
        let narrowed = try service.answer("GET", "/auth?app_id=42", fields: token)
        #expect(narrowed.status == 401 && narrowed.code == "invalid_audience")
        for query in ["app_id=43", "app_id=", "app_id", "app_id=43&app_id=42"] {
            #expect(try service.answer("GET", "/auth?\(query)", fields: token).status == 403, "\(query)")
        }
    }

    @Test("An outage of the keys is 503, never 401, and a token with a new key waits for the next fetch")
    func outage() async throws {
        let down = try await InProcessService(minters: nil, gatewayIsEnabled: true)
        _ = await down.cache.refresh()
        let token = Self.bearer(try Tokens.mint(Tokens.claims()))
        let answer = try down.answer("GET", "/auth", fields: token)
        #expect(answer.status == 503 && answer["retry-after"] != nil && answer["www-authenticate"] == nil)
        let rotating = try await InProcessService(minters: [StandInKeys.previous], gatewayIsEnabled: true)
        rotating.source.publish([StandInKeys.current])
        #expect(try rotating.send("GET", "/auth", fields: token).isParked)
        _ = await rotating.cache.refresh()
        #expect(try rotating.send("GET", "/auth", fields: token, visit: .woken).response().status == 200)
    }
}
