import FoundationEssentials
import LLStandIn
import LLTestSupport
import LimitedLogin
import Testing

@testable import LLService

@Suite("POST /verify: answers", .live)
struct VerifyRouteTests {
    @Test("Tokens of up to 32 KiB are accepted on every route with a body; a longer one is token_too_long")
    func longTokens() async throws {
        let keys = try ClientKeys(parsing: Array("backend \(ClientKeysTests.secret)".utf8), place: "clients")
        let service = try await InProcessService(clients: keys, gatewayIsEnabled: true)
        let form = ["Content-Type: application/x-www-form-urlencoded", "X-Api-Key: secret"]
        let json = ["Content-Type: application/json", "X-Api-Key: secret"]
        for (length, code) in [(32_768, nil), (32_769, "token_too_long")] as [(Int, String?)] {
            let token = try #require(try StandInKeys.current.mint(ofLength: length, Tokens.claims()))
            let answer = try service.answer(fields: json, body: #"{"id_token":"\#(token)","nonce":"n-1"}"#)
            #expect(answer.status == (code == nil ? 200 : 401) && answer.code == code)
            // The second round uses the remembered token.
            for _ in 0..<2 {
                let told = try service.answer("POST", "/introspect", fields: form, body: "token=\(token)")
                #expect(told.status == 200 && told.object["active"] as? Bool == (code == nil))
            }
        }
        let token = try #require(try StandInKeys.current.mint(ofLength: 24_576, Tokens.claims()))
        for _ in 0..<2 {
            #expect(try service.answer("GET", "/auth", fields: ["Authorization: Bearer \(token)"]).status == 200)
        }
    }

    @Test("The answer to a good token has the authentication token, the whole Profile and its claims")
    func accepted() async throws {
        let service = try await InProcessService()
        var claims = Tokens.claims()
        AnswerTypeTests.addEveryFact(to: &claims)
        let answer = try service.verify(
            try Tokens.mint(claims),
            #""nonce":"n-1","permissions":["email","user_messenger_contact","gaming_profile"]"#
        )
        #expect(answer.status == 200 && answer["content-type"] == "application/json")
        #expect(answer["cache-control"] == "no-store")
        #expect(answer["x-request-id"] != nil)
        let (start, key) = (claims.issuedAt ?? 0, StandInKeys.current.keyID)
        for part in [
            #""issuer":"https:\/\/www.facebook.com","audience":"\#(InProcessService.appID)""#, #""nonce":"n-1""#,
            #""issued_at":\#(start),"expires_at":\#(start + 3_600),"key_id":"\#(key)","tracking":"limited"}"#,
            #""name":"Jan\u00e9 \"Q\" Doe\/\ud83d\ude00","first_name":"Jan\u00e9","middle_name":"Q","last_name":"Doe""#,
            #""email":"jane\u0040example.com","email_verified":false,"image_url":"https:\/\/x.fbcdn.net\/p.jpg?a=1&b=2""#,
            #""link_url":"https:\/\/www.facebook.com\/jane","friend_ids":["11","22"],"birthday":"1990-01-02""#,
            #""age_range":{"min":21},"hometown":{"id":"1","name":"Martinez, California"}"#,
            #""location":{"id":"2","name":"Seattle, Washington"},"gender":"female""#, #""is_limited":true}"#,
            #""permissions":["email","gaming_profile","user_age_range","#,
            #""missing_permissions":[],"unverifiable_permissions":["user_messenger_contact"]"#,
        ] {
            #expect(answer.text.contains(part), "\(part): \(answer.text)")
        }
    }

    @Test("Each permission without proof is missing, in the fixed order; the unverifiable one is listed apart")
    func everyMissingPermission() async throws {
        let asked = Permission.allCases.reversed().map { "\"\($0.rawValue)\"" }.joined(separator: ",")
        let missing = Permission.allCases.filter { $0 != .userMessengerContact }.map { "\"\($0.rawValue)\"" }
        let members = "\"nonce\":\"n-1\",\"permissions\":[\(asked)]"
        let answer = try await InProcessService().verify(try Tokens.mint(Tokens.claims()), members)
        #expect(answer.text.contains("\"missing_permissions\":[\(missing.joined(separator: ","))]"))
        #expect(answer.text.contains("\"unverifiable_permissions\":[\"user_messenger_contact\"]"))
    }

    @Test("A refused token is a problem with a challenge, a code and the claim at fault")
    func refusal() async throws {
        let service = try await InProcessService()
        let token = try Tokens.mint(Tokens.claims(issuedAt: 1_600_000_000))
        let answer = try service.verify(token)
        #expect(answer.status == 401)
        #expect(answer["www-authenticate"] == "Bearer error=\"invalid_token\", code=\"expired\"")
        #expect(answer["content-type"] == "application/problem+json")
        #expect(answer["cache-control"] == "no-store")
        let problem = try JSONDecoder().decode(DecodedProblem.self, from: Data(answer.body))
        #expect(problem.type == "urn:limited-login:problem:expired")
        #expect(problem.code == "expired")
        #expect(problem.status == 401)
        #expect(problem.claim == "exp")
        #expect(problem.requestID == answer["x-request-id"])
        #expect(!problem.detail.isEmpty)
        let count = #"limited_login_verifications_total{credential="id_token",result="expired"} 1"#
        #expect(service.registry.render().contains(count))
    }
}
