internal import CLLOpenSSL

/// A private key that signs with SHA-256: RSASSA-PKCS1-v1_5 (RS256), as an issuer holds it, or ES256 on the curve
/// P-256, as a device holds it to prove possession (RFC 9449).
/// OpenSSL's context is prepared once and never used itself. Each signature works on a copy, so the key may cross
/// threads without a lock.
@safe package final class PrivateKey: @unchecked Sendable {
    package enum Kind: String, Sendable {
        case rsa = "RSA"
        case p256 = "EC"
    }

    package let numbers: PublicKeyNumbers
    private let key: Key
    private let prepared: OpaquePointer

    /// Makes a new key. An RSA key has this number of bits and the public exponent 65537.
    package convenience init(_ kind: Kind, bits: Int = 2048) throws(OpenSSLError) {
        let key = unsafe try Key(kind.rawValue, "EVP_PKEY_generate") { context, key in
            guard unsafe EVP_PKEY_keygen_init(context) == 1 else { return false }
            let isSized =
                kind == .rsa
                ? unsafe EVP_PKEY_CTX_set_rsa_keygen_bits(context, Int32(clamping: bits))
                : unsafe EVP_PKEY_CTX_set_group_name(context, "P-256")
            return unsafe isSized == 1 && EVP_PKEY_generate(context, &key) == 1
        }
        try self.init(key)
    }

    /// A key that repeats: the same seed gives the same key. For tests alone.
    package convenience init(_ kind: Kind, seed: UInt64) throws(OpenSSLError) {
        try self.init(pem: Key.repeatablePEM(isRSA: kind == .rsa, seed: seed))
    }

    /// Reads an unencrypted private key in PEM form (PKCS #8, PKCS #1 or SEC 1); a key of another kind is refused.
    package convenience init(pem: [UInt8]) throws(OpenSSLError) { try self.init(Key(pem: pem)) }

    private init(_ key: Key) throws(OpenSSLError) {
        guard let numbers = key.publicNumbers else { throw OpenSSLError("RSA or P-256 key") }
        guard let context = unsafe EVP_PKEY_CTX_new_from_pkey(nil, key.handle, nil) else {
            throw OpenSSLError("EVP_PKEY_CTX_new_from_pkey")
        }
        // An RSA key signs with RSASSA-PKCS1-v1_5, OpenSSL's default.
        guard unsafe EVP_PKEY_sign_init(context) == 1,
            unsafe EVP_PKEY_CTX_set_signature_md(context, EVP_sha256()) == 1
        else {
            unsafe EVP_PKEY_CTX_free(context)
            throw OpenSSLError("EVP_PKEY_sign_init")
        }
        self.numbers = numbers
        self.key = key
        unsafe prepared = context
    }

    deinit { unsafe EVP_PKEY_CTX_free(prepared) }

    package var bitCount: Int { Int(unsafe EVP_PKEY_get_bits(key.handle)) }

    /// The private key as PKCS #8, and the public key as a SubjectPublicKeyInfo, both in PEM form.
    package func privatePEM() throws(OpenSSLError) -> String { try key.pem(isPrivate: true) }
    package func publicPEM() throws(OpenSSLError) -> String { try key.pem(isPrivate: false) }

    /// The signature of `message`: as many bytes as an RSA key's modulus, or two numbers of 32 bytes (RFC 7518 section
    /// 3.4).
    package func signature(for message: [UInt8]) throws(OpenSSLError) -> [UInt8] {
        let digest = try SHA256.digest(of: message.span)
        let hash = digest.bytes.span
        guard let context = unsafe EVP_PKEY_CTX_dup(prepared) else { throw OpenSSLError("EVP_PKEY_CTX_dup") }
        defer { unsafe EVP_PKEY_CTX_free(context) }
        var length = Int(unsafe EVP_PKEY_get_size(key.handle))
        var signature = [UInt8](repeating: 0, count: length)
        let done = unsafe hash.withUnsafeBufferPointer { hash in
            unsafe signature.withUnsafeMutableBufferPointer { output in
                // `length` holds the room in `output` before the call and the number of bytes written after it.
                unsafe EVP_PKEY_sign(context, output.baseAddress, &length, hash.baseAddress, hash.count) == 1
            }
        }
        guard done, length <= signature.count else { throw OpenSSLError("EVP_PKEY_sign") }
        signature.removeLast(signature.count - length)
        guard !numbers.isRSA else { return signature }
        guard let joined = Self.joinedNumbers(signature) else { throw OpenSSLError("EVP_PKEY_sign") }
        return joined
    }

    /// The two numbers of a DER SEQUENCE as 32 bytes each.
    private static func joinedNumbers(_ encoded: [UInt8]) -> [UInt8]? {
        let half = PublicKeyNumbers.coordinateByteCount
        var numbers = [UInt8](repeating: 0, count: 2 * half)
        var start = 2
        for end in [half, 2 * half] {
            guard encoded.count - start >= 2, encoded[start] == 0x02 else { return nil }
            let next = start + 2 + Int(encoded[start + 1])
            guard next <= encoded.count else { return nil }
            let number = encoded[(start + 2)..<next].drop { $0 == 0 }
            guard number.count <= half else { return nil }
            numbers.replaceSubrange((end - number.count)..<end, with: number)
            start = next
        }
        return start == encoded.count ? numbers : nil
    }
}
