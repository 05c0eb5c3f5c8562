internal import Glibc
package import Networking

/// A server on a loopback port of the system's choice.
package final class TestServer: Sendable {
    package let server: HTTPServer

    package init(
        limits: HTTPServerLimits = HTTPServerLimits(),
        workerCount: Int = 1,
        faults: FaultPlan? = nil,
        tls: TLSContextPublisher? = nil,
        makeHandler: @escaping @Sendable (WorkerIndex) -> any HTTPRequestHandler = { _ in ProbeHandler() }
    ) throws(SocketError) {
        server = HTTPServer(
            configuration: HTTPServerConfiguration(
                addresses: [.loopback(port: 0)],
                workerCount: workerCount,
                limits: limits,
                tls: tls
            ),
            faults: faults,
            makeHandler: makeHandler
        )
        try server.start()
    }

    /// Where it listens.
    package var address: SocketAddress { server.localAddresses.first ?? .loopback(port: 0) }

    /// Waits until the counters satisfy `condition`, at most for `timeout`.
    package func waitUntil(_ timeout: Duration = .seconds(10), _ condition: (HTTPServerCounters) -> Bool) -> Bool {
        let deadline = MonotonicClock.now() + timeout
        while MonotonicClock.now() < deadline {
            if condition(server.counters) { return true }
            sched_yield()
        }
        return false
    }

    /// Stops in order.
    @discardableResult
    package func stop(grace: Duration = .seconds(5)) async -> Int {
        await server.stop(drainDelay: .zero, grace: grace)
    }
}
