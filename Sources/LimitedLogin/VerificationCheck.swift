/// The checks of a verdict, in the order they are made.
public enum VerificationCheck: Int, CaseIterable, Comparable, Sendable {
    case expectation
    case size
    case serialization
    case header
    case algorithm
    case criticalHeader
    case type
    case keyID
    case key
    case signatureLength
    case signature
    case payload
    case issuer
    case audience
    case times
    case identity
    case binding
    case tracking

    /// What the check asks, for a person.
    public var title: String { "" }

    public static func < (left: VerificationCheck, right: VerificationCheck) -> Bool {
        left.rawValue < right.rawValue
    }
}
