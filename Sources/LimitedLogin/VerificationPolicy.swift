/// What is accepted: apps, issuers, clock skew, age, binding and tracking. No member turns a check off.
public struct VerificationPolicy: Sendable {
    /// Whether a token must be bound to a login.
    public enum Binding: String, CaseIterable, Sendable {
        /// A nonce, raw nonce or subject must be given.
        case required
        /// A token may be judged by itself.
        case optional
    }

    /// Which `LoginTracking` is accepted.
    public enum Tracking: String, CaseIterable, Sendable {
        /// Facebook Login and Limited Login.
        case any
        /// Limited Login alone.
        case limited
    }

    /// Both issuers Facebook has used: today's, and the one before September 2021.
    public static let defaultIssuers = ["https://www.facebook.com", "https://facebook.com"]

    /// The apps tokens may be for; a token's `aud` is one of them, byte for byte.
    public let appIDs: [String]
    /// The issuers trusted; a token's `iss` is one of them, byte for byte.
    public let issuers: [String]
    /// How far the clocks of issuer and verifier may be apart, in seconds: 0 to 300.
    public let clockSkewSeconds: Int
    /// The greatest age of a token since `iat` in seconds, at least 1; nil leaves it to `exp` alone.
    public let maximumTokenAgeSeconds: Int?
    /// Whether a token must be bound to a login.
    public let binding: Binding
    /// Which tracking is accepted.
    public let tracking: Tracking

    /// A policy; refuses what cannot be meant.
    /// - Parameters:
    ///   - appIDs: at least one; each 1 to 128 visible ASCII characters.
    ///   - issuers: at least one; each an `https` URL, or an `http` URL of a loopback host.
    ///   - clockSkewSeconds: 0 to 300.
    ///   - maximumTokenAgeSeconds: at least 1, or nil.
    ///   - binding: whether a token must be bound to a login.
    ///   - tracking: which tracking is accepted.
    public init(
        appIDs: [String],
        issuers: [String] = defaultIssuers,
        clockSkewSeconds: Int = 60,
        maximumTokenAgeSeconds: Int? = nil,
        binding: Binding = .required,
        tracking: Tracking = .any
    ) throws(VerificationPolicyError) {
        guard !appIDs.isEmpty else { throw .noAppID }
        for appID in appIDs where !Self.isAppID(appID) { throw .invalidAppID(appID) }
        guard !issuers.isEmpty else { throw .noIssuer }
        for issuer in issuers where !Self.isIssuer(issuer) { throw .invalidIssuer(issuer) }
        guard (0...VerificationLimits.clockSkewSeconds).contains(clockSkewSeconds) else {
            throw .clockSkewOutOfRange(clockSkewSeconds)
        }
        if let age = maximumTokenAgeSeconds, !(1...Int(Int32.max)).contains(age) {
            throw .maximumTokenAgeOutOfRange(age)
        }
        self.appIDs = appIDs
        self.issuers = issuers
        self.clockSkewSeconds = clockSkewSeconds
        self.maximumTokenAgeSeconds = maximumTokenAgeSeconds
        self.binding = binding
        self.tracking = tracking
    }

    private static func isAppID(_ text: String) -> Bool {
        isVisibleASCII(text) && text.utf8.count <= VerificationLimits.appIDByteCount
    }

    /// OpenID Connect Core section 2 wants an `https` URL; loopback is for stand-ins on the same machine.
    private static func isIssuer(_ text: String) -> Bool {
        guard isVisibleASCII(text), text.utf8.count <= VerificationLimits.issuerByteCount else { return false }
        if text.hasPrefix("https://") { return text.utf8.count > "https://".utf8.count }
        return ["http://127.0.0.1", "http://localhost", "http://[::1]"].contains { loopback in
            let rest = text.utf8.dropFirst(loopback.utf8.count)
            return text.hasPrefix(loopback)
                && (rest.isEmpty || rest.first == UInt8(ascii: ":") || rest.first == UInt8(ascii: "/"))
        }
    }

    private static func isVisibleASCII(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }
}
