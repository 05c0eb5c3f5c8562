/// The reason why a token cannot be judged: a fault of the keys or the clock, never of the token.
///
/// Answer 503 and let the app try again; 429 if ``underlyingError`` is `JWKSetCacheError.exhausted`, which made-up tokens alone
/// can cause. End no session for it.
public struct VerificationUnavailable: Error, Equatable, Sendable, CustomStringConvertible {
    /// There are no keys to verify with, or they are unusable.
    public static let keys = VerificationUnavailable("No keys are available to verify with; try again later.")
    /// OpenSSL failed.
    public static let cryptography = VerificationUnavailable("OpenSSL failed, so nothing is known about the token.")
    /// The clock gives no time.
    public static let clock = VerificationUnavailable("The clock gives no time to judge a token by; set it right.")

    private let sentence: String
    /// The error of the provider of keys, such as a `JWKSetCacheError`, or `CancellationError` if the task was
    /// cancelled. Nil if the keys themselves or the clock are at fault.
    public private(set) var underlyingError: (any Error)?

    private init(_ sentence: String) { self.sentence = sentence }

    /// The error after the provider of keys threw `error`.
    static func keys(_ error: any Error) -> Self {
        var unavailable = Self.keys
        unavailable.underlyingError = error
        return unavailable
    }

    /// One sentence for the log, followed by that of the provider.
    public var description: String { underlyingError.map { "\(sentence) \($0)" } ?? sentence }

    /// True if both have the same kind of fault. The provider's error is not compared.
    public static func == (left: Self, right: Self) -> Bool { left.sentence == right.sentence }
}
