/// A copy of an accepted login, for your own store or out of an answer of your own service. **It proves nothing**: decode no
/// record that a client sent.
///
/// It has the facts of the token, and those of the profile as members of its own: `record.email`. The JSON is that of the
/// service's answers, without the token.
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
        let members = try decoder.container(keyedBy: MemberName.self)
        let isIDToken = members.contains("authentication_token")
        let name: MemberName = isIDToken ? "authentication_token" : "access_token"
        let token = try members.nestedContainer(keyedBy: MemberName.self, forKey: name)
        appID = try token.decode(String.self, forKey: isIDToken ? "audience" : "app_id")
        nonce = try token.decodeIfPresent(String.self, forKey: "nonce")
        issuedAt = try token.decodeIfPresent(NumericDate.self, forKey: "issued_at")
        expiresAt = try token.decodeIfPresent(NumericDate.self, forKey: "expires_at")
        keyThumbprint =
            token.contains("confirmation") ? "" : try token.decodeIfPresent(String.self, forKey: "key_thumbprint")
        profile = try Profile(stored: members.superDecoder(forKey: "profile"))
        guard try token.decode(String.self, forKey: isIDToken ? "subject" : "user_id") == profile.userID else {
            throw DecodingError.unfit("the token and the profile are of two people", decoder)
        }
    }

    /// Writes the record without the token itself.
    public func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: MemberName.self)
        var token = members.nestedContainer(keyedBy: MemberName.self, forKey: "authentication_token")
        try token.encode(appID, forKey: "audience")
        try token.encode(profile.userID, forKey: "subject")
        try token.encodeIfPresent(nonce, forKey: "nonce")
        try token.encodeIfPresent(issuedAt, forKey: "issued_at")
        try token.encodeIfPresent(expiresAt, forKey: "expires_at")
        if keyThumbprint == "" {
            try token.encode("unreadable", forKey: "confirmation")
        } else {
            try token.encodeIfPresent(keyThumbprint, forKey: "key_thumbprint")
        }
        try members.encode(profile, forKey: "profile")
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
