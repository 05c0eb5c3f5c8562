import LimitedLogin
import Testing

@Suite("Graph's answer about an access token")
struct AccessTokenTests {
    private static let now = Login.sharedNow
    private static let scopes = #"["public_profile","email","user_friends","user_likes","pages_manage.x"]"#

    /// An answer of debug_token, with members set to JSON text; nil removes one.
    private static func answer(_ changes: [(String, String?)] = []) -> [UInt8] {
        var members: [(String, String?)] = [
            ("app_id", #""111""#), ("type", #""USER""#), ("application", #""An app""#),
            ("data_access_expires_at", "1707776000"), ("expires_at", "1700003600"), ("is_valid", "true"),
            ("issued_at", "1699990000"), ("scopes", scopes), ("user_id", #""218471""#),
        ]
        for (name, json) in changes {
            members.removeAll { $0.0 == name }
            members.append((name, json))
        }
        let present = members.compactMap { name, json in json.map { "\"\(name)\":\($0)" } }
        return Array(#"{"data":{\#(present.joined(separator: ","))}}"#.utf8)
    }

    private static func inspect(_ answer: [UInt8], subject: String? = nil) throws -> AccessTokenInspection {
        try AccessTokenInspection(debugToken: answer, appIDs: ["111", "222"], subject: subject, now: now)
    }

    private static func rejection(_ answer: [UInt8], subject: String? = nil) -> Rejection? {
        Login.rejection { try inspect(answer, subject: subject) }
    }

    @Test("A good token gives its app, person, times and permissions")
    func accepted() throws {
        let inspection = try Self.inspect(Self.answer(), subject: "218471")
        #expect(inspection.appID == "111" && inspection.userID == "218471")
        #expect(
            inspection.issuedAt?.wholeSeconds == 1_699_990_000 && inspection.expiresAt?.wholeSeconds == 1_700_003_600
        )
        #expect(inspection.dataAccessExpiresAt?.wholeSeconds == 1_707_776_000)
        #expect(inspection.permissions == ["public_profile", "email", "user_friends", "user_likes", "pages_manage.x"])
        #expect(inspection.earliestIssue(now: Login.sharedNow).wholeSeconds == 1_699_990_000)
    }

    @Test("A token that does not expire has no expiry, and IDs may be numbers")
    func lasting() throws {
        let answer = Self.answer([
            ("expires_at", "0"), ("issued_at", nil), ("data_access_expires_at", "0"), ("user_id", "218471"),
            ("app_id", "222"), ("scopes", nil),
        ])
        let inspection = try Self.inspect(answer)
        #expect(inspection.expiresAt == nil && inspection.issuedAt == nil && inspection.dataAccessExpiresAt == nil)
        #expect(inspection.appID == "222" && inspection.userID == "218471" && inspection.permissions.isEmpty)
        // Its time of issue is unknown, so any revocation applies to it.
        #expect(inspection.earliestIssue(now: Login.sharedNow).wholeSeconds == 0)
        let short = try Self.inspect(Self.answer([("issued_at", nil)]))
        #expect(short.earliestIssue(now: Login.sharedNow).wholeSeconds == 1_699_996_400)
    }

    /// Changes to Graph's answer and the expected rejection.
    struct Row: Sendable, CustomTestStringConvertible {
        let name: String
        let changes: [(String, String?)]
        let rejection: Rejection

        init(_ name: String, _ rejection: Rejection, _ changes: (String, String?)...) {
            self.name = name
            self.rejection = rejection
            self.changes = changes
        }

        var testDescription: String { name }
    }

    private static func invalid(_ name: String, _ rejection: Rejection, _ error: String?) -> Row {
        Row(name, rejection, ("is_valid", "false"), ("error", error))
    }

    private static let rows: [Row] = [
        // Not valid; the subcode tells the reason.
        invalid("no error told", .accessTokenNotConfirmed, nil),
        invalid("an empty error", .accessTokenNotConfirmed, "{}"),
        invalid("the placeholder of SDK 17", .accessTokenNotConfirmed, #"{"message":"Cannot parse access token"}"#),
        invalid("expired", .accessTokenExpired, #"{"code":190,"subcode":463,"message":"x"}"#),
        invalid("the app removed", .accessTokenRevoked, #"{"code":190,"subcode":458}"#),
        invalid("the password changed", .accessTokenRevoked, #"{"code":190,"subcode":460}"#),
        invalid("the session ended", .accessTokenRevoked, #"{"code":190,"subcode":466}"#),
        invalid("the session invalidated", .accessTokenRevoked, #"{"code":190,"subcode":467}"#),
        invalid("at a checkpoint", .accessTokenOfCheckpoint, #"{"code":190,"subcode":459}"#),
        invalid("at another checkpoint", .accessTokenOfCheckpoint, #"{"code":190,"subcode":490}"#),
        invalid("not confirmed", .accessTokenOfUnconfirmedAccount, #"{"code":190,"subcode":464}"#),
        invalid("without a role", .accessTokenWithoutRole, #"{"code":190,"subcode":492}"#),
        invalid("another subcode", .accessTokenNotConfirmed, #"{"code":190,"subcode":1}"#),
        invalid("a subcode as text", .accessTokenNotConfirmed, #"{"code":190,"subcode":"463"}"#),
        invalid("an error as text", .accessTokenNotConfirmed, #""463""#),
        // Valid, with an error beside it.
        Row("valid, and expired", .unreadableAnswer, ("error", #"{"code":190,"subcode":463}"#)),
        Row("valid, and an error of null", .unreadableAnswer, ("error", "null")),
        // Another kind of token.
        Row("an app's token", .accessTokenOfNoPerson, ("type", #""APP""#)),
        Row("a page's token", .accessTokenOfNoPerson, ("type", #""PAGE""#)),
        Row("a system user's token", .accessTokenOfNoPerson, ("type", #""SYSTEM_USER""#)),
        Row("another spelling of the type", .accessTokenOfNoPerson, ("type", #""user""#)),
        // A token for another app.
        Row("another app", .accessTokenOfOtherApp, ("app_id", #""333""#)),
        Row("a longer app ID", .accessTokenOfOtherApp, ("app_id", #""1110""#)),
        Row("a leading zero", .accessTokenOfOtherApp, ("app_id", #""0111""#)),
        // No person, or none that can be read.
        Row("no person", .accessTokenWithoutUser, ("user_id", nil)),
        Row("an empty person", .accessTokenWithoutUser, ("user_id", #""""#)),
        Row("a person of letters", .accessTokenWithoutUser, ("user_id", #""21847l""#)),
        Row("null", .accessTokenWithoutUser, ("user_id", "null")),
        Row("a negative person", .accessTokenWithoutUser, ("user_id", "-218471")),
        Row("a person too long", .accessTokenWithoutUser, ("user_id", "\"" + String(repeating: "1", count: 21) + "\"")),
        // No expiry, or expired.
        Row("no expiry", .accessTokenWithoutExpiry, ("expires_at", nil)),
        Row("expired now", .accessTokenExpired, ("expires_at", "1700000000")),
        Row("expired long ago", .accessTokenExpired, ("expires_at", "1")),
        // Answers that cannot be read, which is no fault of the token.
        Row("an expiry as text", .unreadableAnswer, ("expires_at", #""1700003600""#)),
        Row("a negative expiry", .unreadableAnswer, ("expires_at", "-1")),
        Row("an expiry of null", .unreadableAnswer, ("expires_at", "null")),
        Row("no verdict", .unreadableAnswer, ("is_valid", nil)),
        Row("a verdict as a number", .unreadableAnswer, ("is_valid", "1")),
        Row("a verdict as text", .unreadableAnswer, ("is_valid", #""true""#)),
        Row("a verdict of null", .unreadableAnswer, ("is_valid", "null")),
        Row("no type", .unreadableAnswer, ("type", nil)),
        Row("a type as a list", .unreadableAnswer, ("type", #"["USER"]"#)),
        Row("no app", .unreadableAnswer, ("app_id", nil)),
        Row("an app as a list", .unreadableAnswer, ("app_id", #"["111"]"#)),
        Row("an app of letters", .unreadableAnswer, ("app_id", #""abc""#)),
    ]

    @Test("Each refusing answer has its own reason", arguments: rows)
    func refusals(row: Row) {
        #expect(Self.rejection(Self.answer(row.changes)) == row.rejection)
    }

    @Test(
        "An answer that debug_token does not give says nothing about the token",
        arguments: [
            "", "null", "[]", "{}", "true", #"{"data":[]}"#, #"{"data":null}"#, #"{"data":{}}"#, "<html>",
            #"{"data":{"is_valid":true}"#, #"{"data":{"is_valid":false},"data":{"is_valid":true}}"#,
            #"{"data":{"is_valid":false,"is_valid":true}}"#, #"{"error":{"code":190,"message":"x"}}"#,
            String(decoding: answer(), as: UTF8.self).dropLast() + #","error":{"code":190}}"#,
        ]
    )
    func unreadable(text: String) {
        #expect(Self.rejection(Array(text.utf8)) == .unreadableAnswer)
    }

    @Test(
        "The maximum age is enforced with the skew, and a token without a time of issue is refused",
        arguments: [
            ("1699990000", 10_000, 0, nil), ("1699990000", 9_999, 0, .accessTokenTooOld),
            ("1699990000", 9_940, 60, nil), ("1699990000", 9_939, 60, .accessTokenTooOld), ("1700000060", 1, 0, nil),
            ("1699990000", 9_700, 9_999, nil), ("1699990000", 9_699, 9_999, .accessTokenTooOld),
            ("1699990000", 10_000, -9, nil), ("1699999999", -5, 0, .accessTokenTooOld),
            (nil, 2_000_000_000, 300, .accessTokenOfUnknownAge),
            ("0", 2_000_000_000, 300, .accessTokenOfUnknownAge),
            (#""1699990000""#, 2_000_000_000, 300, .accessTokenOfUnknownAge),
        ] as [(String?, Int, Int, Rejection?)]
    )
    func age(issuedAt: String?, maximum: Int, skew: Int, rejection: Rejection?) {
        let found = Login.rejection {
            try AccessTokenInspection(
                debugToken: Self.answer([("issued_at", issuedAt)]),
                appIDs: ["111"],
                maximumTokenAge: .seconds(maximum),
                clockSkew: .seconds(skew),
                now: Self.now
            )
        }
        #expect(found == rejection && (found == nil || found?.code == .tooOld))
    }

    @Test("A time of issue far ahead of the clock is no answer: no revocation would be later")
    func issuedAhead() {
        for (lead, refusal) in [(300, nil), (301, .unreadableAnswer)] as [(Int, Rejection?)] {
            #expect(Self.rejection(Self.answer([("issued_at", "\(1_700_000_000 + lead)")])) == refusal)
        }
    }

    @Test("The person must be the expected one; the app is checked before")
    func subject() {
        let answer = Self.answer([("app_id", #""333""#), ("user_id", nil), ("expires_at", "1")])
        #expect(Self.rejection(answer, subject: "9") == .accessTokenOfOtherApp)
        for other in ["218472", "21847", "", "0218471"] {
            #expect(Self.rejection(Self.answer(), subject: other) == .accessTokenOfOtherSubject)
        }
    }

    @Test("Only well-formed permission names are kept")
    func permissions() throws {
        let long = String(repeating: "a", count: 65)
        let scopes = #"["email",5,"E-mail","","user likes","user_birthday",null,"\#(long)","a.b_c"]"#
        #expect(try Self.inspect(Self.answer([("scopes", scopes)])).permissions == ["email", "user_birthday", "a.b_c"])
        #expect(try Self.inspect(Self.answer([("scopes", #""email""#)])).permissions.isEmpty)
    }

    @Test(
        "The shape tells an access token from an id token and from other text",
        arguments: [
            ("EAABwzLixnjYBO0123456789", .accessToken), ("EAAB|wz-Lixn_jYBO0123456789", .accessToken),
            (String(repeating: "E", count: 4_096), .accessToken), (String(repeating: "E", count: 4_097), .malformed),
            (String(repeating: "E", count: 19), .malformed), ("", .malformed), ("EAABwzLixnjYBO 123456789", .malformed),
            ("EAABwzLixnjYBO\n123456789", .malformed), ("EAABwzLixnjYBOé123456789", .malformed),
            ("\"EAABwzLixnjYBO0123456789\"", .malformed), ("Optional(EAABwzLixnjYBO0123456789)", .malformed),
            ("{\"access_token\":\"EAABwzLixnjYBO0123456789\"}", .malformed),
            ("eyJhbGciOiJSUzI1NiJ9.e30.AAAA", .jwt), ("eyAiYWxnIjoiUlMyNTYifQ.e30.AAAA", .jwt),
            ("EAAB.wzLixnjYBO012345.6789", .accessToken), ("GG|123456789|0123456789abcdef", .gaming),
            ("GG|short", .malformed), ("GGEABwzLixnjYBO0123456789", .accessToken),
        ] as [(String, AccessTokenInspection.Shape)]
    )
    func shapes(text: String, shape: AccessTokenInspection.Shape) {
        #expect(AccessTokenInspection.shape(Array(text.utf8).span) == shape)
    }
}

@Suite("The answer of /me about a person")
struct VerifiedAccessTokenTests {
    private static let everyone = """
        ["public_profile","email","user_friends","user_birthday","user_age_range","user_hometown","user_location",\
        "user_gender","user_link"]
        """

    private static func inspection(_ scopes: String = everyone) throws -> AccessTokenInspection {
        let text = #"""
            {"data":{"app_id":"111","type":"USER","expires_at":0,"is_valid":true,"user_id":"218471","scopes":\#(scopes)}}
            """#
        return try AccessTokenInspection(debugToken: Array(text.utf8), appIDs: ["111"], now: Login.sharedNow)
    }

    private static let me = #"""
        {"id":"218471","name":"Zo\u00eb Q. M\u00fcller","first_name":"Zo\u00eb","middle_name":"Q.","last_name":"M\u00fcller",
        "email":"zoe\u0040example.com","picture":{"data":{"height":50,"url":"https:\/\/x.test\/p"}},
        "friends":{"data":[{"name":"A","id":"1122"},{"id":"3344"}],"paging":{},"summary":{"total_count":9}},
        "birthday":"01\/02\/1990","age_range":{"min":21},"hometown":{"id":"1","name":"Martinez"},
        "location":{"id":"2","name":"Seattle"},"gender":"female","link":"https:\/\/x.test\/l"}
        """#

    private static func profile(_ me: String, _ scopes: String = everyone) throws -> Profile {
        try VerifiedAccessToken(me: Array(me.utf8), of: inspection(scopes)).profile
    }

    @Test("Every field of the answer reaches the Profile")
    func facts() throws {
        let profile = try Self.profile(Self.me)
        #expect(profile.userID == "218471" && profile.name == "Zoë Q. Müller" && profile.firstName == "Zoë")
        #expect(profile.middleName == "Q." && profile.lastName == "Müller" && profile.email == "zoe@example.com")
        #expect(profile.imageURL == "https://x.test/p" && profile.friendIDs == ["1122", "3344"])
        #expect(profile.birthday == .date(year: 1990, month: 1, day: 2) && profile.ageRange?.minimum == 21)
        #expect(profile.hometown?.name == "Martinez" && profile.location?.id == "2")
        #expect(profile.gender == "female" && profile.linkURL == "https://x.test/l")
        #expect(!profile.isLimited && profile.permissions.count == 9)
    }

    @Test("Only granted fields are requested and returned")
    func grants() throws {
        let none = try Self.inspection("[]")
        #expect(VerifiedAccessToken.fields(for: none) == ["id"])
        let some = try Self.inspection(#"["email","user_link"]"#)
        #expect(VerifiedAccessToken.fields(for: some) == ["id", "email", "link"])
        let profile = try Self.profile(Self.me, #"["email"]"#)
        #expect(profile.email == "zoe@example.com" && profile.permissions == [.email])
        #expect(profile.name == nil && profile.imageURL == nil && profile.friendIDs == nil && profile.birthday == nil)
        #expect(profile.ageRange == nil && profile.hometown == nil && profile.gender == nil && profile.linkURL == nil)
    }

    @Test(
        "A field that is missing or of the wrong type is left out, and the answer is accepted",
        arguments: ["null", "5", "true", #""""#, "[]", "{}", #"{"data":5}"#, #"{"data":[5]}"#, #"{"data":{"url":5}}"#]
    )
    func wrongTypes(json: String) throws {
        let names = [
            "name", "first_name", "middle_name", "last_name", "email", "picture", "birthday", "age_range", "hometown",
            "location", "gender", "link",
        ]
        let members = names.map { "\"\($0)\":\(json)" }.joined(separator: ",")
        let profile = try Self.profile(#"{"id":"218471",\#(members)}"#)
        #expect(profile.name == nil && profile.firstName == nil && profile.middleName == nil && profile.lastName == nil)
        #expect(profile.email == nil && profile.imageURL == nil && profile.birthday == nil && profile.ageRange == nil)
        #expect(profile.hometown == nil && profile.location == nil && profile.gender == nil && profile.linkURL == nil)
        #expect(try Self.profile(#"{"id":"218471"}"#).name == nil)
    }

    @Test(
        "Friends are a list of IDs",
        arguments: [
            (#"{"data":[]}"#, []), (#"{"data":[{"id":5}]}"#, ["5"]), (#"{"data":[{"name":"x"}]}"#, nil),
            (#"{"data":[{"id":"x"}]}"#, nil), (#"{"data":{}}"#, nil), (#"[{"id":"1"}]"#, nil), ("{}", nil),
        ] as [(String, [String]?)]
    )
    func friends(json: String, ids: [String]?) throws {
        #expect(try Self.profile(#"{"id":"218471","friends":\#(json)}"#).friendIDs == ids)
    }

    @Test("An answer about another person is refused; one that cannot be read is not blamed on the token")
    func persons() throws {
        let inspection = try Self.inspection()
        func rejection(_ me: String) -> Rejection? {
            Login.rejection { try VerifiedAccessToken(me: Array(me.utf8), of: inspection) }
        }
        #expect(rejection(#"{"id":"218471"}"#) == nil && rejection(#"{"id":218471}"#) == nil)
        for other in [#"{"id":"218472"}"#, #"{"id":"0218471"}"#, #"{"id":"2184710"}"#] {
            #expect(rejection(other) == .accessTokenOfAnother)
        }
        for unreadable in [
            "", "{}", "[]", #"{"id":null}"#, #"{"id":""}"#, #"{"id":["218471"]}"#, #"{"id":"218471","id":"9"}"#,
            "<html>", #"{"error":{"code":190}}"#, #"{"id":2.18471e5}"#,
        ] {
            #expect(rejection(unreadable) == .unreadableAnswer)
        }
    }

    @Test(
        "A backend gets the remedy for an error of its own call of Graph",
        arguments: [
            (#"{"error":{"code":200,"message":"(#200) Requires extended permission: email"}}"#, .askAgain),
            (#"{"error":{"code":200,"message":"API access blocked."}}"#, .mendApp),
            (#"{"error":{"code":190,"error_subcode":463}}"#, .logInAgain),
            (#"{"error":{"code":190,"message":"Invalid OAuth access token."}}"#, .logInAgain),
            (#"{"code":102}"#, .logInAgain), (#"{"error":{"code":101}}"#, .mendApp),
            (#"{"error":{"code":1,"message":"Error validating client secret."}}"#, .mendApp),
            (#"{"error":{"code":1}}"#, .retry), (#"{"error":{"code":2}}"#, .retry), (#"{"error":{"code":4}}"#, .retry),
            (#"{"error":{"code":99,"is_transient":true}}"#, .retry), (#"{"error":{"code":99}}"#, .mendApp),
            (#"{"error":{"code":100}}"#, .mendApp), (#"{"error":{}}"#, nil), ("[1]", nil), ("x", nil), ("", nil),
        ] as [(String, GraphErrorAdvice.Remedy?)]
    )
    func graphErrors(json: String, remedy: GraphErrorAdvice.Remedy?) {
        let advice = GraphErrorAdvice(json: Array(json.utf8))
        #expect(advice?.remedy == remedy, "\(advice)")
        #expect(advice.map { $0.cause.hasSuffix(".") && $0.name.hasPrefix("graph_") } ?? true)
    }
}
