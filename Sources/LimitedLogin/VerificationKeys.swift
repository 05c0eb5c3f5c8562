internal import Bytes
package import JOSE
package import OpenSSL

/// The keys of a JWK Set made ready to verify: one worker's own, found by key ID.
///
/// Not Sendable: each worker makes its own from the shared set, so that no lock and no reference count passes
/// between them on the way of a request.
package final class VerificationKeys {
    private struct Entry {
        let keyID: [UInt8]
        let key: RSAPublicKey
    }

    private let entries: [Entry]

    /// Makes each usable key of the set ready. A key OpenSSL refuses is left out, as the set's other unusable
    /// keys are.
    package init(_ set: JSONWebKeySet) {
        entries = set.keys.compactMap { key in
            guard let ready = try? RSAPublicKey(modulus: key.modulus, exponent: key.publicExponent) else { return nil }
            return Entry(keyID: Array(key.keyID.utf8), key: ready)
        }
    }

    /// Whether no key can verify anything.
    package var isEmpty: Bool { entries.isEmpty }

    /// The number of keys.
    package var count: Int { entries.count }

    /// The key with exactly this key ID (RFC 7515 section 4.1.4: a case-sensitive string, compared byte for byte).
    ///
    /// The ID is never more than the name looked up here: no path, query or address is made from it.
    func key(withID keyID: [UInt8]) -> RSAPublicKey? {
        for entry in entries where keyID.span.equal(0..<keyID.count, entry.keyID.span) { return entry.key }
        return nil
    }
}

/// Tells whether bytes are a key's signature. What the verdict asks is this question and no other, so that whoever has
/// the answer already may give it without the arithmetic.
package protocol SignatureCheck {
    /// Whether `signature` is the key's RSASSA-PKCS1-v1_5 signature of the message with this SHA-256.
    func isValid(_ signature: Span<UInt8>, of digest: SHA256Digest, by key: RSAPublicKey) -> Bool
}

/// Asks the key, each time.
struct ByKeyAlone: SignatureCheck {
    func isValid(_ signature: Span<UInt8>, of digest: SHA256Digest, by key: RSAPublicKey) -> Bool {
        key.isValidSignature(signature, of: digest)
    }
}
