/// A nonce that a ``NonceIssuer`` issued.
public struct IssuedNonce: Equatable, Sendable {
    /// The nonce to give to the app: 60 digits of base64url.
    public let nonce: Nonce
    /// The app whose login it is for.
    public let appID: String
    /// When it was issued, to the millisecond.
    public let issuedAt: NumericDate
    /// From when on it is refused, to the millisecond.
    public let expiresAt: NumericDate
}

/// What an issued nonce says about itself, once its tag is good.
package struct RecognizedNonce: Equatable, Sendable {
    /// When it was issued, in milliseconds since 1970.
    package let issuedAtMilliseconds: UInt64
    /// From when on it is refused, in milliseconds since 1970.
    package let expiresAtMilliseconds: UInt64
    /// What no other nonce has: the nonce's own bytes.
    package let identity: [UInt8]

    /// When it was issued.
    var issuedAt: NumericDate { Self.date(issuedAtMilliseconds) }
    /// From when on it is refused.
    var expiresAt: NumericDate { Self.date(expiresAtMilliseconds) }

    private static func date(_ milliseconds: UInt64) -> NumericDate {
        NumericDate(milliseconds: milliseconds)
    }
}
