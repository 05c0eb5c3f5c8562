internal import CLLSystem
internal import Glibc
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
        guard !given.exchange(true, ordering: .acquiringAndReleasing), descriptor >= 0 else { return }
        _ = platform_event_signal(descriptor)
    }

    /// Takes the signal. The thread then sees what the giver stored before it gave the signal.
    package func take() {
        if descriptor >= 0 { _ = platform_event_clear(descriptor) }
        _ = given.exchange(false, ordering: .acquiringAndReleasing)
    }

    /// Waits for the signal alone and takes it.
    package func wait(until deadline: MonotonicInstant) {
        if BlockingWait.wait(for: [], or: self, until: deadline) == .signal { take() }
    }
}

/// Waits for descriptors, a signal and a deadline at once, on a thread that has nothing else to do (poll(2)).
package enum BlockingWait {
    package typealias Interest = (descriptor: Int32, wantsInput: Bool, wantsSpace: Bool)

    /// What ended the wait: the position of a descriptor that is ready (or has failed), the signal or the deadline.
    package enum Event: Equatable, Sendable { case ready(Int), signal, deadline }

    /// The signal goes before descriptors and is not taken.
    package static func wait(
        for interests: [Interest],
        or signal: WakeSignal? = nil,
        until deadline: MonotonicInstant
    ) -> Event {
        var polled = interests.map { interest in
            let events = (interest.wantsInput ? POLLIN : 0) | (interest.wantsSpace ? POLLOUT : 0)
            return pollfd(fd: interest.descriptor, events: Int16(events), revents: 0)
        }
        // A negative number is passed over.
        polled.append(pollfd(fd: signal?.descriptor ?? -1, events: Int16(POLLIN), revents: 0))
        while true {
            if let signal, signal.isGiven { return .signal }
            var time = milliseconds(until: deadline)
            // A signal without a descriptor ends no poll, so it is looked at once a second.
            if signal?.error != nil { time = time < 0 ? 1_000 : min(time, 1_000) }
            // The array is written within its own count.
            let count = unsafe poll(&polled, nfds_t(polled.count), time)
            if count < 0 {
                // Interrupted, or the system has no memory: then the caller looks again.
                if errno == EINTR { continue }
                return .deadline
            }
            if polled[interests.count].revents != 0 { return .signal }
            if let position = polled.firstIndex(where: { $0.revents != 0 }) { return .ready(position) }
            if MonotonicClock.now() >= deadline { return .deadline }
        }
    }

    /// Milliseconds until a moment, rounded up, so that a wait never ends just before it; -1 for one that never comes.
    private static func milliseconds(until deadline: MonotonicInstant) -> Int32 {
        if deadline == .never { return -1 }
        let left = deadline.nanoseconds(since: MonotonicClock.now())
        return Int32(min(left / 1_000_000 + (left % 1_000_000 == 0 ? 0 : 1), 86_400_000))
    }
}
