internal import CSystem
internal import Synchronization

/// Ends another thread's wait, as often as it is given.
package final class WakeSignal: Sendable {
    let descriptor: Int32
    private let isGiven = Atomic<Bool>(false)

    /// - Throws: Where the system has no descriptor left.
    package init() throws(SocketError) {
        descriptor = platform_event_descriptor()
        guard descriptor >= 0 else { throw SocketError(.createEventDescriptor, errorNumber: -descriptor) }
    }

    deinit { _ = platform_close(descriptor) }

    /// Ends the wait under way, or the next one; from any thread. One system call does for all until the wait ends.
    package func give() {
        if !isGiven.exchange(true, ordering: .acquiringAndReleasing) { _ = platform_event_signal(descriptor) }
    }

    /// Takes the signal: what was said before it was given is seen after this.
    func take() {
        _ = platform_event_clear(descriptor)
        _ = isGiven.exchange(false, ordering: .acquiringAndReleasing)
    }

    /// Waits for the signal alone, at most until `deadline`.
    package func wait(until deadline: MonotonicInstant) {
        // Negative results are interruptions: whoever waits looks again at what it waits for anyway.
        _ = platform_poll(descriptor, 0, OutboundConnection.milliseconds(until: deadline))
        take()
    }
}
