import LLHTTP
import LLStandIn
import LLTestSupport
import LimitedLoginKeys
import Testing

@testable import LLService

@Suite("POST /introspect: RFC 7662", .live)
struct IntrospectRouteTests {
    private static let form = "Content-Type: application/x-www-form-urlencoded"
    private static let key = "Authorization: Bearer secret"

    private static func service(minters: [TokenMinter]? = [StandInKeys.current]) async throws -> InProcessService {
        try await InProcessService(minters: minters, clients: ClientKeysTests.backend())
    }

    @Test("A caller may present its key in the form (client_secret_post), but in one place only")
    func keyInForm() async throws {
        let service = try await Self.service()
        let token = try Tokens.mint(Tokens.claims())
        let cases: [(String, [String], Int, String)] = [
            ("client_id=backend&client_secret=secret", [], 200, "active"),
            ("client_id=back%65nd&client_secret=s%65cret", [], 200, "active"),
            ("client_id=backend", [Self.key], 200, "active"),
            ("client_id=backend&client_secret=wrong", [], 401, "invalid_client"),
            ("client_id=other&client_secret=secret", [], 401, "invalid_client"),
            ("client_secret=secret", [], 401, "invalid_client"), ("client_id=backend", [], 401, "invalid_client"),
            ("client_id=backend&client_secret=", [], 401, "invalid_client"), ("", [], 401, "invalid_client"),
            ("client_id=backend&client_secret=secret", [Self.key], 400, "invalid_request"),
            ("client_id=backend&client_secret=secret&client_secret=secret", [], 400, "invalid_request"),
            ("client_id=backend&client_secret=secret", ["Authorization: Bearer wrong"], 401, "invalid_client"),
        ]
        for (form, fields, status, word) in cases {
            let body = "token=\(token)&\(form)"
            let answer = try service.answer("POST", "/introspect", fields: [Self.form] + fields, body: body)
            #expect(answer.status == status, "\(form)")
            #expect(answer.text.contains("\"\(word)\""), "\(form): \(answer.text)")
            #expect((answer["www-authenticate"] != nil) == (status == 401), "\(form)")
        }
    }

    @Test("A problem also has OAuth's error and description")
    func oauthErrors() async throws {
        let service = try await Self.service()
        let answer = try service.introspect("token_type_hint=x")
        #expect(answer.status == 400)
        #expect(answer.text.contains(#""error":"invalid_request","error_description":""#), "\(answer.text)")
        let outage = try await Self.service(minters: nil)
        _ = await outage.cache.refresh()
        let token = try Tokens.mint(Tokens.claims())
        let unknown = try outage.introspect("token=\(token)")
        #expect(unknown.status == 503 && unknown.text.contains(#""error":"temporarily_unavailable""#))
        let verify = try service.answer("POST", "/verify", fields: [Self.key], body: "{}")
        #expect(!verify.text.contains("\"error\""))
    }

    @Test("A good token is active, with numeric times and the scope that its claims show")
    func active() async throws {
        let service = try await Self.service()
        var claims = Tokens.claims()
        claims.email = "jane@example.com"
        let token = try Tokens.mint(claims)
        let answer = try service.introspect("token=\(token)&token_type_hint=id_token&unknown=1")
        #expect(answer.status == 200 && answer["content-type"] == "application/json")
        #expect(answer["cache-control"] == "no-store")
        let body = answer.object
        #expect(body["active"] as? Bool == true && body["email_verified"] as? Bool == false)
        for (name, text) in [
            ("sub", "2954873201847263"), ("aud", InProcessService.appID), ("client_id", InProcessService.appID),
            ("iss", "https://www.facebook.com"), ("scope", "email"), ("email", "jane@example.com"),
            ("jti", claims.tokenID),
        ] { #expect(body[name] as? String == text, "\(name)") }
        #expect(body["iat"] as? Int64 == claims.issuedAt && body["exp"] as? Int64 == claims.expiresAt)
    }

    @Test("Any bad token is inactive, and the answer says nothing more")
    func inactive() async throws {
        let service = try await Self.service()
        let good = try Tokens.mint(Tokens.claims())
        let bodies = [
            "token=x", "token=a.b.c", "token=EAABwzLixnjYBO0123456789abcdef",
            "token=\(try Tokens.mint(Tokens.claims(issuedAt: WallClock.unixSeconds() - 10_000)))",
            "token=\(try Tokens.mint(Tokens.claims(audience: "987")))", "token=\(good.dropLast(4))AAAA",
            "token=\(good)&nonce=another", "token=\(good)&subject=1", "token=\(good)&app_id=42",
            "token=\(good)&app_id=unknown", "token=\(good)&nonce=a+b",
        ]
        for body in bodies {
            let answer = try service.introspect(body)
            #expect(answer.status == 200 && answer.text == "{\"active\":false}", "\(body.prefix(40))")
            #expect(answer["cache-control"] == "no-store")
        }
        let metrics = service.registry.render()
        for (result, count) in [("accepted", 0), ("expired", 1), ("nonce_mismatch", 1)] {
            #expect(metrics.contains(#"verifications_total{credential="id_token",result="\#(result)"} \#(count)"#))
        }
        #expect(try service.introspect("token=\(good)&nonce=n%2D1").object["active"] as? Bool == true)
    }

    @Test("A malformed form is 400")
    func malformed() async throws {
        let service = try await Self.service()
        for body in [
            "", "token=", "tok=x", "token=a&token=b", "token=%zz", "token=a&nonce=1&subject=2", "token=a&nonce=",
            "token=a&app_id=", "token=a&token_type_hint=a&token_type_hint=b", "token=a&issued_nonce=true",
            "token=a&auth_nonce=true", "token=a&key_thumbprint=a", "token=a&access_token=a", "token=a&permissions=",
            "token=a" + String(repeating: "&x=1", count: 1_024),
        ] {
            let answer = try service.introspect(body)
            #expect(answer.status == 400 && answer.code == "invalid_request", "\(body.prefix(40))")
        }
    }

    @Test(
        "A caller must present its key first, in any way that OAuth clients use",
        arguments: [
            // backend:secret, and the same with the key form-encoded
            (["Authorization: Basic YmFja2VuZDpzZWNyZXQ="], 200),
            (["Authorization: basic YmFja2VuZDpzZWNyZSU3NA=="], 200), (["X-Api-Key: secret"], 200), ([key], 200),
            // another:secret, backend:wrong, no colon
            (["Authorization: Basic YW5vdGhlcjpzZWNyZXQ="], 401), (["Authorization: Basic YmFja2VuZDp3cm9uZw=="], 401),
            (["Authorization: Basic c2VjcmV0"], 401), (["Authorization: Bearer wrong"], 401), ([], 401),
            (["Authorization: Basic YmFja2VuZDpzZWNyZXQ=", "X-Api-Key: secret"], 400),
        ]
    )
    func caller(fields: [String], status: Int) async throws {
        let service = try await Self.service()
        let answer = try service.answer("POST", "/introspect", fields: [Self.form] + fields, body: "token=x")
        #expect(answer.status == status)
        guard status == 401 else { return }
        #expect(answer.code == "unauthorized_client")
        #expect(answer.fields.contains { $0.name == "www-authenticate" && $0.value.hasPrefix("Bearer ") })
        #expect(answer.fields.contains { $0.name == "www-authenticate" && $0.value.hasPrefix("Basic ") })
    }

    @Test("Only POST is allowed, and only with a form")
    func methodsAndTypes() async throws {
        let service = try await Self.service()
        let get = try service.answer("GET", "/introspect?token=x", fields: [Self.key])
        #expect(get.status == 405 && get["allow"] == "POST, OPTIONS")
        let json = ["Content-Type: application/json"]
        let answer = try service.answer("POST", "/introspect", fields: json + [Self.key], body: "")
        #expect(answer.status == 415 && answer["accept"] == "application/x-www-form-urlencoded")
        // A body that is not a form cannot hold the caller's key either.
        let bare = try service.answer("POST", "/introspect", fields: json, body: "")
        #expect(bare.status == 401 && bare["www-authenticate"] != nil)
        let charset = [Self.form + "; charset=UTF-8", Self.key]
        #expect(try service.answer("POST", "/introspect", fields: charset, body: "token=x").status == 200)
    }
}
