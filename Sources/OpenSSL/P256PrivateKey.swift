internal import COpenSSL

/// A P-256 private key that signs ES256: what a device holds that proves possession (RFC 9449).
///
/// Immutable after `init`; every signature makes its own context, so it may cross threads.
@safe package final class P256PrivateKey: @unchecked Sendable {
    private let key: OpaquePointer

    private init(takingOwnershipOf key: OpaquePointer) {
        unsafe self.key = key
    }

    deinit {
        unsafe EVP_PKEY_free(key)
    }

    /// Makes a new key.
    package static func generate() throws(OpenSSLError) -> P256PrivateKey {
        guard let context = unsafe EVP_PKEY_CTX_new_from_name(nil, "EC", nil) else {
            throw OpenSSLError("EVP_PKEY_CTX_new_from_name")
        }
        defer { unsafe EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard unsafe EVP_PKEY_keygen_init(context) == 1,
            unsafe EVP_PKEY_CTX_set_group_name(context, "P-256") == 1,
            unsafe EVP_PKEY_generate(context, &key) == 1, let made = unsafe key
        else { throw OpenSSLError("EVP_PKEY_generate") }
        return unsafe P256PrivateKey(takingOwnershipOf: made)
    }

    /// Reads an unencrypted private key in PEM form (PKCS #8 or SEC 1); a key of another kind is refused.
    package convenience init(pem: [UInt8]) throws(OpenSSLError) {
        guard
            let source = unsafe pem.withUnsafeBufferPointer({ buffer in
                unsafe BIO_new_mem_buf(buffer.baseAddress, Int32(clamping: buffer.count))
            })
        else { throw OpenSSLError("BIO_new_mem_buf") }
        defer { unsafe BIO_free(source) }
        guard let key = unsafe PEM_read_bio_PrivateKey(source, nil, nil, nil) else {
            throw OpenSSLError("PEM_read_bio_PrivateKey")
        }
        unsafe self.init(takingOwnershipOf: key)
        guard point.count == 65 else { throw OpenSSLError("P-256 key") }
    }

    /// The public key's coordinates, 32 bytes each, big-endian.
    package var coordinates: (x: [UInt8], y: [UInt8]) {
        let point = point
        return point.count == 65 ? (Array(point[1..<33]), Array(point[33...])) : ([], [])
    }

    /// The ES256 signature of `message`: two numbers of 32 bytes each (RFC 7518 section 3.4).
    package func signature(for message: [UInt8]) throws(OpenSSLError) -> [UInt8] {
        guard let context = unsafe EVP_MD_CTX_new() else { throw OpenSSLError("EVP_MD_CTX_new") }
        defer { unsafe EVP_MD_CTX_free(context) }
        var length = Int(unsafe EVP_PKEY_get_size(key))
        var encoded = [UInt8](repeating: 0, count: length)
        let done = unsafe message.withUnsafeBufferPointer { input in
            unsafe encoded.withUnsafeMutableBufferPointer { output in
                // `length` enters as the room in `output` and leaves as the bytes written.
                unsafe EVP_DigestSignInit_ex(context, nil, "SHA256", nil, nil, key, nil) == 1
                    && EVP_DigestSign(context, output.baseAddress, &length, input.baseAddress, input.count) == 1
            }
        }
        guard done, let signature = Self.numbers(encoded[..<length]) else { throw OpenSSLError("EVP_DigestSign") }
        return signature
    }

    /// The two numbers of a DER SEQUENCE, 32 bytes each.
    private static func numbers(_ encoded: ArraySlice<UInt8>) -> [UInt8]? {
        var rest = encoded.dropFirst(2)
        var numbers: [UInt8] = []
        for _ in 0..<2 {
            guard rest.popFirst() == 0x02, let count = rest.popFirst(), rest.count >= Int(count) else { return nil }
            let number = rest.prefix(Int(count)).drop { $0 == 0 }
            rest = rest.dropFirst(Int(count))
            guard number.count <= P256PublicKey.coordinateByteCount else { return nil }
            numbers += [UInt8](repeating: 0, count: P256PublicKey.coordinateByteCount - number.count) + number
        }
        return rest.isEmpty ? numbers : nil
    }

    /// The uncompressed point; empty when the key is of another kind.
    private var point: [UInt8] {
        // 133 bytes hold a point of any of the NIST curves.
        var bytes = [UInt8](repeating: 0, count: 133)
        var length = 0
        let done = unsafe bytes.withUnsafeMutableBufferPointer { buffer in
            unsafe EVP_PKEY_is_a(key, "EC") == 1
                && EVP_PKEY_get_octet_string_param(key, "pub", buffer.baseAddress, buffer.count, &length) == 1
        }
        guard done, length <= bytes.count, bytes.first == 0x04 else {
            OpenSSLError.clearQueue()
            return []
        }
        return Array(bytes[..<length])
    }
}
