internal import COpenSSL

/// Builds RSA keys from their integers without a detour through DER.
enum RSAKeyBuilder {
    /// A public key from big-endian integers; the caller owns the result.
    static func makePublicKey(modulus: [UInt8], exponent: [UInt8]) throws(OpenSSLError) -> OpaquePointer {
        guard let n = unsafe makeNumber(modulus), let e = unsafe makeNumber(exponent) else {
            throw OpenSSLError("BN_bin2bn")
        }
        defer {
            unsafe BN_free(n)
            unsafe BN_free(e)
        }
        guard let builder = unsafe OSSL_PARAM_BLD_new() else { throw OpenSSLError("OSSL_PARAM_BLD_new") }
        defer { unsafe OSSL_PARAM_BLD_free(builder) }
        guard unsafe OSSL_PARAM_BLD_push_BN(builder, "n", n) == 1,
            unsafe OSSL_PARAM_BLD_push_BN(builder, "e", e) == 1,
            let parameters = unsafe OSSL_PARAM_BLD_to_param(builder)
        else { throw OpenSSLError("OSSL_PARAM_BLD_to_param") }
        defer { unsafe OSSL_PARAM_free(parameters) }
        guard let context = unsafe EVP_PKEY_CTX_new_from_name(nil, "RSA", nil) else {
            throw OpenSSLError("EVP_PKEY_CTX_new_from_name")
        }
        defer { unsafe EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard unsafe EVP_PKEY_fromdata_init(context) == 1,
            unsafe EVP_PKEY_fromdata(context, &key, COpenSSL_EVP_PKEY_PUBLIC_KEY, parameters) == 1,
            let made = unsafe key
        else { throw OpenSSLError("EVP_PKEY_fromdata") }
        return unsafe made
    }

    private static func makeNumber(_ bytes: [UInt8]) -> OpaquePointer? {
        unsafe bytes.withUnsafeBufferPointer { buffer in
            unsafe BN_bin2bn(buffer.baseAddress, Int32(clamping: buffer.count), nil)
        }
    }
}
