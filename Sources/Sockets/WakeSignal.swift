internal import Synchronization

/// Ends other threads' waits, from any thread: an event descriptor that is readable from ``give()`` until ``take()``.
package final class WakeSignal: Sendable {
    /// Where the system had no descriptor left: the error number, negated.
    package let descriptor: Int32
    private let given = Atomic<Bool>(false)
    private let system: SystemCalls

    package init(_ system: SystemCalls = SystemCalls()) {
        self.system = system
        descriptor = system.makeEventDescriptor()
    }

    deinit {
        if descriptor >= 0 { system.close(descriptor) }
    }

    /// Why no descriptor tells of the signal, so that a wait sees it a second late; nil where one does.
    package var error: SocketError? {
        descriptor < 0 ? SocketError(.createEventDescriptor, errorNumber: -descriptor) : nil
    }

    /// Whether it was given and not taken since.
    package var isGiven: Bool { given.load(ordering: .acquiring) }

    /// Ends the wait under way, or the next one. One system call does for all until the signal is taken.
    package func give() {
        if !given.exchange(true, ordering: .acquiringAndReleasing), descriptor >= 0 { system.signal(descriptor) }
    }

    /// Takes the signal: what was said before it was given is seen after this.
    package func take() {
        if descriptor >= 0 { system.clear(descriptor) }
        _ = given.exchange(false, ordering: .acquiringAndReleasing)
    }

    /// Waits for the signal alone and takes it.
    package func wait(until deadline: MonotonicInstant) {
        if BlockingWait.wait(for: [], or: self, until: deadline) == .signal { take() }
    }
}
