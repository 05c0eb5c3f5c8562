internal import CLLSystem
internal import Synchronization

/// Ends waits of other threads, from any thread: an event descriptor that is readable from ``set()`` until ``clear()``.
package final class WakeSignal: Sendable {
    /// The event descriptor, or the negated error number if the system had none left.
    package let descriptor: Int32
    private let given = Atomic<Bool>(false)

    package init() { descriptor = platform_event_descriptor() }

    deinit { if descriptor >= 0 { platform_close(descriptor) } }

    /// The reason why there is no descriptor, so that a wait sees the signal up to a second late; nil if there is one.
    package var error: SocketError? {
        descriptor < 0 ? SocketError(.createEventDescriptor, errorNumber: -descriptor) : nil
    }

    package var isGiven: Bool { given.load(ordering: .acquiring) }

    /// Ends the current wait, or the next one. Further calls before ``clear()`` make no system call.
    package func set() {
        guard !given.exchange(true, ordering: .acquiringAndReleasing), descriptor >= 0 else { return }
        _ = platform_event_signal(descriptor)
    }

    /// Takes the signal. The thread then sees everything that the giver stored before it gave the signal.
    package func clear() {
        if descriptor >= 0 { _ = platform_event_clear(descriptor) }
        _ = given.exchange(false, ordering: .acquiringAndReleasing)
    }

    /// Waits for the signal alone and takes it.
    package func wait(until deadline: MonotonicInstant) {
        if BlockingWait.wait(for: [], or: self, until: deadline) == .signal { clear() }
    }
}

/// Waits for descriptors, a signal and a deadline at once, on a thread that has nothing else to do (poll(2)).
package enum BlockingWait {
    package typealias Interest = (descriptor: Int32, wantsInput: Bool, wantsSpace: Bool)

    /// The event that ended the wait: the position of a descriptor that is ready (or has failed), the signal or the
    /// deadline.
    package enum Event: Equatable, Sendable { case ready(Int), signal, deadline }

    /// The signal is checked before the descriptors and is not taken.
    package static func wait(
        for interests: [Interest],
        or signal: WakeSignal? = nil,
        until deadline: MonotonicInstant
    ) -> Event {
        var polled = interests.map { interest in
            let events = (interest.wantsInput ? POLLIN : 0) | (interest.wantsSpace ? POLLOUT : 0)
            return pollfd(fd: interest.descriptor, events: Int16(events), revents: 0)
        }
        // poll(2) ignores a negative descriptor.
        polled.append(pollfd(fd: signal?.descriptor ?? -1, events: Int16(POLLIN), revents: 0))
        while true {
            if let signal, signal.isGiven { return .signal }
            var time = milliseconds(from: MonotonicClock.now(), until: deadline)
            // A signal without a descriptor ends no poll, so the loop checks it once a second.
            if signal?.error != nil { time = time < 0 ? 1_000 : min(time, 1_000) }
            // The array is written within its own count.
            let result = unsafe platform_poll(&polled, polled.count, time)
            if result == -EINTR { continue }
            // Out of memory: as after a deadline, the caller checks again.
            if result < 0 { return .deadline }
            if polled[interests.count].revents != 0 { return .signal }
            if let position = polled.firstIndex(where: { $0.revents != 0 }) { return .ready(position) }
            if MonotonicClock.now() >= deadline { return .deadline }
        }
    }

    /// Milliseconds until a moment, rounded up, so that a wait never ends just before it; -1 for
    /// ``MonotonicInstant/never``.
    static func milliseconds(from now: MonotonicInstant, until deadline: MonotonicInstant) -> Int32 {
        if deadline == .never { return -1 }
        let left = deadline.nanoseconds(since: now)
        return Int32(min(left / 1_000_000 + (left % 1_000_000 == 0 ? 0 : 1), 86_400_000))
    }
}
