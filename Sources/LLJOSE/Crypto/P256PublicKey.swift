internal import CLLOpenSSL
internal import LLBytes

/// A P-256 public key that verifies ES256 signatures (RFC 7518 section 3.4).
/// It is not Sendable: each verification or each worker makes its own.
@safe package final class P256PublicKey {
    private let key: Key

    /// Makes a key from the two coordinates of a point, 32 bytes each, big-endian.
    /// A point that is not on the curve is refused. The order of the curve is prime, so every other point on it is
    /// sound.
    package init(x: [UInt8], y: [UInt8]) throws(OpenSSLError) {
        guard x.count == P256.coordinateByteCount, y.count == P256.coordinateByteCount else {
            throw OpenSSLError("EC coordinates")
        }
        // An uncompressed point begins with 4 (SEC 1 section 2.3.3). OpenSSL reads it in a tenth of the time that it
        // takes to decode a SubjectPublicKeyInfo.
        let point = [4] + x + y
        key = unsafe try Key(public: "EC") { builder in
            unsafe point.withUnsafeBufferPointer { buffer in
                unsafe OSSL_PARAM_BLD_push_utf8_string(builder, Key.text("group"), Key.text("prime256v1"), 0) == 1
                    && OSSL_PARAM_BLD_push_octet_string(builder, Key.text("pub"), buffer.baseAddress, buffer.count) == 1
                    ? OSSL_PARAM_BLD_to_param(builder) : nil
            }
        }
    }

    /// True if `signature` is this key's signature of the message with the digest. The signature is two numbers of 32
    /// bytes each. The thread's error queue is empty afterwards.
    package func isValidSignature(_ signature: Span<UInt8>, of digest: SHA256Digest) -> Bool {
        let context = unsafe EVP_PKEY_CTX_new_from_pkey(nil, key.handle, nil)
        defer { unsafe EVP_PKEY_CTX_free(context) }
        guard signature.count == 2 * P256.coordinateByteCount, let context = unsafe context,
            unsafe EVP_PKEY_verify_init(context) == 1
        else {
            ERR_clear_error()
            return false
        }
        // OpenSSL expects the form of RFC 3279 section 2.2.3. It refuses numbers outside 1 to the order less one.
        return unsafe Key.isValid(Self.sequence(signature).span, of: digest, in: context)
    }

    /// Both numbers as a DER SEQUENCE of two INTEGERs.
    private static func sequence(_ signature: Span<UInt8>) -> [UInt8] {
        let numbers =
            integer(signature.extracting(0..<P256.coordinateByteCount))
            + integer(signature.extracting(P256.coordinateByteCount..<2 * P256.coordinateByteCount))
        // The content has at most 2 · 35 bytes, so its length has the short form.
        return [0x30, UInt8(numbers.count)] + numbers
    }

    private static func integer(_ number: Span<UInt8>) -> [UInt8] {
        var first = 0
        while first < number.count - 1, number[first] == 0 { first += 1 }
        var bytes: [UInt8] = number[first] >= 0x80 ? [0] : []
        for index in first..<number.count { bytes.append(number[index]) }
        return [0x02, UInt8(bytes.count)] + bytes
    }
}
