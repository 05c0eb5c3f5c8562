package import LLHTTPServer
package import LLSockets

extension HTTPServerLimits {
    /// No request is shed, no connection counts as slow, and no connection's time is over, however long the machine
    /// stands still.
    package static var patient: HTTPServerLimits {
        var limits = HTTPServerLimits()
        limits.queueDelay = .seconds(3_600)
        limits.handshakeDeadline = .seconds(3_600)
        limits.headDeadline = .seconds(3_600)
        limits.bodyDeadline = .seconds(3_600)
        limits.writeStall = .seconds(3_600)
        limits.idleTimeout = .seconds(3_600)
        limits.slowRequestAge = .seconds(3_600)
        return limits
    }
}

/// A server on a loopback port of the system's choice, or on a Unix socket in a folder of its own.
package final class TestServer: Sendable {
    /// What it listens on.
    package enum Kind: CaseIterable, Sendable {
        case tcp, unix
    }

    package let server: HTTPServer
    private let folder: ShortFolder?

    package init(
        _ kind: Kind = .tcp,
        limits: HTTPServerLimits = .patient,
        workerCount: Int = 1,
        faults: FaultPlan? = nil,
        tls: Published<TLSContext>? = nil,
        makeHandler: @escaping @Sendable (Int) -> any HTTPRequestHandler = { _ in ProbeHandler() }
    ) throws {
        folder = kind == .unix ? try ShortFolder() : nil
        server = HTTPServer(
            configuration: HTTPServerConfiguration(
                addresses: [try folder?.socketAddress() ?? .loopback(port: 0)],
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
    package var address: ListenAddress { server.localAddresses.first ?? .loopback(port: 0) }

    /// Waits until the counters satisfy `condition`, at most for `timeout`.
    package func waitUntil(_ timeout: Duration = patienceOfTests, _ condition: (HTTPServerCounters) -> Bool) -> Bool {
        becomesTrue(within: timeout) { condition(server.counters) }
    }

    /// Stops in order.
    @discardableResult
    package func stop(grace: Duration = .seconds(5)) async -> Int {
        await server.stop(drainDelay: .zero, grace: grace)
    }
}
