/// Why a text is no JWK Set at all.
public enum JSONWebKeySetError: Error, Equatable, Sendable {
    /// The text is longer than 64 KiB.
    case tooLong
    /// The text is not strict JSON; the reason and where.
    case malformed(String)
    /// The text is JSON but no object with an array `keys` (RFC 7517 section 5.1).
    case notAKeySet
    /// The array holds more than 64 keys.
    case tooManyKeys
}
