/// Why it cannot be told whether a token is good: a fault of the keys or of the clock, never of the token.
///
/// Answer 503 and let the app try again. End no session for it.
public struct VerificationUnavailable: Error, Equatable, Sendable, CustomStringConvertible {
    /// There are no keys to verify with, or they cannot be used.
    public static let keys = VerificationUnavailable("No keys are available to verify with; try again later.")
    /// OpenSSL failed.
    public static let cryptography = VerificationUnavailable("OpenSSL failed, so nothing is known about the token.")
    /// The clock gives no time.
    public static let clock = VerificationUnavailable("The clock gives no time to judge a token by; set it right.")

    private let sentence: String
    /// Why the provider of keys gave none: its own error, such as a `JWKSetCacheError`, or `CancellationError` where the task was
    /// cancelled. Nil where the keys or the clock are at fault themselves.
    public private(set) var underlyingError: (any Error)?

    private init(_ sentence: String) { self.sentence = sentence }

    /// The provider of keys threw this.
    static func keys(_ error: any Error) -> Self {
        var unavailable = Self.keys
        unavailable.underlyingError = error
        return unavailable
    }

    /// One sentence for the log, and the provider's own.
    public var description: String { underlyingError.map { "\(sentence) \($0)" } ?? sentence }

    /// Whether both are a fault of the keys, or both of the clock, whatever the provider's error.
    public static func == (left: Self, right: Self) -> Bool { left.sentence == right.sentence }
}
