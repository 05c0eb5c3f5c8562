/// The checks of a verdict, in the order they are made.
public enum VerificationCheck: Int, CaseIterable, Comparable, Sendable {
    /// What the caller expects can be meant.
    case expectation
    /// The token is not too long.
    case size
    /// It has three parts in strict base64url.
    case serialization
    /// Its header is one JSON object.
    case header
    /// `alg`.
    case algorithm
    /// `crit` and `b64`.
    case criticalHeader
    /// `typ`, and no sign of an encrypted or nested token.
    case type
    /// `kid`.
    case keyID
    /// The issuer's key set has that key.
    case key
    /// The signature.
    case signature
    /// The payload is one JSON object.
    case payload
    /// `iss`.
    case issuer
    /// `aud`, and `azp` where it is there.
    case audience
    /// `exp`, `iat`, `nbf` and the age.
    case times
    /// `sub` and `jti`.
    case identity
    /// `nonce` or `sub`, as the login expects.
    case binding
    /// `at_hash`.
    case tracking

    /// What the check asks, for a person.
    public var title: String {
        switch self {
        case .expectation: "The expectation names a configured app and a login"
        case .size: "The token is at most \(VerificationLimits.tokenByteCount) bytes long"
        case .serialization: "The token is a JWS of three parts in strict base64url"
        case .header: "The header is one JSON object that names no member twice"
        case .algorithm: "The algorithm is RS256"
        case .criticalHeader: "The header demands no extension"
        case .type: "The token says it is a JWT, neither encrypted nor nested"
        case .keyID: "The header names its key"
        case .key: "The issuer publishes that key"
        case .signature: "The signature is the issuer's"
        case .payload: "The payload is one JSON object that names no member twice"
        case .issuer: "The issuer is trusted"
        case .audience: "The token is meant for this app"
        case .times: "The token is valid now"
        case .identity: "The token names its subject and itself"
        case .binding: "The token belongs to this login"
        case .tracking: "The tracking of the login is allowed"
        }
    }

    /// Whether the left check is made before the right one.
    public static func < (left: VerificationCheck, right: VerificationCheck) -> Bool {
        left.rawValue < right.rawValue
    }
}
