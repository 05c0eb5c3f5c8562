/// Why a policy cannot be meant.
public enum VerificationPolicyError: Error, Equatable, Sendable, CustomStringConvertible {
    case noAppID
    case invalidAppID(String)
    case noIssuer
    case invalidIssuer(String)
    case clockSkewOutOfRange(Int)
    case maximumTokenAgeOutOfRange(Int)

    /// One sentence for the person who configures.
    public var description: String { "" }
}
