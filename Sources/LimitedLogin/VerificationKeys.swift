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
    /// SHA-256 of all the keys with their IDs, in their order: the same for the same keys under the same names alone. Nil if
    /// OpenSSL fails.
    package let fingerprint: SHA256Digest?

    /// Makes each usable key of the set ready. A key OpenSSL refuses is left out, as the set's other unusable
    /// keys are.
    package init(_ set: JSONWebKeySet) {
        let entries: [Entry] = set.keys.compactMap { key in
            guard let ready = try? RSAPublicKey(modulus: key.modulus, exponent: key.publicExponent) else { return nil }
            return Entry(keyID: Array(key.keyID.utf8), key: ready)
        }
        self.entries = entries
        fingerprint = try? SHA256.digest(of: Self.description(of: entries).span)
    }

    /// Each ID stands behind its length, each key has 32 bytes: no two lists have the same description.
    private static func description(of entries: [Entry]) -> [UInt8] {
        var bytes: [UInt8] = []
        for entry in entries {
            let length = UInt64(entry.keyID.count)
            bytes += (0..<8).map { UInt8(truncatingIfNeeded: length >> (8 * $0)) }
            bytes += entry.keyID
            bytes.append(entry.key.fingerprint.bytes.span)
        }
        return bytes
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
