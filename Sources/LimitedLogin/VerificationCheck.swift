/// The checks of a verdict, in their order. Later versions may know more of them.
@nonexhaustive  // SE-0487
public enum VerificationCheck: String, CaseIterable, Sendable {
    /// The expectation names a configured app and a login.
    case expectation = "You named an app and a login"
    /// The token is not too long.
    case size = "The token has 1 to 32,768 bytes"
    /// It has three parts in strict base64url.
    case serialization = "The token is a JWS of three parts in strict base64url"
    /// Its header is one JSON object.
    case header = "The header is one JSON object that names no member twice"
    /// `alg`.
    case algorithm = "The algorithm is RS256"
    /// `crit` and `b64`.
    case criticalHeader = "The header demands no extension"
    /// `typ`, and no sign of an encrypted or nested token.
    case type = "The token says it is a JWT, neither encrypted nor nested"
    /// `kid`.
    case keyID = "The header names its key"
    /// The issuer's key set has that key.
    case key = "The issuer publishes that key"
    /// The signature.
    case signature = "The signature is the issuer's"
    /// The payload is one JSON object.
    case payload = "The payload is one JSON object that names no member twice"
    /// `iss`.
    case issuer = "The issuer is trusted"
    /// `aud`, and `azp` if it exists.
    case audience = "The token is meant for this app"
    /// `exp`, `iat`, `nbf` and the age.
    case times = "The token is valid now"
    /// `sub` and `jti`.
    case identity = "The token names its subject and itself"
    /// `nonce` or `sub`, as the login expects.
    case binding = "The token belongs to this login"
    /// `cnf.jkt`, if the caller knows the device's key.
    case device = "The token is bound to the key of the login's device"
    /// `at_hash`, as far as it shows the tracking.
    case tracking = "The tracking of the login is allowed"
    /// `at_hash`, if the caller has the access token.
    case accessToken = "The access token came together with the token"

    /// The check's title, for a person.
    public var title: String { rawValue }
}
