internal import CSystemCalls

/// The owner of one file descriptor: it cannot be copied, and it is closed exactly once.
package struct FileDescriptor: ~Copyable {
    /// The number the system knows it by; valid as long as this value lives.
    package let number: Int32

    /// Takes over an open descriptor.
    package init(takingOwnershipOf number: Int32) {
        self.number = number
    }

    /// Gives the number away: its taker closes it.
    package consuming func release() -> Int32 {
        let number = number
        discard self
        return number
    }

    /// Closes the descriptor now. The system frees the number even where it reports an error, so none is retried.
    package consuming func close() {}

    deinit {
        _ = platform_close(number)
    }
}
