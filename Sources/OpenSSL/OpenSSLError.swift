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
        self.reason = Self.drainQueue()
    }

    package var description: String { "\(operation): \(reason)" }

    /// Empties the calling thread's error queue.
    package static func clearQueue() {
        ERR_clear_error()
    }

    /// Whether the calling thread's error queue is empty.
    package static var isQueueEmpty: Bool { ERR_peek_error() == 0 }

    private static func drainQueue() -> String {
        let code = ERR_get_error()
        ERR_clear_error()
        guard code != 0 else { return "no reason given" }
        // 256 bytes is the size ERR_error_string_n documents as always enough; it is zero-terminated within them.
        var text = [CChar](repeating: 0, count: 256)
        unsafe text.withUnsafeMutableBufferPointer { buffer in
            unsafe ERR_error_string_n(code, buffer.baseAddress, buffer.count)
        }
        let bytes = text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        return String(decoding: bytes, as: UTF8.self)
    }
}
