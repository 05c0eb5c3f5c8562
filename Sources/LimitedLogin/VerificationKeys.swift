internal import Bytes
package import JOSE
internal import OpenSSL

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
    /// The same keys as they were published. Other workers share their memory, so that no request touches them.
    private let published: [JSONWebKey]

    /// Makes each usable key of the set ready. A key OpenSSL refuses is left out, as the set's other unusable
    /// keys are.
    package init(_ set: JSONWebKeySet) {
        let ready = set.keys.compactMap { key in
            (try? RSAPublicKey(modulus: key.modulus, exponent: key.publicExponent)).map { (key, $0) }
        }
        published = ready.map(\.0)
        entries = ready.map { Entry(keyID: Array($0.keyID.utf8), key: $1) }
    }

    /// Whether both are the same keys under the same names, in the same order.
    package func areSame(as other: VerificationKeys) -> Bool {
        published.elementsEqual(other.published) { left, right in
            left.keyID.utf8.elementsEqual(right.keyID.utf8) && left.hasSameValue(as: right)
        }
    }

    package var isEmpty: Bool { entries.isEmpty }

    package var count: Int { entries.count }

    /// The key with exactly this key ID (RFC 7515 section 4.1.4: a case-sensitive string, compared byte for byte).
    ///
    /// The ID is never more than the name looked up here: no path, query or address is made from it.
    func key(withID keyID: [UInt8]) -> RSAPublicKey? {
        for entry in entries where keyID.span.equal(0..<keyID.count, entry.keyID.span) { return entry.key }
        return nil
    }
}
