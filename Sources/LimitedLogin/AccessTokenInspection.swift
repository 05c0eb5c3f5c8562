internal import LLBytes
internal import LLJOSE

/// An access token that Graph confirmed: the judged answer of `GET /debug_token`.
///
/// An access token says nothing by itself, and `/me` answers the holder of any app's token. This check refuses a token
/// of another app, so make it before `/me` is asked. It fetches nothing and reads no clock (Meta, "Debugging and Error
/// Handling: debug_token").
public struct AccessTokenInspection: Equatable, Codable, Sendable {
    /// `app_id`: the app the token is for.
    public let appID: String
    /// `user_id`: the person, under an ID that only this app knows.
    public let userID: String
    /// `issued_at`: the time of issue; nil if Graph does not give it. Graph gives it for long-lived tokens only.
    public let issuedAt: NumericDate?
    /// `expires_at`: the end of the token's life; nil if it does not expire.
    public let expiresAt: NumericDate?
    /// `data_access_expires_at`: the time until which the app may read the person's data; passed on, not judged.
    public let dataAccessExpiresAt: NumericDate?
    /// `scopes`: the permissions that the person granted.
    public let permissions: [String]

    private enum CodingKeys: String, CodingKey {
        case appID = "app_id"
        case userID = "user_id"
        case issuedAt = "issued_at"
        case expiresAt = "expires_at"
        case dataAccessExpiresAt = "data_access_expires_at"
        case permissions
    }

    /// What Graph said, for tests of code that is given it.
    public init(
        appID: String,
        userID: String,
        issuedAt: NumericDate? = nil,
        expiresAt: NumericDate? = nil,
        dataAccessExpiresAt: NumericDate? = nil,
        permissions: [String] = []
    ) {
        self.appID = appID
        self.userID = userID
        self.issuedAt = issuedAt
        self.expiresAt = expiresAt
        self.dataAccessExpiresAt = dataAccessExpiresAt
        self.permissions = permissions
    }

    /// Least length of an access token in bytes. 20: a word is no token.
    package static let leastByteCount = 20
    /// Greatest length of an access token in bytes. 4,096: real ones have about 200.
    package static let greatestByteCount = 4_096
    /// The life of a short-lived token in seconds: two hours. It replaces `issued_at` if Graph does not give that.
    package static let shortLifeSeconds: Double = 7_200
    /// The time in seconds by which Facebook's clock may be ahead: a minute.
    private static let clockMarginSeconds: Double = 60
    /// Greatest length of a permission's name in bytes: 64.
    private static let permissionByteLimit = 64

    package enum Shape: Equatable, Sendable {
        /// The text may be an access token.
        case accessToken
        /// A JWT: an id token was sent as an access token.
        case jwt
        /// A token of Facebook's gaming domain: it begins with `GG|`, and Graph cannot read it.
        case gaming
        /// None of these.
        case malformed
    }

    /// Distinguishes an access token from an id token that was sent in its place.
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

    /// Judges Graph's answer about a token.
    /// - Parameters:
    ///   - answer: The body of the answer with status 200.
    ///   - appIDs: The apps that the token may be for.
    ///   - subject: The person that the token must belong to; nil for any person.
    ///   - maximumTokenAgeSeconds: The greatest age of the token; nil leaves it to Graph. With a bound, a token is
    ///     refused if Graph does not give its time of issue.
    ///   - clockSkewSeconds: The difference between the clocks that is added to the greatest age.
    ///   - now: The time for which to judge.
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
        // "Valid" together with an error is no answer.
        guard json.member("error", of: data) == nil else { throw .unreadableAnswer }
        // A valid token of a page or of an app is no person's login.
        guard let type = json.string("type", of: data) else { throw .unreadableAnswer }
        guard type == "USER" else { throw .otherType }
        guard let app = json.identifier("app_id", of: data) else { throw .unreadableAnswer }
        guard appIDs.contains(where: { $0.utf8.elementsEqual(app.utf8) }) else { throw .otherApp }
        guard let user = json.identifier("user_id", of: data) else { throw .noUser }
        guard json.member("expires_at", of: data) != nil else { throw .noExpiry }
        guard let expiresAt = json.date("expires_at", of: data) else { throw .unreadableAnswer }
        // 0 means that the token does not expire.
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

    /// The moment to compare with a revocation: `issued_at`, else two hours before the expiry. If that is later than
    /// `now` allows, or if the token does not expire, the token lives longer than two hours. Its time of issue is then
    /// unknown, and any revocation counts.
    package func earliestIssue(now: NumericDate) -> NumericDate {
        if let issuedAt { return issuedAt }
        let seconds = max(0, (expiresAt?.secondsSince1970 ?? 0) - Self.shortLifeSeconds)
        // Facebook's clock may be ahead by this margin.
        let isKnown = seconds <= now.secondsSince1970 + Self.clockMarginSeconds
        return (isKnown ? NumericDate(secondsSince1970: seconds) : nil) ?? .beginning
    }

    /// The reason why Graph calls a token invalid: `data.error.subcode`.
    private static func rejection(_ json: borrowing JSONObject, _ data: Int) -> AccessTokenRejection {
        guard let error = json.object("error", of: data) else { return .invalid }
        return AccessTokenRejection(subcode: json.integer("subcode", of: error))
    }

    /// True if the text has the form of Graph's permission names: 1 to 64 of `[a-z_.]`.
    package static func isPermission(_ name: String) -> Bool {
        (1...permissionByteLimit).contains(name.utf8.count)
            && name.utf8.allSatisfy { $0 &- 0x61 < 26 || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: ".") }
    }
}

/// The person of a judged access token, with the facts of `/me` about them.
public struct VerifiedAccessToken: Equatable, Codable, Sendable {
    /// What Graph said about the token.
    public let inspection: AccessTokenInspection
    /// The facts of `/me` about the person. Its `permissions` are those of Limited Login among the scopes.
    public let profile: Profile
    /// The nonce of the login, where it was asked for; without it the token is tied to no login.
    public package(set) var nonce: AccessTokenNonce?

    private enum CodingKeys: String, CodingKey {
        case inspection = "access_token"
        case profile
    }

    /// A judged person, for tests of code that is given one.
    public init(inspection: AccessTokenInspection, profile: Profile) {
        self.inspection = inspection
        self.profile = profile
    }

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
    ///   - answer: The body of the answer with status 200. Request `id` and the fields with a granted permission: other
    ///     fields, and those of the wrong type, are left out. Graph gives 25 friends unless you request
    ///     `friends.limit(2000){id}`.
    ///   - inspection: Graph's earlier answer about the token.
    /// - Throws: ``AccessTokenRejection`` if the answer is about another person, or is no answer.
    public init(me answer: [UInt8], of inspection: AccessTokenInspection) throws(AccessTokenRejection) {
        let json = try JSONObject.graph(answer)
        guard let id = json.identifier("id") else { throw .unreadableAnswer }
        guard id.utf8.elementsEqual(inspection.userID.utf8) else { throw .otherPerson }
        self.inspection = inspection
        let asked = Self.fields(for: inspection)
        // A field that was not requested is not passed on.
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

/// The reason why an access token was refused or cannot be judged. No part of the token is in it.
public struct AccessTokenRejection: Error, Equatable, Sendable, CustomStringConvertible {
    /// The stable codes of a refusal. Later versions may know more of them.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The code as it is written in logs.
        public let rawValue: String

        private init(_ rawValue: String) { self.rawValue = rawValue }

        /// Graph does not confirm the token, or not a person's.
        public static let invalid = Self("access_token_invalid")
        /// The token expired.
        public static let expired = Self("access_token_expired")
        /// The person or Facebook revoked the token.
        public static let revoked = Self("access_token_revoked")
        /// The token is older than is allowed, or its age is not known.
        public static let tooOld = Self(TokenRejection.Code.tooOld.rawValue)
        /// The token is for another app.
        public static let invalidAudience = Self(TokenRejection.Code.invalidAudience.rawValue)
        /// The token belongs to another person.
        public static let subjectMismatch = Self(TokenRejection.Code.subjectMismatch.rawValue)
        /// No refusal: Graph's answer cannot be read.
        public static let unreadableAnswer = Self("unreadable_answer")
        /// The same as `rawValue`.
        public var description: String { rawValue }
    }

    /// The stable code.
    public let code: Code
    /// One sentence that a person can act on.
    public let description: String
    /// One sentence of what to do; nil where nothing closer is known than the code says.
    package let hint: String?

    /// Graph's answer cannot be read: this is no fault of the token, and no reason to log a person out.
    public static let unreadableAnswer = Self(
        .unreadableAnswer,
        "Graph's answer about the access token cannot be read."
    )

    package static let invalid = Self(
        .invalid,
        "Graph says that the access token is not valid. Where tracking is denied, SDK 17 and later give the app a "
            + "placeholder: send AuthenticationToken.current.tokenString as id_token instead.",
        "An iPhone app with SDK 17 or later gets this placeholder where tracking is denied: have it send "
            + "AuthenticationToken.current.tokenString as id_token; otherwise copy the token anew, whole."
    )
    package static let gaming = Self(
        .invalid,
        "The access token begins with GG|: it is of the gaming domain, which Graph cannot vouch for. Have the app log in with "
            + "Facebook Login, or send the login's id token as id_token.",
        "Have the app log in with Facebook Login instead of the gaming domain, or send "
            + "AuthenticationToken.current.tokenString as id_token."
    )
    package static let otherType = Self(
        .invalid,
        "The access token is an app's or a page's, not a person's.",
        "Send the token that the login gave the app, not one that a server made for itself."
    )
    package static let noUser = Self(
        .invalid,
        "Graph names no person whose access token it is.",
        lookAtTheDebugger
    )
    package static let noExpiry = Self(
        .invalid,
        "Graph does not say until when the access token is valid.",
        lookAtTheDebugger
    )
    package static let otherPerson = Self(
        .invalid,
        "Graph names another person for the access token than its holder.",
        "Refuse the login and have the person log in again; Graph contradicts itself."
    )
    package static let expired = Self(
        .expired,
        "The access token expired: have the app log in again."
    )
    package static let revoked = Self(
        .revoked,
        "The access token was revoked, by the person or by Facebook: have the app log in again.",
        "The person removed the app or changed the password, or Facebook ended the session: end yours, and have the person log "
            + "in again."
    )
    package static let tooOld = Self(
        .tooOld,
        "The access token is older than max_token_age_seconds allows: have the app log in again.",
        logInOrAllow
    )
    package static let unknownAge = Self(
        .tooOld,
        "Graph does not tell when the access token was issued, so it may be older than max_token_age_seconds allows: send an "
            + "id token, or an access token that lives long.",
        logInOrAllow
    )
    package static let otherApp = Self(
        .invalidAudience,
        "The access token was issued for another app.",
        "Look whether LIMITED_LOGIN_APP_IDS is right, and facebook_app_id in the app's strings.xml, FacebookAppID in its "
            + "Info.plist, appId in FB.init."
    )
    package static let subjectMismatch = Self(
        .subjectMismatch,
        "The access token belongs to another person than the subject given.",
        Refusal.subjectMismatch.hint
    )

    private static let lookAtTheDebugger =
        "Look at the token in Facebook's Access Token Debugger, since Graph answers so for no login of a person."
    private static let logInOrAllow =
        "Have the app log in again, or set LIMITED_LOGIN_MAX_TOKEN_AGE_SECONDS higher: an app keeps its access token for up "
        + "to 60 days."

    private init(_ code: Code, _ description: String, _ hint: String? = nil) {
        self.code = code
        self.description = description
        self.hint = hint
    }

    init(_ fault: NonceFault) { self.init(fault.code.rawValue, fault.sentence("The access token's login")) }

    /// The reason why Graph no longer accepts a token, from the subcode of its error 190.
    package init(subcode: Int64?) {
        switch subcode {
        case 463: self = .expired
        // The person removed the app, is held at a checkpoint's end, or changed the password; or the session was ended.
        case 458, 460, 466, 467: self = .revoked
        default: self = .invalid
        }
    }
}

/// The compound values of Facebook's answers and tokens.
extension JSONObject {
    /// `{"min": number, "max": number}`; a member of the wrong type makes the whole nil.
    func ageRange(_ node: Int) -> AgeRange? {
        guard let minimum = bound("min", of: node), let maximum = bound("max", of: node) else { return nil }
        return AgeRange(minimum: minimum, maximum: maximum)
    }

    /// A whole number, or no value; nil for any other value.
    private func bound(_ name: StaticString, of node: Int) -> Int?? {
        guard let bound = member(name, of: node) else { return .some(nil) }
        return document.wholeNumber(bound, in: bytes.span).map { .some($0) }
    }

    /// One of Facebook's IDs: 1 to 20 digits, those of a 64-bit number, as a string or a number.
    func identifier(_ name: StaticString, of node: Int? = nil) -> String? {
        guard let node = member(name, of: node), document.isString(node) || document.isNumber(node) else { return nil }
        // For a number this is its text: a sign, a fraction or an exponent is no digit.
        let text = string(node)
        let isID = (1...20).contains(text.utf8.count) && text.utf8.allSatisfy { ASCII.digit($0) != nil }
        return isID ? text : nil
    }

    /// Greatest number of friends that are passed on: 5,000, the most that a person can have.
    private static var friendLimit: Int { 5_000 }

    static func graph(_ bytes: [UInt8]) throws(AccessTokenRejection) -> JSONObject {
        // The answer of `/me` may have 1 MiB, and five values for each friend.
        let limits = JSONLimits(byteCount: 1_048_576, nodeCount: 65_536)
        guard let object = JSONObject(bytes, limits: limits), object.member("error") == nil else {
            throw .unreadableAnswer
        }
        return object
    }

    /// A moment; nil also for 0, which means that there is none.
    fileprivate func moment(_ name: StaticString, of node: Int) -> NumericDate? {
        date(name, of: node).flatMap { $0.secondsSince1970 == 0 ? nil : $0 }
    }

    /// `{"data": {"url": string}}`.
    fileprivate func pictureURL(_ node: Int) -> String? {
        object("data", of: node).flatMap { string("url", of: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// `{"data": [{"id": string}, …]}`; nil if one has no ID.
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
