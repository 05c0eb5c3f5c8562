/// The checks of a verdict, in the order they are made. Later versions may know more of them.
public struct VerificationCheck: Hashable, Comparable, CaseIterable, Sendable, CustomStringConvertible {
    private enum Known: Int, CaseIterable {
        case expectation, size, serialization, header, algorithm, criticalHeader, type, keyID, key, signature
        case payload, issuer, audience, times, identity, binding, device, tracking, accessToken
    }

    private let known: Known

    private init(_ known: Known) { self.known = known }

    /// The expectation names a configured app and a login.
    public static let expectation = VerificationCheck(.expectation)
    /// The token is not too long.
    public static let size = VerificationCheck(.size)
    /// It has three parts in strict base64url.
    public static let serialization = VerificationCheck(.serialization)
    /// Its header is one JSON object.
    public static let header = VerificationCheck(.header)
    /// `alg`.
    public static let algorithm = VerificationCheck(.algorithm)
    /// `crit` and `b64`.
    public static let criticalHeader = VerificationCheck(.criticalHeader)
    /// `typ`, and no sign of an encrypted or nested token.
    public static let type = VerificationCheck(.type)
    /// `kid`.
    public static let keyID = VerificationCheck(.keyID)
    /// The issuer's key set has that key.
    public static let key = VerificationCheck(.key)
    /// The signature.
    public static let signature = VerificationCheck(.signature)
    /// The payload is one JSON object.
    public static let payload = VerificationCheck(.payload)
    /// `iss`.
    public static let issuer = VerificationCheck(.issuer)
    /// `aud`, and `azp` where it is there.
    public static let audience = VerificationCheck(.audience)
    /// `exp`, `iat`, `nbf` and the age.
    public static let times = VerificationCheck(.times)
    /// `sub` and `jti`.
    public static let identity = VerificationCheck(.identity)
    /// `nonce` or `sub`, as the login expects.
    public static let binding = VerificationCheck(.binding)
    /// `cnf.jkt`, where the caller knows the device's key.
    public static let device = VerificationCheck(.device)
    /// `at_hash`, as far as it tells the tracking.
    public static let tracking = VerificationCheck(.tracking)
    /// `at_hash`, where the caller has the access token.
    public static let accessToken = VerificationCheck(.accessToken)

    /// All checks, in their order.
    public static let allCases = Known.allCases.map { VerificationCheck($0) }

    /// The check's name, as in ``VerificationCheck/keyID``.
    public var description: String { "\(known)" }

    /// What the check asks, for a person.
    public var title: String {
        switch known {
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
        case .device: "The token is bound to the key of the login's device"
        case .tracking: "The tracking of the login is allowed"
        case .accessToken: "The access token came together with the token"
        }
    }

    /// Whether the left check is made before the right one.
    public static func < (left: VerificationCheck, right: VerificationCheck) -> Bool {
        left.known.rawValue < right.known.rawValue
    }
}
