internal import LLBytes
internal import LLJOSE
public import LimitedLogin

/// The key of a test issuer. It signs tokens in Facebook's format, with any claims.
///
/// ```swift
/// let key = try TestKey()
/// let verifier = LoginVerifier(policy: policy, keys: FixedKeys(key))
/// let token = try key.token(claims: ["aud": "1234", "nonce": "n-1", "name": "Jane Doe"])
/// ```
///
/// Making a key takes a tenth of a second: share one among your tests.
public struct TestKey: Sendable, Redacted {
    /// The default `iss` of the tokens: Facebook's.
    public static let issuer = VerificationPolicy.defaultIssuers[0]
    /// The default `aud` of the tokens: an app id.
    public static let appID = "123456789012345"
    /// The default `sub` of the tokens: a user id.
    public static let userID = CatalogueWorkshop.janesID

    private let minter: TokenMinter
    private let device: ProofMinter

    /// A new RSA key of 2,048 bits, and a new P-256 key of a device.
    /// - Throws: An error if OpenSSL cannot make a key.
    public init() throws {
        minter = try TokenMinter.make()
        device = ProofMinter(key: try PrivateKey(.p256))
    }

    /// `kid`: the name of the key, 40 hexadecimal digits as at Facebook.
    public var keyID: String { minter.keyID }

    /// The JWK Set that holds this key alone.
    public var keySet: JWKSet { Self.keySet([self]) }

    /// The JWK Set of these keys.
    public static func keySet(_ keys: [TestKey]) -> JWKSet {
        // The text is made here, so it can be parsed. If it could not be, the tests would fail for lack of a key.
        (try? JWKSet(parsing: TokenMinter.jwkSet(keys.map(\.minter)).span)) ?? JWKSet(keys: [])
    }

    /// The JWK Set of these keys as the JSON text of an issuer's answer, for tests of a `JWKSetSource`.
    public static func keySetJSON(_ keys: [TestKey]) -> String {
        String(decoding: TokenMinter.jwkSet(keys.map(\.minter)), as: UTF8.self)
    }

    /// A token with these claims in Facebook's format.
    /// - Parameters:
    ///   - claims: Any claims, also with wrong types. The claims of every token are filled in: `iss`, `aud`, `sub`,
    ///     `iat`, `exp` an hour after it, `jti`, and an empty `nonce`.
    ///   - omitted: A claim that is not filled in.
    ///   - now: The default `iat` of the token.
    /// - Throws: An error if OpenSSL cannot sign, or if a claim is a number that is not finite.
    public func token(
        claims: [String: ClaimValue] = [:],
        without omitted: String? = nil,
        now: NumericDate = .now
    ) throws -> String {
        let payload = try Self.template(TestKey.appID).payload(
            claims: Array(ClaimValue.object(claims).json.utf8),
            now: now.wholeSeconds,
            without: omitted
        )
        return try minter.mint(payload: payload)
    }

    /// A token with exactly this header and this payload, JSON or not.
    public func token(header: String, payload: String) throws -> String {
        try minter.mint(header: Array(header.utf8), payload: Array(payload.utf8))
    }

    /// A signed request about a person, as Facebook sends it to the callbacks, under the secret of an app.
    public func signedRequest(userID: String = userID, secret: String, now: NumericDate = .now) throws -> String {
        try SignedRequestMinter.mint(userID: userID, issuedAt: now.wholeSeconds, appSecret: secret)
    }

    /// The RFC 7638 thumbprint of the device's key, to which `"cnf": ["jkt": …]` binds a token.
    public var keyThumbprint: String { get throws { try device.thumbprint() } }

    /// A DPoP proof of the device for one request with this token (RFC 9449 section 4.2), for the URL without its query.
    public func dpopProof(method: String, url: String, token: String, now: NumericDate = .now) throws -> String {
        try device.mint(method: method, url: url, token: token, issuedAt: now.wholeSeconds)
    }

    /// One bad token for each reason for which every policy refuses a token, and the tokens that find a mistake in your
    /// handler: one of another login, another person's refresh, and last a good one that comes twice.
    public func badTokens(appID: String = appID, nonce: String, now: NumericDate = .now) throws -> [BadToken] {
        let workshop = CatalogueWorkshop(
            template: Self.template(appID),
            keys: (minter, minter, try TokenMinter.make()),
            nonce: nonce,
            now: now.wholeSeconds
        )
        return try (CatalogueEntry.all + Self.sequences).compactMap { entry in
            let isPlain = entry.requestMembers(workshop).allSatisfy { $0 == (name: "nonce", value: nonce) }
            guard isPlain, entry.setting == nil, let code = entry.code else { return nil }
            return BadToken(
                name: entry.name,
                fault: entry.fault,
                code: code,
                token: try entry.token(workshop),
                presentations: entry.presentations
            )
        }
    }

    private static let sequences = [
        CatalogueEntry("other-login", .nonceMismatch, "It is of another login; its nonce is in the token alone.") {
            try $0.token([("nonce", "\"of-another-login\"")])
        },
        // The SDK makes such a nonce itself.
        CatalogueEntry("other-refresh", .nonceMismatch, "It is a refreshed token of another person.") {
            try $0.token([("sub", "\"1000200030004000\""), ("nonce", "\"6F9619FF-8B86-D011-B42D-00C04FC964FF\"")])
        },
        CatalogueEntry("twice", .nonceUsed, "It is good, but it comes a second time.", presentations: 2) {
            try $0.token()
        },
    ]

    private static func template(_ appID: String) -> ClaimsTemplate { ClaimsTemplate(issuer: issuer, audience: appID) }
}

/// A provider of fixed keys, or of none; it replaces a `JWKSetCache` in tests.
public struct FixedKeys: JWKSetProvider {
    /// The error of the provider ``unavailable``.
    public struct Unavailable: Error, Equatable {}

    /// A provider with a source that is down: a `LoginVerifier` throws `Unavailable`.
    public static let unavailable = FixedKeys(nil)

    private let keySet: JWKSet?

    private init(_ keySet: JWKSet?) { self.keySet = keySet }

    /// A provider of this set.
    public init(_ keySet: JWKSet) { self.keySet = keySet }

    /// A provider of these keys.
    public init(_ keys: TestKey...) { keySet = TestKey.keySet(keys) }

    /// The same set for every key ID.
    public nonisolated(nonsending) func keySet(containing keyID: String) async throws(Unavailable) -> JWKSet {
        guard let keySet else { throw Unavailable() }
        return keySet
    }
}

/// A token that a server must refuse.
public struct BadToken: Sendable, Redacted {
    /// A short name: lower-case letters and `-`.
    public let name: String
    /// The fault of the token, in one sentence.
    public let fault: String
    /// The code of its refusal.
    public let code: Rejection.Code
    /// The token.
    public let token: String
    /// How often to send the token: the last time it must be refused. 1 for all but the good token that comes twice.
    public private(set) var presentations = 1

    /// The name.
    public var description: String { name }
}

/// The value of a claim, given as a literal: `"text"`, `5`, `1.5`, `true`, `nil` for JSON's null, an array or a dictionary.
public struct ClaimValue: Sendable, Equatable {
    let json: String

    /// True or false.
    public static func bool(_ value: Bool) -> ClaimValue { ClaimValue(json: "\(value)") }
    /// A whole number.
    public static func integer(_ value: Int64) -> ClaimValue { ClaimValue(json: "\(value)") }
    /// Any other number.
    public static func number(_ value: Double) -> ClaimValue { ClaimValue(json: "\(value)") }
    /// A text.
    public static func string(_ value: String) -> ClaimValue { ClaimValue(json: FacebookJSON.string(value)) }
    /// A list of values.
    public static func array(_ values: [ClaimValue]) -> ClaimValue {
        ClaimValue(json: "[\(values.map(\.json).joined(separator: ","))]")
    }
    /// Values by their names.
    public static func object(_ members: [String: ClaimValue]) -> ClaimValue {
        ClaimValue(json: FacebookJSON.object(members.sorted { $0.key < $1.key }.map { ($0.key, $0.value.json) }))
    }
}

extension ClaimValue: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByStringInterpolation, ExpressibleByArrayLiteral,
    ExpressibleByDictionaryLiteral
{
    /// JSON's null.
    public init(nilLiteral: ()) { json = "null" }
    /// True or false.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// A whole number.
    public init(integerLiteral value: Int64) { self = .integer(value) }
    /// A number.
    public init(floatLiteral value: Double) { self = .number(value) }
    /// A text.
    public init(stringLiteral value: String) { self = .string(value) }
    /// A list of values.
    public init(arrayLiteral elements: ClaimValue...) { self = .array(elements) }
    /// Values by their names; the last one of a repeated name counts.
    public init(dictionaryLiteral elements: (String, ClaimValue)...) { self = .object(Dictionary(elements) { $1 }) }
}
