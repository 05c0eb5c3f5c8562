internal import CLLOpenSSL
internal import LLBytes

/// A P-256 private key that signs ES256, as a device holds it to prove possession (RFC 9449).
/// The key is immutable after `init`, so it may cross threads.
package final class P256PrivateKey: Sendable {
    private let key: Key
    private let signer: Signer

    package init() throws(OpenSSLError) {
        key = unsafe try Key(generating: "EC") { context in unsafe EVP_PKEY_CTX_set_group_name(context, "P-256") == 1 }
        signer = try Signer(key)
    }

    /// A key that repeats: the same seed gives the same key. For tests alone.
    package convenience init(seed: UInt64) throws(OpenSSLError) {
        try self.init(pem: Key.repeatablePEM(isRSA: false, seed: seed))
    }

    /// Reads an unencrypted private key in PEM form (PKCS #8 or SEC 1); a key of another kind is refused.
    package init(pem: [UInt8]) throws(OpenSSLError) {
        key = try Key(pem: pem)
        guard Self.point(of: key).count == 65, key.groupName == "prime256v1" else { throw OpenSSLError("P-256 key") }
        signer = try Signer(key)
    }

    /// The private key as PKCS #8, and the public key as a SubjectPublicKeyInfo, both in PEM form.
    package func privatePEM() throws(OpenSSLError) -> String { try key.pem(isPrivate: true) }
    package func publicPEM() throws(OpenSSLError) -> String { try key.pem(isPrivate: false) }

    /// The public key's coordinates, 32 bytes each, big-endian.
    package var coordinates: (x: [UInt8], y: [UInt8]) {
        let point = Self.point(of: key)
        return point.count == 65 ? (Array(point[1..<33]), Array(point[33...])) : ([], [])
    }

    /// The ES256 signature of `message`: two numbers of 32 bytes each (RFC 7518 section 3.4).
    package func signature(for message: [UInt8]) throws(OpenSSLError) -> [UInt8] {
        guard let signature = Self.numbers(try signer.signature(for: message)) else {
            throw OpenSSLError("EVP_PKEY_sign")
        }
        return signature
    }

    /// The two numbers of a DER SEQUENCE as 32 bytes each.
    private static func numbers(_ encoded: [UInt8]) -> [UInt8]? {
        var numbers = [UInt8](repeating: 0, count: 2 * P256.coordinateByteCount)
        var start = 2
        for end in [P256.coordinateByteCount, numbers.count] {
            guard encoded.count - start >= 2, encoded[start] == 0x02 else { return nil }
            let next = start + 2 + Int(encoded[start + 1])
            guard next <= encoded.count else { return nil }
            let number = encoded[(start + 2)..<next].drop { $0 == 0 }
            guard number.count <= P256.coordinateByteCount else { return nil }
            numbers.replaceSubrange((end - number.count)..<end, with: number)
            start = next
        }
        return start == encoded.count ? numbers : nil
    }

    /// The uncompressed point; empty if the key is of another kind.
    private static func point(of key: Key) -> [UInt8] {
        // 133 bytes hold a point of any NIST curve.
        var bytes = [UInt8](repeating: 0, count: 133)
        var length = 0
        let done = unsafe bytes.withUnsafeMutableBufferPointer { buffer in
            unsafe EVP_PKEY_is_a(key.handle, "EC") == 1
                && EVP_PKEY_get_octet_string_param(key.handle, "pub", buffer.baseAddress, buffer.count, &length) == 1
        }
        guard done, length <= bytes.count, bytes.first == 0x04 else {
            ERR_clear_error()
            return []
        }
        return Array(bytes[..<length])
    }
}
