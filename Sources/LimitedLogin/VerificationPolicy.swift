/// What is accepted: apps, issuers, clock skew, age, binding and tracking. No member turns a check off.
public struct VerificationPolicy: Sendable {
    /// Whether a token must be bound to a login.
    public enum Binding: String, CaseIterable, Sendable {
        case required
        case optional
    }

    /// Which `LoginTracking` is accepted.
    public enum Tracking: String, CaseIterable, Sendable {
        case any
        case limited
    }

    /// Both issuers Facebook has used: today's, and the one before September 2021.
    public static let defaultIssuers = ["https://www.facebook.com", "https://facebook.com"]

    public let appIDs: [String]
    public let issuers: [String]
    public let clockSkewSeconds: Int
    public let maximumTokenAgeSeconds: Int?
    public let binding: Binding
    public let tracking: Tracking

    public init(
        appIDs: [String],
        issuers: [String] = defaultIssuers,
        clockSkewSeconds: Int = 60,
        maximumTokenAgeSeconds: Int? = nil,
        binding: Binding = .required,
        tracking: Tracking = .any
    ) throws(VerificationPolicyError) {
        self.appIDs = appIDs
        self.issuers = issuers
        self.clockSkewSeconds = clockSkewSeconds
        self.maximumTokenAgeSeconds = maximumTokenAgeSeconds
        self.binding = binding
        self.tracking = tracking
    }
}
