internal import LLBytes

/// The checks of a verdict, in their order. Later versions may know more of them.
public struct VerificationCheck: Hashable, Comparable, CaseIterable, Sendable, CustomStringConvertible {
    private let place: Int
    /// The check's name, as in ``VerificationCheck/keyID``.
    public let description: String
    /// The check's title, for a person.
    public let title: String

    private init(_ place: Int, _ description: String, _ title: String) {
        self.place = place
        self.description = description
        self.title = title
    }

    /// The expectation names a configured app and a login.
    public static let expectation = Self(0, "expectation", "You named an app and a login")
    /// The token is not too long.
    public static let size = Self(
        1,
        "size",
        "The token has 1 to \(DecimalNumber.grouped(VerificationLimits.tokenByteCount)) bytes"
    )
    /// It has three parts in strict base64url.
    public static let serialization = Self(2, "serialization", "The token is a JWS of three parts in strict base64url")
    /// Its header is one JSON object.
    public static let header = Self(3, "header", "The header is one JSON object that names no member twice")
    /// `alg`.
    public static let algorithm = Self(4, "algorithm", "The algorithm is RS256")
    /// `crit` and `b64`.
    public static let criticalHeader = Self(5, "criticalHeader", "The header demands no extension")
    /// `typ`, and no sign of an encrypted or nested token.
    public static let type = Self(6, "type", "The token says it is a JWT, neither encrypted nor nested")
    /// `kid`.
    public static let keyID = Self(7, "keyID", "The header names its key")
    /// The issuer's key set has that key.
    public static let key = Self(8, "key", "The issuer publishes that key")
    /// The signature.
    public static let signature = Self(9, "signature", "The signature is the issuer's")
    /// The payload is one JSON object.
    public static let payload = Self(10, "payload", "The payload is one JSON object that names no member twice")
    /// `iss`.
    public static let issuer = Self(11, "issuer", "The issuer is trusted")
    /// `aud`, and `azp` if it exists.
    public static let audience = Self(12, "audience", "The token is meant for this app")
    /// `exp`, `iat`, `nbf` and the age.
    public static let times = Self(13, "times", "The token is valid now")
    /// `sub` and `jti`.
    public static let identity = Self(14, "identity", "The token names its subject and itself")
    /// `nonce` or `sub`, as the login expects.
    public static let binding = Self(15, "binding", "The token belongs to this login")
    /// `cnf.jkt`, if the caller knows the device's key.
    public static let device = Self(16, "device", "The token is bound to the key of the login's device")
    /// `at_hash`, as far as it shows the tracking.
    public static let tracking = Self(17, "tracking", "The tracking of the login is allowed")
    /// `at_hash`, if the caller has the access token.
    public static let accessToken = Self(18, "accessToken", "The access token came together with the token")

    /// All checks, in their order.
    public static let allCases: [Self] = [
        .expectation, .size, .serialization, .header, .algorithm, .criticalHeader, .type, .keyID, .key, .signature,
        .payload, .issuer, .audience, .times, .identity, .binding, .device, .tracking, .accessToken,
    ]

    /// True if the left check comes before the right one.
    public static func < (left: VerificationCheck, right: VerificationCheck) -> Bool { left.place < right.place }
}
