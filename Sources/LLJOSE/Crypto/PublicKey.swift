internal import CLLOpenSSL
internal import LLBytes

/// A public key that verifies signatures with SHA-256: RSASSA-PKCS1-v1_5 (RFC 8017 section 8.2.2), or ES256 (RFC 7518
/// section 3.4). Its context is initialised once and used again for every signature.
/// It is not Sendable: each worker has its own for each key, so workers share no lock and no reference count.
@safe package final class PublicKey {
    /// The length in bytes of every signature under this key: that of an RSA key's modulus, or 64.
    package let signatureByteCount: Int
    private let isRSA: Bool
    private let context: OpaquePointer

    /// Makes a key from its numbers. The caller decides about sizes of RSA. OpenSSL accepts some keys that can never
    /// verify a signature; they are refused here: a modulus that is even or shorter than 512 bits, and a missing
    /// exponent. It refuses a point that is not on the curve; the order of the curve is prime, so every other point on
    /// it is sound.
    package init(_ numbers: PublicKeyNumbers) throws(OpenSSLError) {
        let key = try Self.key(numbers)
        guard let context = unsafe EVP_PKEY_CTX_new_from_pkey(nil, key.handle, nil) else {
            throw OpenSSLError("EVP_PKEY_CTX_new_from_pkey")
        }
        isRSA = numbers.isRSA
        guard unsafe EVP_PKEY_verify_init(context) == 1,
            unsafe !isRSA || EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PADDING) == 1,
            unsafe EVP_PKEY_CTX_set_signature_md(context, EVP_sha256()) == 1
        else {
            unsafe EVP_PKEY_CTX_free(context)
            throw OpenSSLError("EVP_PKEY_verify_init")
        }
        signatureByteCount =
            isRSA ? Int(unsafe EVP_PKEY_get_size(key.handle)) : 2 * PublicKeyNumbers.coordinateByteCount
        unsafe self.context = context
    }

    deinit { unsafe EVP_PKEY_CTX_free(context) }

    private static func key(_ numbers: PublicKeyNumbers) throws(OpenSSLError) -> Key {
        switch numbers {
        case .rsa(let modulus, let exponent):
            guard modulus.drop(while: { $0 == 0 }).count >= 64, let last = modulus.last, last & 1 == 1,
                exponent.contains(where: { $0 != 0 })
            else { throw OpenSSLError("RSA parameters") }
            let (n, e) = unsafe (bigNumber(modulus), bigNumber(exponent))
            defer {
                unsafe BN_free(n)
                unsafe BN_free(e)
            }
            return unsafe try Key(public: "RSA") { builder in
                guard let n = unsafe n, let e = unsafe e else { return nil }
                return unsafe OSSL_PARAM_BLD_push_BN(builder, Key.text("n"), n) == 1
                    && OSSL_PARAM_BLD_push_BN(builder, Key.text("e"), e) == 1 ? OSSL_PARAM_BLD_to_param(builder) : nil
            }
        case .p256(let x, let y):
            guard [x.count, y.count] == [PublicKeyNumbers.coordinateByteCount, PublicKeyNumbers.coordinateByteCount]
            else { throw OpenSSLError("EC coordinates") }
            // An uncompressed point begins with 4 (SEC 1 section 2.3.3). OpenSSL reads it in a tenth of the time that
            // it takes to decode a SubjectPublicKeyInfo.
            let point = [4] + x + y
            return unsafe try Key(public: "EC") { builder in
                unsafe point.withUnsafeBufferPointer { buffer in
                    unsafe OSSL_PARAM_BLD_push_utf8_string(builder, Key.text("group"), Key.text("prime256v1"), 0) == 1
                        && OSSL_PARAM_BLD_push_octet_string(builder, Key.text("pub"), buffer.baseAddress, buffer.count)
                            == 1
                        ? OSSL_PARAM_BLD_to_param(builder) : nil
                }
            }
        }
    }

    private static func bigNumber(_ bytes: [UInt8]) -> OpaquePointer? {
        unsafe bytes.withUnsafeBufferPointer { buffer in
            unsafe BN_bin2bn(buffer.baseAddress, Int32(clamping: buffer.count), nil)
        }
    }

    /// True if `signature` is this key's signature of the message with the digest. The thread's error queue is empty
    /// afterwards.
    package func isValidSignature(_ signature: Span<UInt8>, of digest: SHA256Digest) -> Bool {
        guard signature.count == signatureByteCount else { return false }
        if isRSA { return unsafe Self.isValid(signature, of: digest, in: context) }
        // OpenSSL expects the form of RFC 3279 section 2.2.3. It refuses numbers outside 1 to the order less one.
        return unsafe Self.isValid(Self.sequence(signature).span, of: digest, in: context)
    }

    /// True if OpenSSL accepts the signature of the digest. The context must be ready to verify.
    /// Only the return value 1 means a valid signature; zero and negative values mean an invalid one.
    static func isValid(_ signature: Span<UInt8>, of digest: SHA256Digest, in context: OpaquePointer) -> Bool {
        let hash = digest.bytes.span
        let result = unsafe signature.withUnsafeBufferPointer { signature in
            unsafe hash.withUnsafeBufferPointer { hash in
                unsafe EVP_PKEY_verify(context, signature.baseAddress, signature.count, hash.baseAddress, hash.count)
            }
        }
        if result != 1 { ERR_clear_error() }
        return result == 1
    }

    /// Both numbers as a DER SEQUENCE of two INTEGERs.
    private static func sequence(_ signature: Span<UInt8>) -> [UInt8] {
        let half = PublicKeyNumbers.coordinateByteCount
        let numbers = integer(signature.extracting(0..<half)) + integer(signature.extracting(half..<2 * half))
        // The content has at most 2 · 35 bytes, so its length has the short form.
        return [0x30, UInt8(numbers.count)] + numbers
    }

    private static func integer(_ number: Span<UInt8>) -> [UInt8] {
        var first = 0
        while first < number.count - 1, number[first] == 0 { first += 1 }
        var bytes: [UInt8] = number[first] >= 0x80 ? [0] : []
        bytes.append(number, first..<number.count)
        return [0x02, UInt8(bytes.count)] + bytes
    }
}

/// The numbers of a public key, big-endian, as its JWK has them (RFC 7518 sections 6.2.1 and 6.3.1).
package enum PublicKeyNumbers: Equatable, Sendable {
    /// A key for RS256.
    case rsa(modulus: [UInt8], exponent: [UInt8])
    /// A point of the curve P-256, for ES256.
    case p256(x: [UInt8], y: [UInt8])

    /// The length in bytes of a coordinate on P-256 (RFC 7518 section 6.2.1.2), and of each half of a signature (section
    /// 3.4).
    static let coordinateByteCount = 32

    package var isRSA: Bool { if case .rsa = self { true } else { false } }

    /// The required members of the key's JWK; `kty` comes first.
    package var members: [(name: String, value: String)] {
        switch self {
        case .rsa(let modulus, let exponent):
            [("kty", "RSA"), ("n", Base64URL.encode(modulus)), ("e", Base64URL.encode(exponent))]
        case .p256(let x, let y):
            [("kty", "EC"), ("crv", "P-256"), ("x", Base64URL.encode(x)), ("y", Base64URL.encode(y))]
        }
    }

    /// The RFC 7638 thumbprint with SHA-256, 43 digits of base64url: the hash of the required members in lexical order.
    package func thumbprint() throws(OpenSSLError) -> String {
        let members = members.sorted { $0.name < $1.name }.map { "\"\($0.name)\":\"\($0.value)\"" }
        return try SHA256.digest(of: Array("{\(members.joined(separator: ","))}".utf8).span).base64URL
    }
}
