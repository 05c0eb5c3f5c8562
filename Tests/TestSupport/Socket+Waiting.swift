package import Sockets

extension Socket {
    /// Waits until the socket is readable (or writable), or until `deadline`.
    /// - Returns: False where the deadline passed first.
    package func wait(forWriting: Bool, until deadline: MonotonicInstant) -> Bool {
        let interest = BlockingWait.Interest(descriptor.number, wantsInput: !forWriting, wantsSpace: forWriting)
        return BlockingWait.wait(for: [interest], until: deadline) != .deadline
    }
}
