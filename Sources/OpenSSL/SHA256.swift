internal import COpenSSL

/// SHA-256 (FIPS 180-4) with a digest context that is made once and used again for every message.
///
/// Not Sendable: one for each worker. The static door serves code outside the hot path.
@safe package final class SHA256 {
    private let algorithm: OpaquePointer
    private let context: OpaquePointer

    /// Fetches the algorithm once, so that no digest pays for the look-up.
    package init() throws(OpenSSLError) {
        guard let algorithm = unsafe EVP_MD_fetch(nil, "SHA256", nil) else { throw OpenSSLError("EVP_MD_fetch") }
        guard let context = unsafe EVP_MD_CTX_new() else {
            unsafe EVP_MD_free(algorithm)
            throw OpenSSLError("EVP_MD_CTX_new")
        }
        unsafe self.algorithm = algorithm
        unsafe self.context = context
    }

    deinit {
        unsafe EVP_MD_CTX_free(context)
        unsafe EVP_MD_free(algorithm)
    }

    /// The digest of `message`; nil when OpenSSL fails (its error queue is then cleared).
    package func digest(of message: Span<UInt8>) -> SHA256Digest? {
        var digest = SHA256Digest(bytes: InlineArray(repeating: 0))
        var output = digest.bytes.mutableSpan
        let done = unsafe message.withUnsafeBufferPointer { input in
            unsafe output.withUnsafeMutableBufferPointer { result in
                // The result buffer is 32 bytes: exactly what SHA-256 writes.
                unsafe EVP_DigestInit_ex(context, algorithm, nil) == 1
                    && EVP_DigestUpdate(context, input.baseAddress, input.count) == 1
                    && EVP_DigestFinal_ex(context, result.baseAddress, nil) == 1
            }
        }
        guard done else {
            OpenSSLError.clearQueue()
            return nil
        }
        return digest
    }

    /// The digest of `message` through a context of its own.
    package static func digest(of message: Span<UInt8>) throws(OpenSSLError) -> SHA256Digest {
        guard let digest = try SHA256().digest(of: message) else { throw OpenSSLError("EVP_Digest") }
        return digest
    }
}
