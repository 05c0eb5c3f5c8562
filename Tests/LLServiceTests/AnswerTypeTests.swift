import Foundation
import LLHTTP
import LLTestSupport
import LimitedLogin
import Testing

@testable import LLService

@Suite("POST /verify: each answer is a LoginRecord of the library", .live)
struct AnswerTypeTests {
    /// Reads an answer as a record. The record's own JSON must be read as the same record.
    private static func read(_ answer: TestResponse) throws -> LoginRecord {
        #expect(answer.status == 200, "\(answer.text)")
        let record = try JSONDecoder().decode(LoginRecord.self, from: Data(answer.body))
        let encoded = try JSONEncoder().encode(record)
        #expect(try JSONDecoder().decode(LoginRecord.self, from: encoded) == record)
        let profile = try (JSONSerialization.jsonObject(with: encoded) as? [String: Any])?["profile"] as? NSDictionary
        #expect(profile == answer.object["profile"] as? NSDictionary)
        return record
    }

    @Sendable static func addEveryFact(to claims: inout MintedClaims) {
        (claims.name, claims.givenName, claims.middleName, claims.familyName) = ("Jané \"Q\" Doe/😀", "Jané", "Q", "Doe")
        (claims.email, claims.picture) = ("jane@example.com", "https://x.fbcdn.net/p.jpg?a=1&b=2")
        (claims.friendIDs, claims.birthday, claims.ageRange) = (["11", "22"], "01/02/1990", (21, nil))
        (claims.hometown, claims.location) = (("1", "Martinez, California"), ("2", "Seattle, Washington"))
        (claims.gender, claims.link) = ("female", "https://www.facebook.com/jane")
    }

    /// Changes that add claims to a token, remove them or make them odd.
    private static let tokens: [(note: String, change: @Sendable (inout MintedClaims) -> Void)] = [
        ("as few facts as there can be", { _ in }), ("every fact", addEveryFact),
        ("a day without a year, ages up to a bound", { ($0.birthday, $0.ageRange) = ("02/29", (nil, 17)) }),
        ("a year alone, ages between bounds", { ($0.birthday, $0.ageRange) = ("1990", (18, 20)) }),
        ("no friends", { $0.friendIDs = [] }),
        ("an access token and a device", RefreshRouteTests.bind),
    ]

    @Test("The answer about an id token is a LoginRecord")
    func idTokens() async throws {
        let service = try await InProcessService()
        for (note, change) in Self.tokens {
            var claims = Tokens.claims()
            change(&claims)
            let (token, subject) = (try Tokens.mint(claims), try #require(claims.subject))
            for more in ["", #","subject":"\#(subject)""#, #","permissions":["email","gaming_profile"]"#] {
                let record = try Self.read(service.verify(token, #""nonce":"n-1"\#(more)"#))
                #expect(record.userID == subject && record.nonce == "n-1", "\(note) \(more)")
                #expect(record.isLimited == (claims.accessTokenHash == nil))
                #expect(record.appID == InProcessService.appID && record.keyThumbprint == claims.confirmationThumbprint)
            }
        }
    }

    @Test("The answer about an access token is a LoginRecord, with the nonce of its login if that was asked for")
    func accessTokens() async throws {
        let info = #"{"access_token":"x","token_type":"bearer","auth_nonce":"n0NceOfThisLogin"}"#
        let answers = Locked((data: GraphStory.data(), me: GraphStory.me))
        let service = try await GraphService { request, peer in
            let (data, me) = answers.withLock { $0 }
            let isInfo = request.path.contains("/access_token_info?")
            try peer.answerAndStay(isInfo ? info : request.path.contains("/debug_token?") ? data : me)
        }
        let scopes = #"["public_profile","email","user_friends","user_birthday","user_age_range","user_hometown"]"#
        let person = #"""
            {"id":"218471","name":"Zo\u00eb","first_name":"Z","email":"z\u0040a.example","birthday":"02\/29","age_range":{"min":21},\#
            "friends":{"data":[{"id":"1"},{"id":"2"}]},"hometown":{"id":"3","name":"Martinez"}}
            """#
        let least: [(String, String?)] = [
            ("issued_at", nil), ("expires_at", "0"), ("data_access_expires_at", nil), ("scopes", "[]"),
        ]
        let stories = [
            (GraphStory.data(), GraphStory.me), (GraphStory.data([("scopes", scopes)]), person),
            (GraphStory.data(least), #"{"id":"218471"}"#),
        ]
        for story in stories {
            answers.withLock { $0 = story }
            let record = try Self.read(service.judge(#""permissions":["email","user_likes"]"#))
            #expect(record.userID == "218471" && record.nonce == nil, "\(story)")
            let tied = try Self.read(service.judge(#""auth_nonce":true,"nonce":"n0NceOfThisLogin""#))
            #expect(tied.nonce == "n0NceOfThisLogin" && tied.expiresAt == record.expiresAt)
        }
        // Graph grants a permission outside Limited Login: it is listed in the scopes alone.
        answers.withLock { $0 = (GraphStory.data([("scopes", #"["email","a.b"]"#)]), GraphStory.me) }
        let answer = try service.judge()
        #expect(try JSONDecoder().decode(LoginRecord.self, from: Data(answer.body)).permissions == [.email])
        await service.stop()
    }
}
