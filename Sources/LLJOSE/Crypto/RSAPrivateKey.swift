internal import CLLOpenSSL

/// An RSA private key that signs RSASSA-PKCS1-v1_5 with SHA-256, as an issuer holds it.
/// The key is immutable after `init`, so it may cross threads.
package final class RSAPrivateKey: Sendable {
    private let key: Key
    private let signer: Signer

    /// Makes a new key with the public exponent 65537.
    package init(bits: Int = 2048) throws(OpenSSLError) {
        key = unsafe try Key(generating: "RSA") { context in
            unsafe EVP_PKEY_CTX_set_rsa_keygen_bits(context, Int32(clamping: bits)) == 1
        }
        signer = try Signer(key)
    }

    /// A key that repeats: the same seed gives the same key. For tests alone.
    package convenience init(seed: UInt64) throws(OpenSSLError) {
        try self.init(pem: Key.repeatablePEM(isRSA: true, seed: seed))
    }

    /// Reads an unencrypted private key in PEM form (PKCS #8 or PKCS #1); a key of another kind is refused.
    package init(pem: [UInt8]) throws(OpenSSLError) {
        key = try Key(pem: pem)
        guard unsafe EVP_PKEY_is_a(key.handle, "RSA") == 1 else { throw OpenSSLError("RSA key") }
        signer = try Signer(key)
    }

    package var bitCount: Int { Int(unsafe EVP_PKEY_get_bits(key.handle)) }

    /// The private key as PKCS #8, and the public key as a SubjectPublicKeyInfo, both in PEM form.
    package func privatePEM() throws(OpenSSLError) -> String { try key.pem(isPrivate: true) }
    package func publicPEM() throws(OpenSSLError) -> String { try key.pem(isPrivate: false) }

    /// The modulus, big-endian, without leading zeros.
    package var modulus: [UInt8] { number(named: "n") }

    package var publicExponent: [UInt8] { number(named: "e") }

    /// The RSASSA-PKCS1-v1_5 SHA-256 signature of `message`.
    package func signature(for message: [UInt8]) throws(OpenSSLError) -> [UInt8] { try signer.signature(for: message) }

    private func number(named name: String) -> [UInt8] {
        var number: OpaquePointer?
        guard unsafe EVP_PKEY_get_bn_param(key.handle, name, &number) == 1, let value = unsafe number else {
            ERR_clear_error()
            return []
        }
        defer { unsafe BN_free(value) }
        var bytes = [UInt8](repeating: 0, count: (Int(unsafe BN_num_bits(value)) + 7) / 8)
        unsafe bytes.withUnsafeMutableBufferPointer { buffer in
            // BN_bn2bin writes BN_num_bytes bytes, which is the size of the array.
            _ = unsafe BN_bn2bin(value, buffer.baseAddress)
        }
        return bytes
    }
}
