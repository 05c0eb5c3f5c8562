import FoundationEssentials
import LLHTTP
import LLStandIn
import LLTestSupport
import Testing

@testable import LLService
@testable import LimitedLogin

@Suite("POST /verify: requests and answers", .live)
struct VerifyRouteTests {
    @Test("Tokens of up to 32 KiB are accepted on every route with a body; a longer one is token_too_long")
    func longTokens() async throws {
        let service = try await InProcessService(clients: ClientKeysTests.backend(), gatewayIsEnabled: true)
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
        #expect(answer["cache-control"] == "no-store" && answer["x-request-id"] != nil)
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
        ] { #expect(answer.text.contains(part), "\(part): \(answer.text)") }
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
        let answer = try service.verify(Tokens.mint(Tokens.claims(issuedAt: 1_600_000_000)))
        #expect(answer.status == 401)
        #expect(answer["www-authenticate"] == "Bearer error=\"invalid_token\", code=\"expired\"")
        #expect(answer["content-type"] == "application/problem+json" && answer["cache-control"] == "no-store")
        let problem = try JSONDecoder().decode(DecodedProblem.self, from: Data(answer.body))
        #expect(problem.type == "urn:limited-login:problem:expired" && problem.code == "expired")
        #expect(problem.status == 401 && problem.claim == "exp" && !problem.detail.isEmpty)
        #expect(problem.requestID == answer["x-request-id"])
        let count = #"limited_login_verifications_total{credential="id_token",result="expired"} 1"#
        #expect(service.registry.render().contains(count))
    }

    @Test("The clock counts fractions of a second: an iat of this moment is good, and an exp of it has expired")
    func fractions() async throws {
        // Without a skew, even a clock that is a fraction of a second behind would show.
        let policy = try VerificationPolicy(appIDs: [InProcessService.appID], clockSkew: .seconds(0))
        let service = try await InProcessService(policy: policy, gatewayIsEnabled: true)
        func token(_ name: String) throws -> String {
            let now = "\(Double(WallClock.unixNanoseconds()) / 1_000_000_000)"
            let members = Tokens.claims().members.map { $0.name == name ? (name, now) : $0 }
            return try StandInKeys.current.mint(members: members)
        }
        for _ in 0..<20 {
            let issued = try token("iat")
            #expect(try service.verify(issued).status == 200)
            #expect(try service.answer("GET", "/auth", fields: ["Authorization: Bearer \(issued)"]).status == 200)
            #expect(try service.verify(token("exp")).code == "expired")
        }
    }

    @Test("The longest claims, key ID and numbers fit the memory reserved for the answer")
    func longest() throws {
        let payload = [UInt8](repeating: UInt8(ascii: "x"), count: VerificationLimits.tokenByteCount)
        let keyID = [UInt8](repeating: 0x01, count: JWSCompactSerialization.keyIDByteCount)
        let date = try #require(NumericDate(secondsSince1970: 4_503_599_627_370_495.5))
        var claims = VerifiedClaims(issuedAt: date, expiresAt: date)
        let half = payload.count / 2
        claims[.subject] = 0..<half
        claims[.name] = half..<payload.count
        let empty = half..<half
        (claims[.issuer], claims[.audience], claims[.tokenID], claims[.nonce]) = (empty, empty, empty, empty)
        (claims[.givenName], claims[.middleName], claims[.familyName]) = (empty, empty, empty)
        (claims[.email], claims[.picture], claims[.userLink], claims[.userGender]) = (empty, empty, empty, empty)
        claims[.userFriends] = empty
        claims.birthday = .date(year: 1990, month: 12, day: 31)
        claims.ageRange = AgeRange(minimum: .max - 1, maximum: .max)
        claims.hometown = VerifiedClaims.Place(id: empty, name: empty)
        claims.location = claims.hometown
        claims[.confirmation] = empty
        claims.satisfiedPermissions = PermissionSet(rawValue: 0xFFF)
        var body: [UInt8] = []
        let asked = PermissionSet(rawValue: 0xFFF)
        VerifyAnswer.write(claims, payload.span, keyID.span, asked: asked, isRefresh: true, to: &body)
        #expect(body.count > 2 * payload.count + half + 6 * keyID.count && body.last == UInt8(ascii: "}"))
    }

    @Test("A malformed body is invalid_request")
    func malformedBody() async throws {
        let service = try await InProcessService()
        let token = #""id_token":"a.b.c""#
        for body in [
            " ", "}", "null", #""a""#, "{}{}", #"{"id_token":"a.b.c","\u0069d_token":"a.b.c","nonce":"n"}"#,
            #"{"id_token":null,"nonce":"n"}"#, #"{"id_token":["a.b.c"],"nonce":"n"}"#,
            #"{\#(token),"raw_nonce":"n","issued_nonce":true}"#, #"{\#(token),"subject":1}"#,
            #"{\#(token),"nonce":"n","permissions":[1]}"#, #"{\#(token),"nonce":"\ud800"}"#,
            "\u{feff}{\(token),\"nonce\":\"n\"}", "{\"a\":" + String(repeating: "[", count: 5000) + "}",
        ] {
            let answer = try service.answer(body: body)
            #expect(answer.status == 400 && answer.code == "invalid_request", "\(body)")
            #expect(answer["www-authenticate"] == nil, "\(body)")
        }
    }

    @Test("JSON is accepted with charset utf-8 or without a charset")
    func jsonMediaTypes() async throws {
        let service = try await InProcessService()
        for type in [
            "application/json", "Application/JSON", "application/json;charset=utf-8",
            "application/json ; Charset=\"UTF-8\"", "application/json;",
        ] { #expect(try service.answer(fields: ["Content-Type: \(type)"], body: "{}").code == "invalid_request") }
    }
}
