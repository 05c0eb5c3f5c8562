internal import COpenSSL

/// HMAC with SHA-256 (RFC 2104).
package enum HMACSHA256 {
    /// The authentication code of `message` under `key`.
    package static func authenticationCode(
        for message: Span<UInt8>,
        key: Span<UInt8>
    ) throws(OpenSSLError) -> SHA256Digest {
        var code = SHA256Digest(bytes: InlineArray(repeating: 0))
        var output = code.bytes.mutableSpan
        var length = 0
        let done = unsafe key.withUnsafeBufferPointer { keyBytes in
            unsafe message.withUnsafeBufferPointer { input in
                unsafe output.withUnsafeMutableBufferPointer { result in
                    // The result buffer is 32 bytes, its size is passed, and SHA-256 writes exactly 32.
                    unsafe EVP_Q_mac(
                        nil,
                        "HMAC",
                        nil,
                        "SHA256",
                        nil,
                        keyBytes.baseAddress,
                        keyBytes.count,
                        input.baseAddress,
                        input.count,
                        result.baseAddress,
                        result.count,
                        &length
                    ) != nil
                }
            }
        }
        guard done, length == 32 else { throw OpenSSLError("EVP_Q_mac") }
        return code
    }
}
