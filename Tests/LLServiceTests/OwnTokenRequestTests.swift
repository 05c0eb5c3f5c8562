import Foundation
import LLHTTP
import LLStandIn
import LLTestSupport
import LimitedLogin
import Testing

@testable import LLService

@Suite("POST /token: malformed requests, and tokens used in place of each other", .live)
struct OwnTokenRequestTests {
    private typealias Case = (body: String, error: String)

    /// Requests with a caller's key and a good token, and OAuth's error for each (RFC 6749 section 5.2).
    private static func malformed(_ token: String) -> [Case] {
        let grant = "grant_type=\(TokenRequest.grantType)"
        let type = "subject_token_type=\(OwnTokenTests.idToken)"
        let good = OwnTokenTests.body(token)
        // Each parameter comes twice: plain, and with its first letter percent-encoded.
        let names = [
            "grant_type", "subject_token", "subject_token_type", "audience", "requested_token_type", "nonce",
            "raw_nonce", "issued_nonce", "auth_nonce", "subject", "key_thumbprint", "app_id", "client_id", "scope", "x",
        ]
        let repeated = names.map {
            ("\(good)&\($0)=1&%\(String($0.utf8.first ?? 0, radix: 16))\($0.dropFirst())=1", "invalid_request")
        }
        let wrong: [Case] = [
            // Required parameters that are missing or empty.
            ("", "invalid_request"), ("\(type)&subject_token=\(token)&nonce=n-1", "invalid_request"),
            ("\(grant)&\(type)&nonce=n-1", "invalid_request"),
            ("\(grant)&subject_token=\(token)&nonce=n-1", "invalid_request"),
            ("\(grant)&\(type)&subject_token=&nonce=n-1", "invalid_request"),
            ("\(grant)&\(type)&subject_token=\(token)", "invalid_request"),
            ("grant_type=&\(type)&subject_token=\(token)&nonce=n-1", "invalid_request"),
            ("\(grant)&subject_token_type=&subject_token=\(token)&nonce=n-1", "invalid_request"),
            // Other grants and types.
            (good.replacing("token-exchange", with: "Token-Exchange"), "unsupported_grant_type"),
            (good.replacing("token-exchange", with: "token-exchange%20"), "unsupported_grant_type"),
            (good.replacing(grant, with: "grant_type=client_credentials"), "unsupported_grant_type"),
            (good.replacing("id_token&", with: "ID_TOKEN&"), "invalid_request"),
            (good.replacing("id_token&", with: "id_token%00&"), "invalid_request"),
            ("\(good)&requested_token_type=urn:ietf:params:oauth:token-type:refresh_token", "invalid_request"),
            ("\(good)&requested_token_type=access_token", "invalid_request"),
            // Other audiences.
            ("\(good)&audience=\(OwnTokens.audience)/", "invalid_target"), ("\(good)&audience=OTHER", "invalid_target"),
            // Percent signs that encode nothing.
            ("\(good)&x=%", "invalid_request"), ("\(good)&x=%4", "invalid_request"),
            // Values that are not UTF-8 or not the nonce, and other spellings of the parameter's name.
            (good.replacing("nonce=n-1", with: "nonce=%ff"), "invalid_request"),
            (good.replacing("nonce=n-1", with: "nonce=n%C0%AD1"), "invalid_request"),
            // Bindings that contradict each other or have invalid values.
            ("\(good)&raw_nonce=n-1", "invalid_request"), ("\(good)&issued_nonce=true", "invalid_request"),
            ("\(good)&issued_nonce=false", "invalid_request"), ("\(good)&issued_nonce=TRUE", "invalid_request"),
            ("\(good)&issued_nonce=1", "invalid_request"), ("\(good)&auth_nonce=true", "invalid_request"),
            ("\(good)&subject=0", "invalid_request"), ("\(good)&key_thumbprint=x", "invalid_request"),
            ("\(good)&app_id=0", "invalid_request"), ("\(good)&app_id=123456789012345%20", "invalid_request"),
            // Altered tokens.
            (OwnTokenTests.body(" \(token)"), "invalid_request"),
            (OwnTokenTests.body(String(token.dropLast())), "invalid_request"),
            (OwnTokenTests.body(String(repeating: "a.", count: 16_385)), "invalid_request"),
            // Other formats.
            (#"{"grant_type":"\#(TokenRequest.grantType)","subject_token":"\#(token)"}"#, "invalid_request"),
            (good.replacing("&", with: ";"), "unsupported_grant_type"),
        ]
        return repeated + wrong
    }

    @Test("Each malformed request is 400 with OAuth's error, and none makes a token")
    func malformedRequests() async throws {
        let service = try await OwnTokenTests.service()
        let token = try Tokens.mint(Tokens.claims())
        let cases = Self.malformed(token)
        for (body, error) in cases {
            let answer = try OwnTokenTests.exchange(service, body)
            #expect(answer.status == 400 && answer.text.contains(#""error":"\#(error)""#), "\(body): \(answer.text)")
            #expect(!answer.text.contains("access_token\":"), "\(body)")
        }
        let good = OwnTokenTests.body(token)
        for type in ["application/json", "text/plain", "multipart/form-data; boundary=x", nil] {
            let fields = (type.map { ["Content-Type: \($0)"] } ?? []) + [OwnTokenTests.key]
            let answer = try OwnTokenTests.exchange(service, good, fields: fields)
            #expect(answer.status == 415, "\(fields): \(answer.text)")
        }
        let twice = try OwnTokenTests.exchange(service, "\(good)&client_id=backend&client_secret=secret")
        #expect(twice.status == 400 && twice.text.contains(#""error":"invalid_request""#), "\(twice.text)")
        #expect(try OwnTokenTests.exchange(service, good).status == 200)
    }

    @Test("Facebook's token never passes as the service's own, nor the service's as Facebook's")
    func crossed() async throws {
        let service = try await OwnTokenTests.service()
        var claims = Tokens.claims(audience: OwnTokens.audience)
        claims.issuer = OwnTokens.issuer
        let posing = try Tokens.mint(claims)
        // Tokens by the service's key, with Facebook's issuer name or with Facebook's audience.
        let keys = try OwnTokens.settings().issuer.keys
        let now = try #require(NumericDate(secondsSince1970: WallClock.unixSeconds()))
        let login = TokenIssuer.Login(appID: InProcessService.appID, userID: "1", authenticatedAt: now, expiresAt: nil)
        let tokens = try ["https://www.facebook.com", OwnTokens.issuer].map { name in
            let policy = try TokenIssuerPolicy(issuer: name, audiences: [InProcessService.appID])
            return try TokenIssuer(policy: policy, keys: keys).token(for: login, tokenID: "t", now: now).value
        }
        for token in tokens + [posing] {
            let answer = try OwnTokenTests.auth(service, token)
            #expect(answer.status == 401, "\(answer.text)")
            #expect(try service.introspect("token=\(token)").text == #"{"active":false}"#)
            #expect(try OwnTokenTests.exchange(service, OwnTokenTests.body(token)).status == 400)
        }
    }

    /// The claims of a token; they must be what /introspect tells of it.
    private static func claims(_ service: InProcessService, _ answer: [String: Any]) throws -> [String: Any] {
        let token = try #require(answer["access_token"] as? String)
        let claims = try CallbackRouteTests.object(Array(OwnTokenTests.text(token.split(separator: ".")[1]).utf8))
        var told = try service.introspect("token=\(token)").object
        #expect(told["active"] as? Bool == true && told["token_type"] as? String == answer["token_type"] as? String)
        for name in ["active", "token_type"] { told[name] = nil }
        #expect(NSDictionary(dictionary: told) == NSDictionary(dictionary: claims))
        #expect(answer["scope"] as? String == claims["scope"] as? String)
        return claims
    }

    @Test("/introspect tells each claim of token_claims, a scope of token_extra_claims, and the whole of a bound token")
    func told() async throws {
        let all = TokenIssuer.Claim.allCases
        let tokens = try OwnTokens.settings(claims: all, extraClaims: #"{"scope":"x y"}"#)
        let service = try await OwnTokenTests.service(tokens: tokens)
        var minted = Tokens.claims()
        AnswerTypeTests.addEveryFact(to: &minted)
        for thumbprint in [nil, try Proof.key.thumbprint()] {
            minted.confirmationThumbprint = thumbprint
            let answer = try OwnTokenTests.exchange(service, OwnTokenTests.body(try Tokens.mint(minted)))
            let claims = try Self.claims(service, answer.object)
            #expect(Set(all.map(\.rawValue)).isSubset(of: claims.keys) && claims["scope"] as? String == "x y")
            #expect((claims["cnf"] as? [String: String])?["jkt"] == thumbprint, "\(claims)")
        }
    }

    @Test("resource is another audience, scope is granted within token_scope, no actor is accepted; empty is absent")
    func targets() async throws {
        let extra = #"{"role":"user","n":1.5e3,"deep":{"a":[1,null,{"b":"\u00e9\n"}]},"t":true}"#
        let tokens = try OwnTokens.settings([OwnTokens.p256], extraClaims: extra, scope: "read write admin:all")
        let service = try await OwnTokenTests.service(tokens: tokens)
        var minted = Tokens.claims()
        (minted.name, minted.email) = ("J \"Q\" \u{1F600}\u{7}", "a@b.c")
        let token = try Tokens.mint(minted)
        let scopes: [(String?, granted: String?)] = [
            (nil, "read write admin:all"), ("", "read write admin:all"), ("write%20read%20write", "read write"),
            ("admin:all", "admin:all"), ("READ", nil), ("read,write", nil), ("read%09write", nil), ("read%20x", nil),
        ]
        for (resource, audience) in [nil, "", OwnTokens.audience, "other", "https://evil.example"].flatMap({ resource in
            [nil, "", OwnTokens.audience, "other"].map { (resource, $0) }
        }) {
            for (scope, granted) in scopes {
                let empty = "&actor_token=&raw_nonce=&subject=&app_id=&issued_nonce=&x=y"
                for (actor, isActor) in [("", false), (empty, false), ("&actor_token_type=x", true)] {
                    var body = OwnTokenTests.body(token) + actor
                    for (name, value) in [("resource", resource), ("audience", audience), ("scope", scope)] {
                        if let value { body += "&\(name)=\(value)" }
                    }
                    let answer = try OwnTokenTests.exchange(service, body)
                    let names = Set([resource, audience].compactMap { $0 }.filter { !$0.isEmpty })
                    let isTarget = names.count <= 1 && names.isSubset(of: [OwnTokens.audience, "other"])
                    let error = isActor ? "invalid_request" : !isTarget ? "invalid_target" : "invalid_scope"
                    guard !isActor, isTarget, let granted else {
                        #expect(answer.status == 400 && answer.text.contains(#""error":"\#(error)""#), "\(body)")
                        continue
                    }
                    #expect(answer.status == 200, "\(body): \(answer.text)")
                    let claims = try Self.claims(service, answer.object)
                    #expect(claims["aud"] as? String == names.first ?? OwnTokens.audience, "\(body)")
                    #expect(claims["scope"] as? String == granted, "\(body)")
                }
            }
        }
    }
}
