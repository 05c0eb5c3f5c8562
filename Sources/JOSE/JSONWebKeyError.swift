/// Why one JWK cannot be used to verify RS256 signatures.
public enum JSONWebKeyError: String, Error, CaseIterable, Sendable, CustomStringConvertible {
    /// It is not a JSON object.
    case notAnObject = "the key is not a JSON object"
    /// It names a member twice (RFC 7517 section 4).
    case repeatedMember = "the key names a member twice"
    /// `kty` is missing or not a string (RFC 7517 section 4.1).
    case malformedKeyType = "kty is missing or not a string"
    /// `kty` is another than `RSA`.
    case unsupportedKeyType = "kty is not RSA"
    /// `use` is there and not `sig` (RFC 7517 section 4.2).
    case notForSignatures = "use is not sig"
    /// `key_ops` is there and no array of distinct strings with `verify` (RFC 7517 section 4.3).
    case notForVerifying = "key_ops does not list verify, or is malformed"
    /// `alg` is there and not `RS256` (RFC 7517 section 4.4): one key, one algorithm.
    case unsupportedAlgorithm = "alg is not RS256"
    /// `kid` is missing, empty or not a string (RFC 7517 section 4.5): no token could name the key.
    case missingKeyID = "kid is missing, empty or not a string"
    /// `kid` is longer than 256 bytes.
    case keyIDTooLong = "kid is longer than 256 bytes"
    /// A private or symmetric member is there: the key is compromised (RFC 7518 sections 6.3.2 and 6.4.1).
    case holdsPrivateMembers = "the key holds private members"
    /// `n` or `e` is missing or not strict base64url (RFC 7518 section 6.3.1).
    case malformedNumber = "n or e is missing or not base64url"
    /// `n` has less than 2048 bits (RFC 7518 section 3.3).
    case modulusTooShort = "the modulus has less than 2048 bits"
    /// `n` has more than 8192 bits.
    case modulusTooLong = "the modulus has more than 8192 bits"
    /// `n` is even or has a factor below 168: not the product of two great primes.
    case modulusHasSmallFactor = "the modulus has a small factor"
    /// `n` bears the fingerprint of the weak generator of CVE-2017-15361.
    case weakModulus = "the modulus comes from a generator known to be weak (ROCA)"
    /// `e` is even, less than 3 or greater than 2³³.
    case unsafeExponent = "the public exponent is even, less than 3 or greater than 2^33"
    /// Another key of the set has the same key ID but another value, so the ID names neither (RFC 7517 section 4.5).
    case ambiguousKeyID = "another key has the same kid"
    /// An equal key stands earlier in the set.
    case repeatedKey = "the same key stands earlier in the set"

    /// The reason as a clause that can follow a colon.
    public var description: String { rawValue }
}
