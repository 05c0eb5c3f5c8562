/// A copy of an accepted login, for your own store or out of an answer of your own service. **It proves nothing**: decode no
/// record that a client sent.
///
/// It has the facts of the token, and those of the profile as members of its own: `record.email`. The JSON is that of the
/// service's answers; it has neither the token nor claims that this library does not read.
@dynamicMemberLookup
public struct LoginRecord: Equatable, Codable, Sendable, Redacted {
    /// The app that the login was for.
    public let appID: String
    /// The nonce of the login; nil if the token has none, or if that of an access token was not checked.
    public let nonce: String?
    /// The time at which Facebook issued the token; nil if Graph does not give it.
    public let issuedAt: NumericDate?
    /// The end of the token's life; nil if it does not expire.
    public let expiresAt: NumericDate?
    /// The RFC 7638 thumbprint of the device's key that the login is bound to; nil if there is none, and empty if the
    /// token's `cnf` names no key.
    public let keyThumbprint: String?
    private let profile: Profile

    private enum CodingKeys: String, CodingKey {
        case idToken = "authentication_token"
        case accessToken = "access_token"
        case profile, audience, subject, nonce, confirmation
        case appID = "app_id"
        case userID = "user_id"
        case issuedAt = "issued_at"
        case expiresAt = "expires_at"
        case keyThumbprint = "key_thumbprint"
    }

    /// The record of a login with an id token.
    public init(_ login: VerifiedToken) {
        let token = login.authenticationToken
        (appID, nonce, keyThumbprint) = (token.audience, token.nonce, token.keyThumbprint)
        (issuedAt, expiresAt, profile) = (token.issuedAt, token.expiresAt, login.profile)
    }

    /// The record of a login with an access token.
    public init(_ login: VerifiedAccessToken) {
        let token = login.inspection
        (appID, nonce, keyThumbprint) = (token.appID, login.nonce?.value, nil)
        (issuedAt, expiresAt, profile) = (token.issuedAt, token.expiresAt, login.profile)
    }

    /// A fact of the login's ``Profile``.
    public subscript<Fact>(dynamicMember fact: KeyPath<Profile, Fact>) -> Fact { profile[keyPath: fact] }

    /// Reads a record, or the service's answer about an id token or an access token.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        let isIDToken = members.contains(.idToken)
        let token = try members.nestedContainer(keyedBy: CodingKeys.self, forKey: isIDToken ? .idToken : .accessToken)
        appID = try token.decode(String.self, forKey: isIDToken ? .audience : .appID)
        nonce = try token.decodeIfPresent(String.self, forKey: .nonce)
        issuedAt = try token.decodeIfPresent(NumericDate.self, forKey: .issuedAt)
        expiresAt = try token.decodeIfPresent(NumericDate.self, forKey: .expiresAt)
        keyThumbprint =
            token.contains(.confirmation) ? "" : try token.decodeIfPresent(String.self, forKey: .keyThumbprint)
        profile = try Profile(stored: members.superDecoder(forKey: .profile))
        guard try token.decode(String.self, forKey: isIDToken ? .subject : .userID) == profile.userID else {
            throw DecodingError.unfit("the token and the profile are of two people", decoder)
        }
    }

    /// Writes the record without the token itself: a store or a log must not contain a login credential.
    public func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        var token = members.nestedContainer(keyedBy: CodingKeys.self, forKey: .idToken)
        try token.encode(appID, forKey: .audience)
        try token.encode(profile.userID, forKey: .subject)
        try token.encodeIfPresent(nonce, forKey: .nonce)
        try token.encodeIfPresent(issuedAt, forKey: .issuedAt)
        try token.encodeIfPresent(expiresAt, forKey: .expiresAt)
        if keyThumbprint == "" {
            try token.encode("unreadable", forKey: .confirmation)
        } else {
            try token.encodeIfPresent(keyThumbprint, forKey: .keyThumbprint)
        }
        try members.encode(profile, forKey: .profile)
    }
}

struct MemberName: CodingKey, ExpressibleByStringLiteral {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init(stringLiteral text: String) { stringValue = text }
    init(_ name: StaticString) { stringValue = "\(name)" }
    init?(intValue: Int) { nil }
}

/// A value with a token, a nonce, a secret or facts about a person: its text and its mirror show nothing of them.
public protocol Redacted: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {}

extension Redacted {
    /// The type's name alone.
    public var description: String { "\(Self.self)(…)" }
    /// The same as `description`.
    public var debugDescription: String { description }
    /// No children: `dump` shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
