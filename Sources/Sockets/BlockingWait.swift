internal import Glibc

/// Waits for descriptors, a signal and a deadline at once, on a thread that has nothing else to do (poll(2)).
package enum BlockingWait {
    /// What to wait for on one descriptor.
    package struct Interest {
        package let descriptor: Int32
        package let wantsSpace: Bool
        package let wantsInput: Bool

        package init(_ descriptor: Int32, wantsInput: Bool, wantsSpace: Bool) {
            self.descriptor = descriptor
            self.wantsInput = wantsInput
            self.wantsSpace = wantsSpace
        }
    }

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
            // Nothing but looking tells of a signal without a descriptor.
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
