package import OpenSSL
internal import Sockets
internal import Synchronization

/// The TLS settings of a server's listeners. They can be exchanged while it runs: connections made from then on get the
/// new ones, those there are keep theirs.
package final class TLSContextPublisher: Sendable {
    private let current: Locked<TLSContext>
    private let published = Atomic<UInt64>(1)

    package init(_ context: TLSContext) { current = Locked(context) }

    /// Rises with each publication, so that a worker takes the lock only when there is something new.
    var epoch: UInt64 { published.load(ordering: .acquiring) }

    /// The settings in force.
    package var context: TLSContext { current.withLock { $0 } }

    /// Puts other settings in force.
    package func publish(_ context: TLSContext) {
        current.withLock { $0 = context }
        published.wrappingAdd(1, ordering: .releasing)
    }
}

/// One worker's copy of the TLS settings in force; none where the listeners speak plain HTTP.
struct WorkerTLS {
    private let publisher: TLSContextPublisher?
    private var epoch: UInt64 = 0
    private var context: TLSContext?

    init(_ publisher: TLSContextPublisher?) { self.publisher = publisher }

    /// The settings for a new connection.
    mutating func currentContext() -> TLSContext? {
        guard let publisher else { return nil }
        let newest = publisher.epoch
        if newest != epoch {
            // The number first: settings published in between are taken again, never missed.
            epoch = newest
            context = publisher.context
        }
        return context
    }
}
