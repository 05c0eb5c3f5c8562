internal import COpenSSL

/// An RSA public key with a verification context for RSASSA-PKCS1-v1_5 and SHA-256 (RFC 8017 section 8.2.2)
/// that is initialised once and used again for every signature.
///
/// Not Sendable: one for each worker and key, so that no lock or reference count is shared between workers.
@safe package final class RSAPublicKey {
    /// The length in bytes of the modulus, hence of every signature under this key.
    package let modulusByteCount: Int
    private let key: Key
    private let context: OpaquePointer

    /// Makes a key from big-endian integers. Policy about sizes belongs to the caller; what could never verify
    /// anything, but OpenSSL would take, is refused here: a modulus that is even or below 512 bits, no exponent.
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

    deinit {
        unsafe EVP_PKEY_CTX_free(context)
    }

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

    /// Whether `signature` is this key's signature of the message with the given digest. The thread's error queue is empty
    /// afterwards.
    package func isValidSignature(_ signature: Span<UInt8>, of digest: SHA256Digest) -> Bool {
        unsafe Key.isValid(signature, of: digest, in: context)
    }
}
