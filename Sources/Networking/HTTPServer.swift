/// An HTTP/1.1 server: one worker for each processor, each with its own listeners, epoll set and handler.
package final class HTTPServer: Sendable {
    /// What the server was made with.
    package let configuration: HTTPServerConfiguration
    let makeHandler: @Sendable (WorkerIndex) -> any HTTPRequestHandler

    /// - Parameter makeHandler: Makes one worker's handler; called on that worker's thread.
    package init(
        configuration: HTTPServerConfiguration,
        makeHandler: @escaping @Sendable (WorkerIndex) -> any HTTPRequestHandler
    ) {
        self.configuration = configuration
        self.makeHandler = makeHandler
    }

    /// Binds, listens and starts the workers; returns once connections are accepted.
    /// - Throws: Where an address cannot be bound or a descriptor cannot be had; nothing is left open then.
    package func start() throws(SocketError) {}

    /// The bound addresses, with the ports the system chose; empty before ``start()``.
    package var localAddresses: [SocketAddress] { [] }

    /// Makes every worker visit its parked requests; may be called on any thread.
    package func wakeParked() {}

    /// True once ``stop(drainDelay:grace:)`` or ``stopNow()`` was called.
    package var isDraining: Bool { false }

    /// Stops in order: draining at once, listeners closed after `drainDelay` with their queues emptied, then requests
    /// under way get `grace` to end. Returns when every connection is closed and every worker has ended.
    /// - Returns: The number of requests that were cut off; 0 where all were answered.
    @discardableResult
    package func stop(drainDelay: Duration, grace: Duration) async -> Int { 0 }

    /// Closes everything at once; a ``stop(drainDelay:grace:)`` under way ends early.
    package func stopNow() {}

    /// The sums over all workers.
    package var counters: HTTPServerCounters { HTTPServerCounters() }
}
