internal import CSystem

/// Waits for descriptors, a deadline and a cancellation at once, on a thread that may block.
package struct DeadlineWaiter: ~Copyable {
    /// What to wait for on one descriptor.
    package enum Interest { case reading, writing }

    private static let cancellationTag = UInt64.max
    private let set: FileDescriptor
    private let signal: CancellationSignal

    package init(signal: CancellationSignal) throws(HTTPSClientError) {
        let number = platform_epoll_create()
        guard number >= 0 else { throw .connectionFailed(reason: SocketError.sentence(for: -number)) }
        let set = FileDescriptor(takingOwnershipOf: number)
        if let descriptor = signal.descriptor {
            let events = UInt32(PLATFORM_READABLE)
            try Self.check(platform_epoll_add(number, descriptor, events, Self.cancellationTag))
        }
        self.set = set
        self.signal = signal
    }

    /// Adds a descriptor; `tag` is what ``wait(until:)`` answers for it.
    package func add(_ descriptor: Int32, _ interest: Interest, tag: Int) throws(HTTPSClientError) {
        try Self.check(platform_epoll_add(set.number, descriptor, Self.events(interest), UInt64(clamping: tag)))
    }

    package func change(_ descriptor: Int32, _ interest: Interest, tag: Int) throws(HTTPSClientError) {
        try Self.check(platform_epoll_modify(set.number, descriptor, Self.events(interest), UInt64(clamping: tag)))
    }

    package func remove(_ descriptor: Int32) {
        _ = platform_epoll_remove(set.number, descriptor)
    }

    /// The tag of a descriptor that is ready, or nil when the deadline passed first.
    package func wait(until deadline: MonotonicInstant) throws(HTTPSClientError) -> Int? {
        while true {
            guard !signal.isCancelled else { throw .cancelled }
            let left = deadline.nanoseconds(since: MonotonicClock.now())
            // Rounded up to whole milliseconds; cut to a minute so that the C int cannot overflow.
            let milliseconds = Int32(min(left / 1_000_000 + (left % 1_000_000 == 0 ? 0 : 1), 60_000))
            var event = platform_event()
            let ready = unsafe platform_epoll_wait(set.number, &event, 1, milliseconds)
            if ready == 0, MonotonicClock.now() >= deadline { return nil }
            if ready < 0, ready != -ErrorNumber.interrupted {
                throw .connectionFailed(reason: SocketError.sentence(for: -ready))
            }
            if ready == 1, event.tag != Self.cancellationTag { return Int(clamping: event.tag) }
        }
    }

    private static func events(_ interest: Interest) -> UInt32 {
        switch interest {
        case .reading: UInt32(PLATFORM_READABLE)
        case .writing: UInt32(PLATFORM_WRITABLE)
        }
    }

    private static func check(_ result: Int32) throws(HTTPSClientError) {
        if result < 0 { throw .connectionFailed(reason: SocketError.sentence(for: -result)) }
    }
}
