internal import LLBytes
internal import LLJOSE

/// An access token that Graph confirmed: the judged answer of `GET /debug_token`.
///
/// `/me` answers the holder of any app's token. This check refuses a token of another app, so make it before you ask
/// `/me` (Meta, "Debugging and Error Handling: debug_token").
public struct AccessTokenInspection: Equatable, Sendable, Redacted {
    /// `app_id`: the app the token is for.
    public let appID: String
    /// `user_id`: the person, under an ID that only this app knows.
    public let userID: String
    /// `issued_at`: the time of issue; nil if Graph does not give it. Graph gives it for long-lived tokens only.
    public let issuedAt: NumericDate?
    /// `expires_at`; nil if the token does not expire.
    public let expiresAt: NumericDate?
    /// `data_access_expires_at`: the time until which the app may read the person's data; passed on, not judged.
    public let dataAccessExpiresAt: NumericDate?
    /// `scopes`: the permissions that the person granted.
    public let permissions: [String]

    /// The lifetime of a short-lived token, in seconds: two hours. It replaces `issued_at` if Graph does not give that.
    package static let shortLifeSeconds: Double = 7_200
    package enum Shape: Equatable, Sendable {
        case accessToken
        /// A JWT: an id token was sent as an access token.
        case jwt
        /// A token of Facebook's gaming domain, which Graph cannot read.
        case gaming
        case malformed
    }

    package static func shape(_ token: Span<UInt8>) -> Shape {
        var header: [UInt8] = []
        if let jws = JWSCompactSerialization(splitting: token), Base64URL.decode(token, jws.header, into: &header),
            header.first == UInt8(ascii: "{")
        {
            return .jwt
        }
        // A single word is not a token, and real ones have about 200 bytes.
        guard (20...4_096).contains(token.count), token.indices.allSatisfy({ ASCII.isVisible(token[$0]) }),
            !PastedToken.isWrapped(token)
        else { return .malformed }
        return token.equal(0..<3, "GG|") ? .gaming : .accessToken
    }

    /// Judges Graph's answer about a token.
    /// - Parameters:
    ///   - answer: The body of the answer with status 200.
    ///   - appIDs: The apps that the token may be for.
    ///   - subject: The person that the token must belong to; nil for any person.
    ///   - maximumTokenAge: The greatest age of the token, not below 0; nil leaves it to Graph. With a bound, a token is
    ///     refused if Graph does not give its time of issue.
    ///   - clockSkew: It is added to the greatest age: 0 to 300 s. The time of issue may be ahead by 300 s in any case.
    ///   - now: The time for which to judge.
    /// - Throws: ``Rejection``; ``Unavailable/unreadableAnswer``, which is not the token's fault.
    public init(
        debugToken answer: [UInt8],
        appIDs: [String],
        subject: String? = nil,
        maximumTokenAge: Duration? = nil,
        clockSkew: Duration = VerificationPolicy.defaultClockSkew,
        now: NumericDate
    ) throws {
        let json = try JSONObject.graph(answer)
        guard let data = json.object("data"), let isValid = json.bool("is_valid", of: data) else {
            throw Unavailable.unreadableAnswer
        }
        guard isValid else {
            let error = json.object("error", of: data)
            throw Rejection.accessToken(subcode: error.flatMap { json.integer("subcode", of: $0) })
        }
        // An answer with both `is_valid` and an error cannot be trusted.
        guard json.member("error", of: data) == nil, let type = json.string("type", of: data) else {
            throw Unavailable.unreadableAnswer
        }
        // A valid token of a page or of an app is not a person's login.
        guard type == "USER" else { throw Rejection.accessTokenOfNoPerson }
        guard let app = json.identifier("app_id", of: data) else { throw Unavailable.unreadableAnswer }
        guard appIDs.contains(where: { $0.utf8.elementsEqual(app.utf8) }) else { throw Rejection.accessTokenOfOtherApp }
        guard let user = json.identifier("user_id", of: data) else { throw Rejection.accessTokenWithoutUser }
        guard json.member("expires_at", of: data) != nil else { throw Rejection.accessTokenWithoutExpiry }
        guard let expiresAt = json.date("expires_at", of: data) else { throw Unavailable.unreadableAnswer }
        // 0 means that the token does not expire.
        guard expiresAt.secondsSince1970 == 0 || now < expiresAt else { throw Rejection.accessTokenExpired }
        issuedAt = json.moment("issued_at", of: data)
        // No revocation would ever be later than a time of issue in the future.
        let lead = Duration.seconds(VerificationLimits.clockSkewSeconds)
        if let issuedAt, issuedAt.isAhead(of: now, clockSkew: lead) { throw Unavailable.unreadableAnswer }
        if let maximumTokenAge {
            guard let issuedAt else { throw Rejection.accessTokenOfUnknownAge }
            let age = now.secondsSince1970 - issuedAt.secondsSince1970
            guard age <= max(0, maximumTokenAge.asSeconds) + NumericDate.skew(clockSkew) else {
                throw Rejection.accessTokenTooOld
            }
        }
        guard subject.map({ $0.utf8.elementsEqual(user.utf8) }) ?? true else {
            throw Rejection.accessTokenOfOtherSubject
        }
        appID = app
        userID = user
        self.expiresAt = expiresAt.secondsSince1970 == 0 ? nil : expiresAt
        dataAccessExpiresAt = json.moment("data_access_expires_at", of: data)
        permissions = json.member("scopes", of: data).map { json.strings($0) }?.filter(PermissionName.isValid) ?? []
    }

    /// The time to compare with a revocation: `issued_at`, or else two hours before the expiry. If that is ahead, or if the
    /// token does not expire, it lives longer than two hours. Its time of issue is then unknown, and any revocation counts.
    package func earliestIssue(now: NumericDate) -> NumericDate {
        if let issuedAt { return issuedAt }
        let seconds = max(0, (expiresAt?.secondsSince1970 ?? 0) - Self.shortLifeSeconds)
        // Facebook's clock may be ahead by a minute.
        let isKnown = seconds <= now.secondsSince1970 + 60
        return (isKnown ? NumericDate(secondsSince1970: seconds) : nil) ?? .beginning
    }
}

/// The person of a judged access token, with the facts of `/me` about them.
public struct VerifiedAccessToken: Equatable, Sendable, Redacted {
    /// Graph's judged answer about the token.
    public let inspection: AccessTokenInspection
    /// The facts of `/me`; its `permissions` are those of Limited Login among the scopes.
    public let profile: Profile
    /// The nonce of the login, if it was checked; without it the token is tied to no login.
    public package(set) var nonce: AccessTokenNonce?

    /// The fields to ask `/me` for: `id`, and those with a granted permission.
    package static func fields(for inspection: AccessTokenInspection) -> [String] {
        let granted = PersonalClaim.table.filter { inspection.permissions.contains($0.permission.rawValue) }
        return ["id"] + granted.map { "\($0.field)" }
    }

    /// Judges the answer of `GET /me`, asked with the person's own token.
    /// - Parameters:
    ///   - answer: The body of the answer with status 200. Request `id` and the fields with a granted permission. Graph gives
    ///     25 friends unless you request `friends.limit(2000){id}`.
    ///   - inspection: Graph's earlier answer about the token.
    /// - Throws: ``Rejection`` if the answer is about another person, ``Unavailable/unreadableAnswer`` if it is no answer.
    public init(me answer: [UInt8], of inspection: AccessTokenInspection) throws {
        let json = try JSONObject.graph(answer)
        guard let id = json.identifier("id") else { throw Unavailable.unreadableAnswer }
        guard id.utf8.elementsEqual(inspection.userID.utf8) else { throw Rejection.accessTokenOfAnother }
        self.inspection = inspection
        var profile = Profile(
            userID: id,
            permissions: Permission.allCases.filter { inspection.permissions.contains($0.rawValue) },
            isLimited: false
        )
        // A field that was not requested is not passed on.
        for (row, fact) in PersonalClaim.rows where inspection.permissions.contains(row.permission.rawValue) {
            guard let node = json.member(row.field) else { continue }
            switch row.claim {
            case .picture: profile.imageURL = json.pictureURL(node)
            case .userFriends: profile.friendIDs = json.friendIDs(node)
            default: profile.read(fact, node, in: json)
            }
        }
        self.profile = profile
    }
}

extension JSONObject {
    /// One of Facebook's IDs: 1 to 20 digits, those of a 64-bit number, as a string or a number.
    func identifier(_ name: StaticString, of node: Int? = nil) -> String? {
        guard let node = member(name, of: node), document.isString(node) || document.isNumber(node) else { return nil }
        // For a number this is its text: a sign, a fraction or an exponent is no digit.
        let text = string(node)
        let isID = (1...20).contains(text.utf8.count) && text.utf8.allSatisfy { ASCII.digit($0) != nil }
        return isID ? text : nil
    }

    static func graph(_ bytes: [UInt8]) throws(Unavailable) -> JSONObject {
        // The answer of `/me` may have 1 MiB, and five values for each friend.
        let limits = JSONLimits(byteCount: 1_048_576, nodeCount: 65_536)
        guard let object = JSONObject(bytes, limits: limits), object.member("error") == nil else {
            throw Unavailable.unreadableAnswer
        }
        return object
    }

    /// A time; nil also for 0, which means that there is none.
    fileprivate func moment(_ name: StaticString, of node: Int) -> NumericDate? {
        date(name, of: node).flatMap { $0.secondsSince1970 == 0 ? nil : $0 }
    }

    /// `{"data": {"url": string}}`.
    fileprivate func pictureURL(_ node: Int) -> String? {
        object("data", of: node).flatMap { member("url", of: $0) }.flatMap { text($0) }
    }

    /// The most friends that a person can have: 5,000.
    private static var friendLimit: Int { 5_000 }

    /// `{"data": [{"id": string}, …]}`; nil if one has no ID, and for more than ``friendLimit``.
    fileprivate func friendIDs(_ node: Int) -> [String]? {
        guard let list = member("data", of: node), document.kind(list) == .array else { return nil }
        let elements = document.children(of: list)
        let friends = elements.compactMap { document.isObject($0) ? identifier("id", of: $0) : nil }
        return friends.count == elements.count && friends.count <= Self.friendLimit ? friends : nil
    }
}
