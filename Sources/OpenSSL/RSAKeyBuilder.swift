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
        guard unsafe push(n, named: "n", to: builder), unsafe push(e, named: "e", to: builder),
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

    /// Adds a number. The builder keeps the name's address until its parameters are made, so the name has to be
    /// a literal, which lives as long as the program; a `String`'s bytes would be gone after the call.
    private static func push(_ number: OpaquePointer, named name: StaticString, to builder: OpaquePointer) -> Bool {
        // The compiler ends every literal with a zero byte; the count below includes it.
        unsafe name.utf8Start.withMemoryRebound(to: CChar.self, capacity: name.utf8CodeUnitCount + 1) { text in
            unsafe OSSL_PARAM_BLD_push_BN(builder, text, number) == 1
        }
    }

    private static func makeNumber(_ bytes: [UInt8]) -> OpaquePointer? {
        unsafe bytes.withUnsafeBufferPointer { buffer in
            unsafe BN_bin2bn(buffer.baseAddress, Int32(clamping: buffer.count), nil)
        }
    }
}
