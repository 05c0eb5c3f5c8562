internal import CLLOpenSSL

/// An RSA public key with a verification context for RSASSA-PKCS1-v1_5 and SHA-256 (RFC 8017 section 8.2.2). The
/// context is initialised once and used again for every signature.
/// It is not Sendable: each worker has its own for each key, so workers share no lock and no reference count.
@safe package final class RSAPublicKey {
    /// The length in bytes of the modulus, and so of every signature under this key.
    package let modulusByteCount: Int
    private let key: Key
    private let context: OpaquePointer

    /// Makes a key from big-endian integers. The caller decides about sizes. OpenSSL accepts some keys that can never
    /// verify a signature; they are refused here: a modulus that is even or shorter than 512 bits, and a missing
    /// exponent.
    package init(modulus: [UInt8], exponent: [UInt8]) throws(OpenSSLError) {
        guard modulus.drop(while: { $0 == 0 }).count >= 64, let last = modulus.last, last & 1 == 1,
            exponent.contains(where: { $0 != 0 })
        else { throw OpenSSLError("RSA parameters") }
        let key = try Self.key(modulus, exponent)
        guard let context = unsafe EVP_PKEY_CTX_new_from_pkey(nil, key.handle, nil) else {
            throw OpenSSLError("EVP_PKEY_CTX_new_from_pkey")
        }
        guard unsafe EVP_PKEY_verify_init(context) == 1,
            unsafe EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PADDING) == 1,
            unsafe EVP_PKEY_CTX_set_signature_md(context, EVP_sha256()) == 1
        else {
            unsafe EVP_PKEY_CTX_free(context)
            throw OpenSSLError("EVP_PKEY_verify_init")
        }
        self.modulusByteCount = Int(unsafe EVP_PKEY_get_size(key.handle))
        self.key = key
        unsafe self.context = context
    }

    deinit { unsafe EVP_PKEY_CTX_free(context) }

    private static func key(_ modulus: [UInt8], _ exponent: [UInt8]) throws(OpenSSLError) -> Key {
        let (n, e) = unsafe (number(modulus), number(exponent))
        defer {
            unsafe BN_free(n)
            unsafe BN_free(e)
        }
        return unsafe try Key(public: "RSA") { builder in
            guard let n = unsafe n, let e = unsafe e else { return nil }
            return unsafe OSSL_PARAM_BLD_push_BN(builder, Key.text("n"), n) == 1
                && OSSL_PARAM_BLD_push_BN(builder, Key.text("e"), e) == 1 ? OSSL_PARAM_BLD_to_param(builder) : nil
        }
    }

    private static func number(_ bytes: [UInt8]) -> OpaquePointer? {
        unsafe bytes.withUnsafeBufferPointer { buffer in
            unsafe BN_bin2bn(buffer.baseAddress, Int32(clamping: buffer.count), nil)
        }
    }

    /// True if `signature` is this key's signature of the message with the given digest. The thread's error queue is
    /// empty afterwards.
    package func isValidSignature(_ signature: Span<UInt8>, of digest: SHA256Digest) -> Bool {
        unsafe Key.isValid(signature, of: digest, in: context)
    }
}
