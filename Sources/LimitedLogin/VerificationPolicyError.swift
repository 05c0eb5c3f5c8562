/// Why a policy cannot be meant.
public enum VerificationPolicyError: Error, Equatable, Sendable, CustomStringConvertible {
    /// No app ID is given.
    case noAppID
    /// An app ID is empty, too long, or holds white space or other than visible ASCII.
    case invalidAppID(String)
    /// No issuer is given.
    case noIssuer
    /// An issuer is no `https` URL and no `http` URL of a loopback host.
    case invalidIssuer(String)
    /// The clock skew is negative or greater than 300 s.
    case clockSkewOutOfRange(Int)
    /// The greatest token age is not positive, or absurdly great.
    case maximumTokenAgeOutOfRange(Int)

    /// One sentence for the person who configures.
    public var description: String {
        switch self {
        case .noAppID:
            "At least one app ID is needed: a token without a known audience could be meant for any app."
        case .invalidAppID(let text):
            "\(text.debugDescription) is no app ID: give 1 to \(VerificationLimits.appIDByteCount) visible ASCII characters without white space."
        case .noIssuer:
            "At least one issuer is needed; Facebook's is https://www.facebook.com."
        case .invalidIssuer(let text):
            "\(text.debugDescription) is no issuer: give an https URL (http only for a loopback host)."
        case .clockSkewOutOfRange(let seconds):
            "A clock skew of \(seconds) s is out of range: 0 to \(VerificationLimits.clockSkewSeconds) s."
        case .maximumTokenAgeOutOfRange(let seconds):
            "A greatest token age of \(seconds) s is out of range: 1 to \(Int32.max) s."
        }
    }
}
