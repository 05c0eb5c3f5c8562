internal import CSystem
internal import Dispatch
internal import Synchronization

/// Resolves names without ever holding its caller beyond a deadline.
///
/// The system's resolver knows no deadline, so it runs on a thread of its own; when it takes too long it is left to end
/// by itself, and only so many may be left at a time.
package enum NameResolution {
    /// Resolves a host name; blocks for as long as it likes.
    package typealias Resolver = @Sendable (_ host: String) -> Result<[SocketAddress], Failure>

    package struct Failure: Error, Equatable, Sendable {
        package let reason: String

        package init(reason: String) {
            self.reason = reason
        }
    }

    /// Look-ups under way for one client, those left behind by their callers included. 8: a resolver that answers
    /// nothing must not gather threads.
    package static let runningLimit = 8

    /// Counts a client's look-ups under way.
    package final class Counter: Sendable {
        fileprivate let running = Atomic<Int>(0)

        package init() {}
    }

    /// The addresses of a host, each with port 0, in the order to try them.
    package static func addresses(
        of host: String,
        resolver: @escaping Resolver,
        counter: Counter,
        signal: CancellationSignal,
        until deadline: MonotonicInstant
    ) throws(HTTPSClientError) -> [SocketAddress] {
        let waiter = try DeadlineWaiter(signal: signal)
        guard let lookup = Lookup() else { throw .nameNotResolved(host: host, reason: "no descriptor is left") }
        guard counter.running.add(1, ordering: .relaxed).newValue <= runningLimit else {
            counter.running.subtract(1, ordering: .relaxed)
            throw .nameNotResolved(host: host, reason: "the resolver does not answer")
        }
        // A queue of its own has a thread of its own, which a slow look-up can hold without starving others.
        DispatchQueue(label: "name-resolution").async {
            lookup.finish(resolver(host))
            counter.running.subtract(1, ordering: .relaxed)
        }
        try waiter.add(lookup.descriptor, .reading, tag: 0)
        guard try waiter.wait(until: deadline) != nil else { throw .timedOut(phase: .resolving) }
        switch lookup.result {
        case .success(let addresses) where !addresses.isEmpty: return addresses
        case .success, nil: throw .nameNotResolved(host: host, reason: "it has no address")
        case .failure(let failure): throw .nameNotResolved(host: host, reason: failure.reason)
        }
    }

    /// One look-up, shared by the thread that asks and the one that resolves.
    private final class Lookup: Sendable {
        let descriptor: Int32
        private let outcome = Locked<Result<[SocketAddress], Failure>?>(nil)

        init?() {
            descriptor = platform_event_descriptor()
            if descriptor < 0 { return nil }
        }

        deinit {
            if descriptor >= 0 { _ = platform_close(descriptor) }
        }

        var result: Result<[SocketAddress], Failure>? { outcome.withLock { $0 } }

        func finish(_ result: Result<[SocketAddress], Failure>) {
            outcome.withLock { $0 = result }
            _ = platform_event_signal(descriptor)
        }
    }
}
