internal import COpenSSL

/// Bytes from OpenSSL's cryptographic random generator.
package enum RandomBytes {
    /// Makes `count` random bytes.
    package static func make(count: Int) throws(OpenSSLError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let result = unsafe bytes.withUnsafeMutableBufferPointer { buffer in
            // RAND_bytes takes a C int; a count beyond it is refused by the generator's own failure value.
            unsafe RAND_bytes(buffer.baseAddress, Int32(clamping: buffer.count))
        }
        guard result == 1, count <= Int(Int32.max) else { throw OpenSSLError("RAND_bytes") }
        return bytes
    }
}
