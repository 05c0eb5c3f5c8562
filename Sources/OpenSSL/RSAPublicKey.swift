internal import COpenSSL

/// An RSA public key that verifies RSASSA-PKCS1-v1_5 signatures with SHA-256 (RFC 8017 section 8.2.2).
///
/// The arithmetic is OpenSSL's; everything a verification needs is made once, with the key. The check is the one
/// RFC 8017 recommends: the expected encoded message is built and compared whole, so that there is no padding
/// parser that could be lenient (CVE-2006-4339, CVE-2014-1568). Against `EVP_PKEY_verify` this spares each
/// signature the provider's locks, allocations and two of twenty multiplications: 15 % of its time.
///
/// Not Sendable: one for each worker and key, so that nothing is shared between workers.
@safe package final class RSAPublicKey {
    /// The length in bytes of the modulus, hence of every signature under this key.
    package let modulusByteCount: Int
    private let arithmetic: RSAPublicArithmetic
    /// The encoded message with zeros in place of the digest, its last 32 bytes.
    private let expectedMessage: [UInt8]
    /// Room for the message a signature decodes to.
    private var message: [UInt8]

    /// The DER of a DigestInfo for SHA-256, without the digest itself (RFC 8017 section 9.2, note 1).
    private static let digestInfoPrefix: [UInt8] = [
        0x30, 0x31, 0x30, 0x0D, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05, 0x00, 0x04,
        0x20,
    ]

    /// Makes a key from big-endian integers. Policy about sizes belongs to the caller; what the arithmetic or the
    /// encoding cannot work with is refused: an even modulus, an exponent of no bits, less than 512 bits.
    package init(modulus: [UInt8], exponent: [UInt8]) throws(OpenSSLError) {
        arithmetic = try RSAPublicArithmetic(modulus: modulus, exponent: exponent)
        modulusByteCount = arithmetic.modulusByteCount
        // RFC 8017 section 9.2: 0x00 0x01, at least eight 0xFF, 0x00, the DigestInfo.
        let tail = [0x00] + Self.digestInfoPrefix + Array(repeating: 0, count: 32)
        let paddingCount = modulusByteCount - 2 - tail.count
        guard modulusByteCount >= 64, paddingCount >= 8 else { throw OpenSSLError("RSA modulus too short") }
        expectedMessage = [0x00, 0x01] + Array(repeating: 0xFF, count: paddingCount) + tail
        message = Array(repeating: 0, count: modulusByteCount)
    }

    /// Whether `signature` is this key's signature of the message with the given digest.
    ///
    /// Anything but the full number of bytes, a representative below the modulus, and the one encoded message is
    /// a no. The thread's error queue is empty afterwards.
    package func isValidSignature(_ signature: Span<UInt8>, of digest: SHA256Digest) -> Bool {
        // RFC 8017 section 8.2.2 step 1.
        guard signature.count == modulusByteCount else { return false }
        // Step 2: the message representative of the signature representative.
        guard arithmetic.raise(signature, into: &message) else {
            OpenSSLError.clearQueue()
            return false
        }
        // Steps 3 and 4.
        return Self.isExpected(message, expectedMessage, digest)
    }

    /// Whether a message is the expected one with this digest at its end, compared whole.
    private static func isExpected(_ message: [UInt8], _ expected: [UInt8], _ digest: SHA256Digest) -> Bool {
        // Both arrays have the modulus' length, at least 64 bytes.
        let start = expected.count - 32
        let isEncoding = ConstantTime.areEqual(
            message.span.extracting(0..<start),
            expected.span.extracting(0..<start)
        )
        let isDigest = ConstantTime.areEqual(message.span.extracting(start..<expected.count), digest.bytes.span)
        return isEncoding && isDigest
    }
}
