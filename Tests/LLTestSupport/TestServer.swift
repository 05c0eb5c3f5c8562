internal import Dispatch
package import LLHTTP

extension HTTPServerLimits {
    /// Limits so large that no request is shed, no connection counts as slow and no connection times out, even on a
    /// slow machine.
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

/// A server on a loopback port of the system's choice, or on a Unix socket in a folder of its own. It ends with this object.
package final class TestServer: Sendable {
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
        makeHandler: @escaping @Sendable (Int) -> any HTTPRequestHandler = { _ in TestHandler.probe() }
    ) throws {
        folder = kind == .unix ? try ShortFolder() : nil
        let address = try folder.map { ListenAddress.unix(try $0.socketPath()) } ?? .loopback(port: 0)
        var configuration = HTTPServerConfiguration(address: address, workerCount: workerCount)
        (configuration.limits, configuration.tls) = (limits, tls)
        server = HTTPServer(configuration: configuration, makeHandler: makeHandler)
        if let faults { try faults.follow(server.start) } else { try server.start() }
    }

    deinit {
        server.beginStop(drainDelay: .zero, grace: .zero)
        server.waitUntilEnded()
    }

    /// A patient server. `adjust` changes its limits.
    package static func limited(
        _ kind: Kind = .tcp,
        faults: FaultPlan? = nil,
        tls: Published<TLSContext>? = nil,
        adjust: (inout HTTPServerLimits) throws -> Void
    ) throws -> TestServer {
        var limits = HTTPServerLimits.patient
        try adjust(&limits)
        return try TestServer(kind, limits: limits, faults: faults, tls: tls)
    }

    /// The same with the good certificate. Idle connections close soon after it stops.
    package static func secure(
        _ kind: Kind = .tcp,
        faults: FaultPlan? = nil,
        adjust: (inout HTTPServerLimits) throws -> Void = { _ in }
    ) throws -> TestServer {
        let context = try TestCertificates.shared.get().good.serverContext()
        return try limited(kind, faults: faults, tls: Published(context)) { limits in
            limits.drainIdleWait = .milliseconds(20)
            try adjust(&limits)
        }
    }

    /// Clients that send these bytes once all are connected.
    package func clients(_ count: Int, from source: [UInt8]? = nil, sending bytes: [UInt8]) throws -> [BlockingClient] {
        let clients = try (0..<count).map { _ in try BlockingClient(address, from: source) }
        for client in clients { client.send(bytes) }
        return clients
    }

    /// Clients, each with a request that the server has parked.
    package func parkedClients(_ count: Int) throws -> [BlockingClient] {
        let clients = try clients(count, sending: Array("GET /park HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
        let areParked = waitUntil { $0.parked == count }
        guard areParked else { throw TestSupportError("the requests are not parked") }
        return clients
    }

    package var address: ListenAddress { server.localAddress ?? .loopback(port: 0) }

    /// Waits until the counters satisfy `condition`, at most for `timeout`.
    package func waitUntil(_ timeout: Duration = patienceOfTests, _ condition: (HTTPServerCounters) -> Bool) -> Bool {
        becomesTrue(within: timeout) { condition(server.counters) }
    }

    @discardableResult
    package func stop(grace: Duration = .seconds(5)) async -> Int { await server.stop(drainDelay: .zero, grace: grace) }
}

extension HTTPServer {
    /// Does the same as the server's own function, and blocks no thread of Swift's pool.
    @discardableResult
    package func stop(drainDelay: Duration, grace: Duration) async -> Int {
        beginStop(drainDelay: drainDelay, grace: grace)
        await untilEnded()
        return cutOffRequests
    }

    package func untilEnded() async {
        await withCheckedContinuation { continuation in
            DispatchQueue(label: "server-end").async {
                self.waitUntilEnded()
                continuation.resume()
            }
        }
    }
}
