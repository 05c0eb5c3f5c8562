internal import CLLOpenSSL

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
