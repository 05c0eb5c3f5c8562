internal import COpenSSL

/// A P-256 public key that verifies ES256 signatures (RFC 7518 section 3.4).
///
/// Not Sendable: made for each verification, or by each worker.
@safe package final class P256PublicKey {
    /// The length in bytes of a coordinate, and of each half of a signature.
    package static let coordinateByteCount = 32
    /// What stands before an uncompressed point in a SubjectPublicKeyInfo (RFC 5480 section 2): id-ecPublicKey and
    /// prime256v1, and a bit string of 65 bytes that begins with 4 (SEC 1 section 2.3.3).
    private static let prefix: [UInt8] = [
        0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08, 0x2A, 0x86, 0x48,
        0xCE, 0x3D, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04,
    ]

    private let key: OpaquePointer

    /// Makes a key from the two coordinates of a point, 32 bytes each, big-endian.
    ///
    /// A point that is not on the curve is refused; the order of the curve is prime, so every other point of it is sound.
    package init(x: [UInt8], y: [UInt8]) throws(OpenSSLError) {
        guard x.count == Self.coordinateByteCount, y.count == Self.coordinateByteCount else {
            throw OpenSSLError("EC coordinates")
        }
        let encoded = Self.prefix + x + y
        let key = unsafe encoded.withUnsafeBufferPointer { buffer -> OpaquePointer? in
            var bytes = buffer.baseAddress
            // Reads at most `count` bytes from there; the pointer itself is moved, the bytes are not kept.
            return unsafe d2i_PUBKEY(nil, &bytes, buffer.count)
        }
        guard let key = unsafe key else { throw OpenSSLError("d2i_PUBKEY") }
        unsafe self.key = key
    }

    deinit {
        unsafe EVP_PKEY_free(key)
    }

    /// Whether `signature`, its two numbers as 32 bytes each, is this key's signature of the message with the digest.
    ///
    /// The one return value that means yes is 1; zero and every negative value are a no. The thread's error queue is
    /// empty afterwards.
    package func isValidSignature(_ signature: Span<UInt8>, of digest: SHA256Digest) -> Bool {
        guard signature.count == 2 * Self.coordinateByteCount,
            let context = unsafe EVP_PKEY_CTX_new_from_pkey(nil, key, nil)
        else {
            OpenSSLError.clearQueue()
            return false
        }
        defer { unsafe EVP_PKEY_CTX_free(context) }
        // OpenSSL takes the form of RFC 3279 section 2.2.3. It refuses numbers outside 1 to the order less one.
        let encoded = Self.sequence(signature)
        let digestBytes = digest.bytes
        let hash = digestBytes.span
        let result = unsafe encoded.withUnsafeBufferPointer { signatureBytes in
            unsafe hash.withUnsafeBufferPointer { hashBytes in
                unsafe EVP_PKEY_verify_init(context) == 1
                    ? EVP_PKEY_verify(
                        context,
                        signatureBytes.baseAddress,
                        signatureBytes.count,
                        hashBytes.baseAddress,
                        hashBytes.count
                    ) : 0
            }
        }
        if result == 1 { return true }
        OpenSSLError.clearQueue()
        return false
    }

    /// Both numbers as a DER SEQUENCE of two INTEGERs.
    private static func sequence(_ signature: Span<UInt8>) -> [UInt8] {
        let numbers =
            integer(signature.extracting(0..<coordinateByteCount))
            + integer(signature.extracting(coordinateByteCount..<2 * coordinateByteCount))
        // At most 2 · 35 bytes: the short form of a length.
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
