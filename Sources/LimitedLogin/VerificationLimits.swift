internal import JOSE

/// The bounds of a token that is worth judging.
package enum VerificationLimits {
    /// Greatest length of a token in bytes. 8 KiB: real ones have about 1 KiB, and no work is done beyond it.
    package static let tokenByteCount = 8_192
    /// Greatest length of `sub` in bytes. OpenID Connect Core section 2: 255 ASCII characters.
    package static let subjectByteCount = 255
    /// Greatest clock skew in seconds. 300: more would noticeably lengthen the life of a stolen token.
    package static let clockSkewSeconds = 300
    /// Greatest length of a configured app ID in bytes. 128: Facebook's have at most 20 digits.
    package static let appIDByteCount = 128
    /// Greatest length of a configured issuer in bytes. 1024: a generous URL.
    package static let issuerByteCount = 1_024

    /// The bounds of the header: few members and no deep nesting, for it is read before the signature is.
    static var header: JSONLimits {
        var limits = JSONLimits()
        limits.byteCount = tokenByteCount
        limits.memberCount = 32
        limits.nodeCount = 512
        return limits
    }

    /// The bounds of the payload.
    static var payload: JSONLimits {
        var limits = JSONLimits()
        limits.byteCount = tokenByteCount
        limits.nodeCount = 4_096
        return limits
    }
}
