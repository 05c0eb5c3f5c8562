internal import COpenSSL

/// A failed OpenSSL call: what was attempted and the library's own reason.
///
/// Making one empties the calling thread's error queue, so that a failure can never be
/// mistaken for the failure of a later, unrelated call on the same thread.
package struct OpenSSLError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The OpenSSL function that failed.
    package let operation: String
    /// The oldest reason in the error queue: the root of the failure.
    package let reason: String

    /// Describes the failure of `operation` from the thread's error queue, and empties the queue.
    package init(_ operation: String) {
        self.operation = operation
        self.reason = TLSError.drainQueue() ?? "no reason given"
    }

    package var description: String { "\(operation): \(reason)" }

    /// Whether the calling thread's error queue is empty.
    package static var isQueueEmpty: Bool { ERR_peek_error() == 0 }
}

/// What OpenSSL does when the process ends.
package enum ProcessExit {
    /// Tells OpenSSL to leave its memory to the system at the end of the process; later calls change nothing.
    ///
    /// It counts only before the process's first use of OpenSSL, so each function here that may be that use calls it.
    ///
    /// By default OpenSSL frees its global state in an `atexit` handler. `exit` does not wait for other threads, so
    /// a worker that verifies or a fetch under way would then use freed locks and crash, and an orderly stop would
    /// end with a signal instead of its exit code (OPENSSL_init_crypto(3), OPENSSL_INIT_NO_ATEXIT).
    package static func leavesOpenSSLInPlace() { _ = inPlace }

    // It fails only when OpenSSL cannot start at all; the next call of OpenSSL then fails with a reason.
    private static let inPlace = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
}
