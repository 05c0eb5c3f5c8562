import LLStandIn
import LLTestSupport
import LimitedLogin
import Testing

@Suite("The Profile")
struct ProfileTests {
    private func profile(_ claim: String, _ json: String) throws -> Profile {
        try Login.verify(Login.token(claim, json)).profile
    }

    @Test("A verified token gives its claims, its text and its key ID")
    func authenticationToken() throws {
        let text = try StandInKeys.current.mint(Login.claims)
        let token = try Login.verify(text).authenticationToken
        #expect(token.tokenString == text && token.keyID == StandInKeys.current.keyID)
        #expect(token.issuer == "https://www.facebook.com" && token.audience == Login.appID)
        #expect(token.subject == Login.userID && token.nonce == Login.nonce && token.tokenID.utf8.count == 69)
        #expect(token.issuedAt.wholeSeconds == Login.now - 5 && token.expiresAt.wholeSeconds == Login.now + 3595)
    }

    @Test("With every permission granted the Profile is complete")
    func fullProfile() throws {
        let profile = try Login.verify(StandInKeys.current.mint(Login.fullClaims)).profile
        #expect(profile.userID == Login.userID && profile.name == "Zoë Q. Müller 😀" && profile.firstName == "Zoë")
        #expect(profile.middleName == "Q." && profile.lastName == "Müller 😀" && profile.email == "zoë@example.com")
        #expect(profile.imageURL == Login.fullClaims.picture && profile.linkURL == Login.fullClaims.link)
        #expect(profile.friendIDs == ["1122", "3344", "5566"] && profile.gender == "female" && profile.isLimited)
        #expect(profile.birthday == .date(year: 1990, month: 1, day: 2))
        #expect(profile.ageRange == AgeRange(minimum: 21, maximum: nil))
        #expect(profile.hometown?.name == "Martinez, California" && profile.location?.id == "110843418940484")
        #expect(
            profile.permissions == [
                .publicProfile, .email, .userAgeRange, .userBirthday, .userFriends, .userGender, .userHometown,
                .userLink, .userLocation,
            ]
        )
    }

    @Test(
        "A birthday has three shapes, and any other text is none",
        arguments: [
            ("01/02/1990", .date(year: 1990, month: 1, day: 2)), ("12/31/0001", .date(year: 1, month: 12, day: 31)),
            ("02/29/2000", .date(year: 2000, month: 2, day: 29)),
            ("02\\/28\\/1900", .date(year: 1900, month: 2, day: 28)),
            ("01/02", .dayOfYear(month: 1, day: 2)), ("02/29", .dayOfYear(month: 2, day: 29)), ("1990", .year(1990)),
            ("02/29/1900", nil), ("02/29/2001", nil), ("02/30", nil), ("13/01", nil), ("00/01", nil), ("01/00", nil),
            ("04/31", nil), ("01/32/1990", nil), ("0000", nil), ("01/01/0000", nil), ("1/2/1990", nil),
            ("1990-01-02", nil), ("01-02-1990", nil), ("01/02/19x0", nil), ("x1/02", nil), ("01/x2", nil), ("", nil),
            ("01/02/1990 ", nil), ("１９９０", nil),
        ] as [(String, Birthday?)]
    )
    func birthdays(text: String, birthday: Birthday?) throws {
        #expect(try profile("user_birthday", "\"\(text)\"").birthday == birthday)
    }

    @Test("A birthday is spelt as OpenID Connect spells it")
    func birthdaySpelling() {
        #expect(Birthday.date(year: 1990, month: 1, day: 2).description == "1990-01-02")
        #expect(Birthday.date(year: 7, month: 11, day: 22).description == "0007-11-22")
        #expect(Birthday.dayOfYear(month: 2, day: 29).description == "0000-02-29")
        #expect(Birthday.year(1990).description == "1990")
    }

    @Test(
        "An age range needs a bound; no bound is negative, and the lower is below the upper; any other is dropped",
        arguments: [
            (#"{"min":21}"#, (21, nil)), (#"{"max":17}"#, (nil, 17)), (#"{"min":13,"max":17}"#, (13, 17)),
            (#"{"min":0}"#, (0, nil)), (#"{"min":18,"max":20,"x":1}"#, (18, 20)), (#"{"min":21.0}"#, (21, nil)),
            (#"{"max":1.7e1}"#, (nil, 17)), ("{}", nil), (#"{"min":21,"max":21}"#, nil), (#"{"min":22,"max":21}"#, nil),
            (#"{"min":-1}"#, nil), (#"{"max":-1}"#, nil), (#"{"min":"21"}"#, nil), (#"{"min":21,"max":null}"#, nil),
            (#"{"min":null}"#, nil), (#"{"min":1e30}"#, nil), (#"{"min":20.5}"#, nil), (#"{"max":-1.0}"#, nil),
            (#"{"min":21,"max":true}"#, nil), ("21", nil), ("[21]", nil), ("null", nil),
        ] as [(String, (Int?, Int?)?)]
    )
    func ageRanges(json: String, bounds: (minimum: Int?, maximum: Int?)?) throws {
        let profile = try profile("user_age_range", json)
        #expect(profile.ageRange?.minimum == bounds?.minimum && profile.ageRange?.maximum == bounds?.maximum)
        #expect(profile.permissions.contains(.userAgeRange) == (bounds != nil))
    }

    @Test("A place needs its ID and its name, both strings", arguments: ["user_hometown", "user_location"])
    func places(claim: String) throws {
        func place(_ json: String) throws -> Profile.Place? {
            let profile = try profile(claim, json)
            return claim == "user_hometown" ? profile.hometown : profile.location
        }
        let found = try place("{\"id\":\"1\",\"name\":\"S\\u00e3o\",\"x\":2}")
        #expect(found?.id == "1" && found?.name == "São")
        for json in [
            "{\"id\":1,\"name\":\"a\"}", "{\"id\":\"1\"}", "{\"name\":\"a\"}", "{}", "\"a\"", "[\"1\",\"a\"]",
            "{\"id\":\"1\",\"name\":null}", "{\"id\":\"\",\"name\":\"a\"}", "{\"id\":\"1\",\"name\":\"\"}",
        ] {
            #expect(try place(json) == nil)
        }
    }

    @Test("An empty list of friends is kept; a list with anything but strings is dropped")
    func friends() throws {
        #expect(try profile("user_friends", "[]").friendIDs == [])
        #expect(try profile("user_friends", "[]").permissions == [.userFriends])
        #expect(try profile("user_friends", "[\"1\",\"\\u0032\"]").friendIDs == ["1", "2"])
        for json in ["[1]", "[\"1\",2]", "[[\"1\"]]", "\"1\"", "{}", "null", "[null]"] {
            #expect(try profile("user_friends", json).friendIDs == nil)
        }
    }

    @Test(
        "A claim of the wrong type or without text is dropped, and the token is good",
        arguments: [
            "name", "given_name", "middle_name", "family_name", "email", "picture", "user_link", "user_gender",
            "user_birthday",
        ],
        ["5", "null", "[\"x\"]", "{}", "true", "\"\""]
    )
    func wrongTypes(claim: String, json: String) throws {
        let profile = try profile(claim, json)
        #expect(profile.permissions.isEmpty)
        #expect(profile.name == nil && profile.firstName == nil && profile.middleName == nil && profile.lastName == nil)
        #expect(profile.email == nil && profile.imageURL == nil && profile.linkURL == nil && profile.gender == nil)
        #expect(profile.birthday == nil)
    }

    @Test(
        "Each permission is shown by its claims",
        arguments: [
            ("name", "\"x\"", [.publicProfile]), ("picture", "\"x\"", [.publicProfile]), ("email", "\"x\"", [.email]),
            ("user_age_range", "{\"min\":21}", [.userAgeRange]), ("user_birthday", "\"1990\"", [.userBirthday]),
            ("user_friends", "[]", [.userFriends]), ("user_gender", "\"x\"", [.userGender]),
            ("user_hometown", "{\"id\":\"1\",\"name\":\"x\"}", [.userHometown]), ("user_link", "\"x\"", [.userLink]),
            ("user_location", "{\"id\":\"1\",\"name\":\"x\"}", [.userLocation]),
        ] as [(String, String, [Permission])]
    )
    func permissions(claim: String, json: String, permissions: [Permission]) throws {
        let token = try Login.verify(Login.token(claim, json))
        #expect(token.profile.permissions == permissions)
        #expect(token.missingPermissions(among: permissions).isEmpty)
    }

    @Test("A requested permission is missing if no claim shows it, unless no claim can")
    func missingPermissions() throws {
        let token = try Login.verify(StandInKeys.current.mint(Login.claims))
        #expect(
            token.missingPermissions(among: [.email, .userMessengerContact, .gamingProfile]) == [
                .email, .gamingProfile,
            ]
        )
        let gaming = try Login.verify(Login.token("name", "\"x\""))
        #expect(gaming.missingPermissions(among: [.gamingProfile, .gamingUserPicture]) == [.gamingUserPicture])
        let full = try Login.verify(StandInKeys.current.mint(Login.fullClaims))
        #expect(full.missingPermissions(among: Permission.allCases).isEmpty)
    }

    @Test(
        "The gaming permissions replace public_profile if a login asked for them without it",
        arguments: [
            ([], [.publicProfile, .email]), ([.email], [.publicProfile, .email]),
            ([.publicProfile], [.publicProfile, .email]), ([.gamingProfile], [.email, .gamingProfile]),
            ([.gamingUserPicture], [.email, .gamingUserPicture]),
            ([.gamingProfile, .gamingUserPicture], [.email, .gamingProfile, .gamingUserPicture]),
            ([.publicProfile, .gamingProfile], [.publicProfile, .email]),
        ] as [([Permission], [Permission])]
    )
    func gaming(asked: [Permission], shown: [Permission]) throws {
        var claims = Login.claims
        claims.name = "A"
        claims.picture = "https://x.test/p"
        claims.email = "a@x.test"
        let token = try Login.verify(StandInKeys.current.mint(claims))
        #expect(token.shownPermissions(among: asked) == shown && token.missingPermissions(among: asked).isEmpty)
    }

    @Test("A gaming permission without its claim is missing, and public_profile does not replace it")
    func missingGaming() throws {
        let token = try Login.verify(Login.token("given_name", "\"x\""))
        let asked: [Permission] = [.gamingProfile, .gamingUserPicture]
        #expect(token.shownPermissions(among: asked).isEmpty && token.missingPermissions(among: asked) == asked)
        #expect(token.shownPermissions(among: [.email]) == [.publicProfile])
    }

    @Test("The limited scope has twelve permissions and no other")
    func scope() {
        #expect(Permission.allCases.count == 12)
        #expect(Permission.allCases.allSatisfy { Permission(rawValue: $0.rawValue) == $0 })
        for name in ["user_likes", "openid", "", "Email", "emai", "email ", "user_photos", "pages_show_list"] {
            #expect(Permission(rawValue: name) == nil)
        }
        #expect(Set(Permission.allCases.map { PermissionSet($0).rawValue }).count == 12)
    }
}
