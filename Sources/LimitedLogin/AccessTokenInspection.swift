internal import LLBytes
internal import LLJOSE

/// An access token that Graph vouches for: the answer of `GET /debug_token`, judged.
///
/// An access token says nothing by itself, and `/me` answers the holder of any app's token: this is where a token of
/// another app is refused, so judge it before `/me` is asked. Fetches nothing and asks no clock
/// (Meta, "Debugging and Error Handling: debug_token").
public struct AccessTokenInspection: Equatable, Sendable {
    /// `app_id`: the app the token is for.
    public let appID: String
    /// `user_id`: the person, under an ID that only this app knows.
    public let userID: String
    /// `issued_at`: when it was issued. Graph tells it of long-lived tokens alone.
    public let issuedAt: NumericDate?
    /// `expires_at`: until when it is valid; nil when it does not expire.
    public let expiresAt: NumericDate?
    /// `data_access_expires_at`: until when the app may read the person's data; told, not judged.
    public let dataAccessExpiresAt: NumericDate?
    /// `scopes`: the permissions the person granted.
    public let permissions: [String]

    /// Least length of an access token in bytes. 20: a word is no token.
    package static let leastByteCount = 20
    /// Greatest length of an access token in bytes. 4,096: real ones have about 200.
    package static let greatestByteCount = 4_096
    /// The life of a short-lived token in seconds: what stands for `issued_at` where Graph does not tell it.
    package static let shortLifeSeconds: Double = 7_200
    /// How much Facebook's clock may be ahead in seconds: a minute.
    private static let clockMarginSeconds: Double = 60
    /// Greatest length of a permission's name in bytes: 64.
    private static let permissionByteLimit = 64

    package enum Shape: Equatable, Sendable {
        /// An access token may look like this.
        case accessToken
        /// A JWT: an id token was sent as an access token.
        case jwt
        /// A token of Facebook's gaming domain: it begins with `GG|`, and Graph cannot read it.
        case gaming
        /// Neither.
        case malformed
    }

    /// Tells an access token from an id token that was sent in its place.
    package static func shape(_ token: Span<UInt8>) -> Shape {
        var header: [UInt8] = []
        if let jws = try? JWSCompactSerialization(splitting: token), Base64URL.decode(token, jws.header, into: &header),
            header.first == UInt8(ascii: "{")
        {
            return .jwt
        }
        guard (leastByteCount...greatestByteCount).contains(token.count) else { return .malformed }
        for index in 0..<token.count where !ASCII.isVisible(token[index]) { return .malformed }
        return token.equal(0..<3, "GG|") ? .gaming : .accessToken
    }

    /// Judges what Graph said about a token.
    /// - Parameters:
    ///   - answer: the body of the answer with status 200.
    ///   - appIDs: the apps the token may be for.
    ///   - subject: the person the token must belong to; nil for anybody.
    ///   - maximumTokenAgeSeconds: the greatest age of the token; nil leaves it to Graph. With a bound, a token whose issue
    ///     Graph does not tell is refused.
    ///   - clockSkewSeconds: how much older it may be, for the clocks.
    ///   - now: the time to judge as of.
    /// - Throws: ``AccessTokenRejection``; ``AccessTokenRejection/unreadableAnswer`` is no fault of the token.
    public init(
        debugToken answer: [UInt8],
        appIDs: [String],
        subject: String? = nil,
        maximumTokenAgeSeconds: Int? = nil,
        clockSkewSeconds: Int = 60,
        now: NumericDate
    ) throws(AccessTokenRejection) {
        let json = try JSONObject.graph(answer)
        guard let data = json.object("data"), let isValid = json.bool("is_valid", of: data) else {
            throw .unreadableAnswer
        }
        guard isValid else { throw Self.rejection(json, data) }
        // A yes beside an error is no answer.
        guard json.member("error", of: data) == nil else { throw .unreadableAnswer }
        // A valid token of a page or of an app logs nobody in.
        guard let type = json.string("type", of: data) else { throw .unreadableAnswer }
        guard type == "USER" else { throw .otherType }
        guard let app = json.identifier("app_id", of: data) else { throw .unreadableAnswer }
        guard appIDs.contains(where: { $0.utf8.elementsEqual(app.utf8) }) else { throw .otherApp }
        guard let user = json.identifier("user_id", of: data) else { throw .noUser }
        guard json.member("expires_at", of: data) != nil else { throw .noExpiry }
        guard let expiresAt = json.date("expires_at", of: data) else { throw .unreadableAnswer }
        // 0 says that the token does not expire.
        guard expiresAt.secondsSince1970 == 0 || now < expiresAt else { throw .expired }
        issuedAt = json.moment("issued_at", of: data)
        if let maximumTokenAgeSeconds {
            guard let issuedAt else { throw .unknownAge }
            let age = now.secondsSince1970 - issuedAt.secondsSince1970
            guard age <= Double(maximumTokenAgeSeconds) + Double(clockSkewSeconds) else { throw .tooOld }
        }
        if let subject {
            guard subject.utf8.elementsEqual(user.utf8) else { throw .subjectMismatch }
        }
        appID = app
        userID = user
        self.expiresAt = expiresAt.secondsSince1970 == 0 ? nil : expiresAt
        dataAccessExpiresAt = json.moment("data_access_expires_at", of: data)
        permissions = json.member("scopes", of: data).map { json.strings($0) }?.filter(Self.isPermission) ?? []
    }

    /// The moment to compare with a revocation: `issued_at`, else two hours before it expires. A token that would be
    /// issued ahead of `now` by that, or does not expire, lives longer than two hours: its issue is not known, and any
    /// revocation counts.
    package func earliestIssue(now: NumericDate) -> NumericDate {
        if let issuedAt { return issuedAt }
        let seconds = max(0, (expiresAt?.secondsSince1970 ?? 0) - Self.shortLifeSeconds)
        // Facebook's clock may be ahead by as much.
        let isKnown = seconds <= now.secondsSince1970 + Self.clockMarginSeconds
        return (isKnown ? NumericDate(secondsSince1970: seconds) : nil) ?? .beginning
    }

    /// Why Graph says that a token is not valid: `data.error.subcode`.
    private static func rejection(_ json: borrowing JSONObject, _ data: Int) -> AccessTokenRejection {
        guard let error = json.object("error", of: data) else { return .invalid }
        return AccessTokenRejection(subcode: json.integer("subcode", of: error))
    }

    /// Whether the text is what Graph's permissions are called: 1 to 64 of `[a-z_.]`.
    package static func isPermission(_ name: String) -> Bool {
        (1...permissionByteLimit).contains(name.utf8.count)
            && name.utf8.allSatisfy { $0 &- 0x61 < 26 || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: ".") }
    }
}

/// A person whose access token was judged, with what `/me` says about them.
public struct VerifiedAccessToken: Equatable, Sendable {
    /// What Graph said about the token.
    public let inspection: AccessTokenInspection
    /// What `/me` said about the person. Its `permissions` are those of Limited Login among the scopes.
    public let profile: Profile

    /// The fields to ask `/me` for: `id`, and those whose permission was granted.
    package static func fields(for inspection: AccessTokenInspection) -> [String] {
        ["id"] + granted.filter { inspection.permissions.contains($0.permission) }.flatMap(\.fields)
    }

    private static let granted: [(permission: String, fields: [String])] = [
        ("public_profile", ["name", "first_name", "middle_name", "last_name", "picture"]), ("email", ["email"]),
        ("user_friends", ["friends"]), ("user_birthday", ["birthday"]), ("user_age_range", ["age_range"]),
        ("user_hometown", ["hometown"]), ("user_location", ["location"]), ("user_gender", ["gender"]),
        ("user_link", ["link"]),
    ]

    /// Judges the answer of `GET /me`, asked with the person's own token.
    /// - Parameters:
    ///   - answer: the body of the answer with status 200. Ask for `id` and the fields whose permission was granted:
    ///     others, and those of the wrong type, are left out. Graph gives 25 friends unless you ask for
    ///     `friends.limit(2000){id}`.
    ///   - inspection: what Graph said about the token before.
    /// - Throws: ``AccessTokenRejection`` when it is the answer of another person, or no answer.
    public init(me answer: [UInt8], of inspection: AccessTokenInspection) throws(AccessTokenRejection) {
        let json = try JSONObject.graph(answer)
        guard let id = json.identifier("id") else { throw .unreadableAnswer }
        guard id.utf8.elementsEqual(inspection.userID.utf8) else { throw .otherPerson }
        self.inspection = inspection
        let asked = Self.fields(for: inspection)
        // A field that was not asked for is not passed on.
        func text(_ name: StaticString) -> String? {
            asked.contains("\(name)") ? json.string(name).flatMap { $0.isEmpty ? nil : $0 } : nil
        }
        func member(_ name: StaticString) -> Int? {
            asked.contains("\(name)") ? json.member(name) : nil
        }
        profile = Profile(
            userID: id,
            name: text("name"),
            firstName: text("first_name"),
            middleName: text("middle_name"),
            lastName: text("last_name"),
            email: text("email"),
            imageURL: member("picture").flatMap { json.pictureURL($0) },
            linkURL: text("link"),
            friendIDs: member("friends").flatMap { json.friendIDs($0) },
            birthday: text("birthday").flatMap { Birthday(Array($0.utf8).span, 0..<$0.utf8.count) },
            ageRange: member("age_range").flatMap { json.ageRange($0) },
            hometown: member("hometown").flatMap { json.place($0) },
            location: member("location").flatMap { json.place($0) },
            gender: text("gender"),
            permissions: Permission.allCases.filter { inspection.permissions.contains($0.rawValue) },
            isLimited: false
        )
    }
}

/// Why an access token was refused, or why it cannot be judged. Nothing here holds the token.
public struct AccessTokenRejection: Error, Equatable, Sendable, CustomStringConvertible {
    /// The stable code; nil when it cannot be told whether the token is good.
    public let code: String?
    /// One sentence that a person can act on.
    public let description: String

    /// Graph's answer cannot be read: no fault of the token, and no reason to log anybody out.
    public static let unreadableAnswer = Self(nil, "Graph's answer about the access token cannot be read.")

    package static let invalid = Self(
        "access_token_invalid",
        "Graph says that the access token is not valid. Where tracking is denied, SDK 17 and later give the app a "
            + "placeholder: send AuthenticationToken.current.tokenString as id_token instead."
    )
    package static let gaming = Self(
        "access_token_invalid",
        "The access token begins with GG|: it is of the gaming domain, which Graph cannot vouch for. Have the app log in with "
            + "Facebook Login, or send the login's id token as id_token."
    )
    package static let otherType = Self(
        "access_token_invalid",
        "The access token is an app's or a page's, not a person's."
    )
    package static let noUser = Self("access_token_invalid", "Graph names no person whose access token it is.")
    package static let noExpiry = Self(
        "access_token_invalid",
        "Graph does not say until when the access token is valid."
    )
    package static let otherPerson = Self(
        "access_token_invalid",
        "Graph names another person for the access token than its holder."
    )
    package static let expired = Self("access_token_expired", "The access token expired: have the app log in again.")
    package static let revoked = Self(
        "access_token_revoked",
        "The access token was revoked, by the person or by Facebook: have the app log in again."
    )
    package static let tooOld = Self(
        "too_old",
        "The access token is older than max_token_age_seconds allows: have the app log in again."
    )
    package static let unknownAge = Self(
        "too_old",
        "Graph does not tell when the access token was issued, so it may be older than max_token_age_seconds allows: send an "
            + "id token, or an access token that lives long."
    )
    package static let otherApp = Self("invalid_audience", "The access token was issued for another app.")
    package static let subjectMismatch = Self(
        "subject_mismatch",
        "The access token belongs to another person than the subject given."
    )

    private init(_ code: String?, _ description: String) {
        self.code = code
        self.description = description
    }

    /// Why Graph takes a token no more, by the subcode of its error 190.
    package init(subcode: Int64?) {
        switch subcode {
        case 463: self = .expired
        // The person removed the app, is held at a checkpoint's end, or changed the password; or the session was ended.
        case 458, 460, 466, 467: self = .revoked
        default: self = .invalid
        }
    }
}

/// What Facebook's answers and tokens hold besides plain members.
extension JSONObject {
    /// `{"min": number, "max": number}`; a member of the wrong type drops the whole.
    func ageRange(_ node: Int) -> AgeRange? {
        guard let minimum = bound("min", of: node), let maximum = bound("max", of: node) else { return nil }
        return AgeRange(minimum: minimum, maximum: maximum)
    }

    /// A whole number, or nothing; nil for any other value.
    private func bound(_ name: StaticString, of node: Int) -> Int?? {
        guard let bound = member(name, of: node) else { return .some(nil) }
        return document.wholeNumber(bound, in: bytes.span).map { .some($0) }
    }

    /// One of Facebook's IDs: 1 to 20 digits, those of a 64-bit number, as a string or a number.
    func identifier(_ name: StaticString, of node: Int? = nil) -> String? {
        guard let node = member(name, of: node), document.isString(node) || document.isNumber(node) else { return nil }
        // Of a number this is its text: a sign, a fraction or an exponent is no digit.
        let text = string(node)
        let isID = (1...20).contains(text.utf8.count) && text.utf8.allSatisfy { ASCII.digit($0) != nil }
        return isID ? text : nil
    }

    /// Greatest number of friends that are told: 5,000, which is how many a person can have.
    private static var friendLimit: Int { 5_000 }

    fileprivate static func graph(_ bytes: [UInt8]) throws(AccessTokenRejection) -> JSONObject {
        // 1 MiB and five values for each friend: what the answer of `/me` may take.
        let limits = JSONLimits(byteCount: 1_048_576, nodeCount: 65_536)
        guard let object = JSONObject(bytes, limits: limits), object.member("error") == nil else {
            throw .unreadableAnswer
        }
        return object
    }

    /// A moment; nil too for 0, which says that there is none.
    fileprivate func moment(_ name: StaticString, of node: Int) -> NumericDate? {
        date(name, of: node).flatMap { $0.secondsSince1970 == 0 ? nil : $0 }
    }

    /// `{"data": {"url": string}}`.
    fileprivate func pictureURL(_ node: Int) -> String? {
        object("data", of: node).flatMap { string("url", of: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// `{"data": [{"id": string}, …]}`; nil where one has no ID.
    fileprivate func friendIDs(_ node: Int) -> [String]? {
        guard let list = member("data", of: node), document.kind(list) == .array else { return nil }
        var friends: [String] = []
        for element in document.children(of: list) {
            guard document.isObject(element), let id = identifier("id", of: element), friends.count < Self.friendLimit
            else { return nil }
            friends.append(id)
        }
        return friends
    }

    /// `{"id": string, "name": string}`; a place without both is none.
    fileprivate func place(_ node: Int) -> Profile.Place? {
        guard document.isObject(node), let id = identifier("id", of: node), let name = string("name", of: node),
            !name.isEmpty
        else { return nil }
        return Profile.Place(id: id, name: name)
    }
}
