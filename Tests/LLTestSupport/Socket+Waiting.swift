internal import Glibc
package import LLSockets

extension Socket {
    /// Waits until the socket is readable (or writable), or until `deadline`.
    /// - Returns: False if the deadline passes first.
    package func wait(forWriting: Bool, until deadline: MonotonicInstant) -> Bool {
        let interest = (descriptor: descriptor, wantsInput: !forWriting, wantsSpace: forWriting)
        return BlockingWait.wait(for: [interest], until: deadline) != .deadline
    }

    /// Makes closing send a reset instead of an orderly end.
    func resetOnClose() {
        var option = linger(l_onoff: 1, l_linger: 0)
        // The length passed is that of the option.
        _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }
}
