internal import CLLOpenSSL
internal import LLBytes

/// OpenSSL's SHA-256, fetched once for the process: each fetch takes a lock. OpenSSL counts its users with an atomic.
nonisolated(unsafe) private let algorithm: OpaquePointer? = {
    ProcessExit.leavesOpenSSLInPlace()
    return unsafe EVP_MD_fetch(nil, "SHA256", nil)
}()

package enum SHA256 {
    package static func digest(of message: Span<UInt8>) throws(OpenSSLError) -> SHA256Digest {
        guard let algorithm = unsafe algorithm else { throw OpenSSLError("EVP_MD_fetch") }
        var digest = SHA256Digest(bytes: InlineArray(repeating: 0))
        var output = digest.bytes.mutableSpan
        let done = unsafe message.withUnsafeBufferPointer { input in
            unsafe output.withUnsafeMutableBufferPointer { result in
                // The result buffer has 32 bytes, and SHA-256 writes exactly 32.
                unsafe EVP_Digest(input.baseAddress, input.count, result.baseAddress, nil, algorithm, nil) == 1
            }
        }
        guard done else { throw OpenSSLError("EVP_Digest") }
        return digest
    }
}

/// The 32 bytes of a SHA-256 digest (FIPS 180-4), held inline.
package struct SHA256Digest: Sendable {
    package var bytes: InlineArray<32, UInt8>

    package var base64URL: String { Base64URL.encode(bytes.indices.map { bytes[$0] }) }

    /// 64 lower-case digits.
    package var hexadecimal: String { Hexadecimal.encode(bytes.indices.map { bytes[$0] }) }
}

/// Digests are no secrets, so the comparison need not take constant time.
extension SHA256Digest: Hashable {
    package static func == (left: Self, right: Self) -> Bool { left.bytes.span.equal(0..<32, right.bytes.span) }

    package func hash(into hasher: inout Hasher) { hasher.combine(bytes.span.word(at: 0)) }
}

package enum HMACSHA256 {
    package static func authenticationCode(
        for message: Span<UInt8>,
        key: Span<UInt8>
    ) throws(OpenSSLError) -> SHA256Digest {
        guard let algorithm = unsafe algorithm else { throw OpenSSLError("EVP_MD_fetch") }
        var code = SHA256Digest(bytes: InlineArray(repeating: 0))
        var output = code.bytes.mutableSpan
        let done = unsafe key.withUnsafeBufferPointer { key in
            unsafe message.withUnsafeBufferPointer { input in
                unsafe output.withUnsafeMutableBufferPointer { result in
                    // The result buffer has 32 bytes, and SHA-256 writes exactly 32. No key has the 2 GiB of a C int.
                    unsafe HMAC(
                        algorithm,
                        key.baseAddress,
                        Int32(clamping: key.count),
                        input.baseAddress,
                        input.count,
                        result.baseAddress,
                        nil
                    ) != nil
                }
            }
        }
        guard done else { throw OpenSSLError("HMAC") }
        return code
    }
}

/// Comparison of secrets. Its running time depends on the lengths alone, never on the position of the first difference.
package enum ConstantTime {
    /// True if two byte strings are equal. Their lengths are not secret.
    package static func areEqual(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
        guard left.count == right.count else { return false }
        return unsafe left.withUnsafeBufferPointer { leftBytes in
            unsafe right.withUnsafeBufferPointer { rightBytes in
                // An empty span may have no base address. Two empty strings are equal.
                guard let leftBase = leftBytes.baseAddress, let rightBase = rightBytes.baseAddress else { return true }
                // Both buffers hold `count` bytes: the lengths were compared above.
                return unsafe CRYPTO_memcmp(leftBase, rightBase, leftBytes.count) == 0
            }
        }
    }
}

package enum RandomBytes {
    package static func make(count: Int) throws(OpenSSLError) -> [UInt8] {
        ProcessExit.leavesOpenSSLInPlace()
        var bytes = [UInt8](repeating: 0, count: count)
        let result = unsafe bytes.withUnsafeMutableBufferPointer { buffer in
            // RAND_bytes takes a C int. The generator refuses a greater count with its own failure value.
            unsafe RAND_bytes(buffer.baseAddress, Int32(clamping: buffer.count))
        }
        guard result == 1, count <= Int(Int32.max) else { throw OpenSSLError("RAND_bytes") }
        return bytes
    }
}

/// A failed OpenSSL call: the function's name and the library's own reason.
/// The initializer empties the calling thread's error queue, so a later, unrelated call on the same thread never
/// reports this failure.
package struct OpenSSLError: Error, Equatable, Sendable, CustomStringConvertible {
    package let operation: String
    /// The oldest reason in the error queue, which is the root cause.
    package let reason: String

    /// Describes the failure of `operation` from the thread's error queue, and empties the queue.
    package init(_ operation: String) {
        self.operation = operation
        self.reason = Self.drainQueue() ?? "no reason given"
    }

    package var description: String { "\(operation): \(reason)" }

    /// Empties this thread's error queue and returns the reason of its oldest entry, the root of the failure.
    /// - Parameter wordsOfErrno: The sentence for an errno: OpenSSL has no reason for one, only a mark beside it
    ///   (ERR_GET_REASON(3)).
    package static func drainQueue(wordsOfErrno: (Int32) -> String = { "system error \($0)" }) -> String? {
        let code = ERR_get_error()
        ERR_clear_error()
        guard code != 0 else { return nil }
        if code & systemErrorMark != 0 { return wordsOfErrno(Int32(truncatingIfNeeded: code & (systemErrorMark - 1))) }
        guard let reason = unsafe ERR_reason_error_string(code) else { return "OpenSSL error \(code)" }
        return unsafe String(cString: reason)
    }

    /// `ERR_SYSTEM_FLAG`, which is no name in Swift.
    private static let systemErrorMark: CUnsignedLong = 0x8000_0000

    package static var isQueueEmpty: Bool { ERR_peek_error() == 0 }
}

/// OpenSSL's behaviour at the end of the process.
package enum ProcessExit {
    /// Tells OpenSSL to leave its memory to the system at the end of the process. Later calls change nothing.
    /// The setting counts only before the process's first use of OpenSSL. Each function of this module that may be the
    /// first use therefore calls it.
    /// By default OpenSSL frees its global state in an `atexit` handler. `exit` does not wait for other threads. A
    /// worker that verifies or a running fetch would then use freed locks and crash, and an orderly stop would end with
    /// a signal instead of its exit code (OPENSSL_init_crypto(3), OPENSSL_INIT_NO_ATEXIT).
    package static func leavesOpenSSLInPlace() { _ = inPlace }

    // It fails only if OpenSSL cannot start at all. The next call of OpenSSL then fails with a reason.
    private static let inPlace = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
}

package enum RequiredAlgorithms {
    /// - Throws: If OpenSSL lacks one: its configuration file may select providers or properties without it. Each
    ///   published key would then be unusable, and every login an outage.
    package static func check() throws(OpenSSLError) {
        _ = try SHA256.digest(of: [UInt8]().span)
        _ = try PublicKey(.rsa(modulus: [UInt8](repeating: 0xFF, count: 256), exponent: [1, 0, 1]))
    }
}
