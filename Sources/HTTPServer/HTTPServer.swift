internal import Dispatch
package import OpenSSL
package import Sockets
internal import Synchronization

/// An HTTP/1.1 server: one worker for each processor, each with its own listeners (or its share of a Unix socket), epoll
/// set and handler.
package final class HTTPServer: Sendable {
    package let configuration: HTTPServerConfiguration
    private let makeHandler: @Sendable (WorkerIndex) -> any HTTPRequestHandler
    private let faults: FaultPlan?
    private let shared = WorkerShared()
    private let addresses = Locked<[ListenAddress]>([])
    private let workers = DispatchGroup()

    /// - Parameters:
    ///   - faults: Makes system calls fail, for tests.
    ///   - makeHandler: Makes one worker's handler; called on that worker's thread.
    package init(
        configuration: HTTPServerConfiguration,
        faults: FaultPlan? = nil,
        makeHandler: @escaping @Sendable (WorkerIndex) -> any HTTPRequestHandler
    ) {
        var configuration = configuration
        let most = configuration.tls == nil ? .max : configuration.limits.secureConnections
        configuration.limits.connections = min(configuration.limits.connections, most)
        self.configuration = configuration
        self.faults = faults
        self.makeHandler = makeHandler
    }

    /// Binds, listens and starts the workers; returns once connections are accepted. A server starts once.
    /// - Throws: Where an address cannot be bound or a descriptor cannot be had; nothing is left open then.
    package func start() throws(SocketError) {
        let workerCount = max(1, configuration.workerCount ?? ProcessLimits.processorCount())
        let system = SystemCalls(faults: faults)
        let listening = try ListenerSet.make(configuration: configuration, workerCount: workerCount)
        for listener in listening.listeners.joined() { system.opened(listener.descriptor) }
        var prepared: [WorkerDescriptors] = []
        do throws(SocketError) {
            for listeners in listening.listeners {
                prepared.append(try Self.prepare(listeners, system))
            }
        } catch {
            for listener in listening.listeners.joined() { listener.close(system) }
            for descriptors in prepared { system.close(descriptors.poll) }
            throw error
        }
        shared.runningWorkers.store(prepared.count, ordering: .relaxed)
        shared.handles.withLock { $0 = prepared.map(\.handle) }
        addresses.withLock { $0 = listening.addresses }
        for _ in prepared { workers.enter() }
        for (index, descriptors) in prepared.enumerated() { run(descriptors, index, system) }
    }

    private static func prepare(
        _ listeners: [Listener],
        _ system: SystemCalls
    ) throws(SocketError) -> WorkerDescriptors {
        let poll = system.createPoll()
        guard poll >= 0 else { throw SocketError(.createPoll, errorNumber: -poll) }
        let wake = WakeSignal(system)
        if let error = wake.error {
            system.close(poll)
            throw error
        }
        if let error = Worker.register(poll, wake: wake.descriptor, listeners: listeners, system) {
            system.close(poll)
            throw SocketError(.controlPoll, errorNumber: error)
        }
        return WorkerDescriptors(handle: WorkerHandle(wake: wake), poll: poll, listeners: listeners)
    }

    private func run(_ descriptors: WorkerDescriptors, _ index: WorkerIndex, _ system: SystemCalls) {
        LoopQueue.start("http-worker-\(index)") { [self] in
            var worker = Worker(descriptors, index, configuration, shared, system, handler: makeHandler(index))
            worker.run()
            shared.runningWorkers.wrappingSubtract(1, ordering: .relaxed)
            workers.leave()
        }
    }

    /// The bound addresses, with the ports the system chose; empty before ``start()``.
    package var localAddresses: [ListenAddress] { addresses.withLock { $0 } }

    /// How many workers it has; 0 before ``start()``.
    package var workerCount: Int { shared.handles.withLock { $0.count } }

    /// Makes every worker visit its parked requests; may be called on any thread.
    package func wakeParked() {
        for handle in shared.handles.withLock({ $0 }) { handle.give(.wakeParked) }
    }

    /// True once ``stop(drainDelay:grace:)`` was called.
    package var isDraining: Bool { shared.isDraining.load(ordering: .acquiring) }

    /// Stops in order: draining at once, listeners closed after `drainDelay` with their queues emptied, then requests
    /// under way get `grace` to end. Returns when every connection is closed and every worker has ended.
    /// - Returns: The number of connections that were cut off within a request; 0 where all were answered.
    @discardableResult
    package func stop(drainDelay: Duration, grace: Duration) async -> Int {
        beginStop(drainDelay: drainDelay, grace: grace)
        await untilEnded()
        return cutOffRequests
    }

    /// As ``stop(drainDelay:grace:)``, without waiting for the end. The first call says when the listeners close, the last
    /// one when the grace ends.
    package func beginStop(drainDelay: Duration, grace: Duration) {
        let listenersCloseAt = MonotonicClock.now() + drainDelay
        shared.listenersCloseAt.store(listenersCloseAt.nanoseconds, ordering: .relaxed)
        shared.cutOffAt.store((listenersCloseAt + grace).nanoseconds, ordering: .relaxed)
        shared.isDraining.store(true, ordering: .releasing)
        for handle in shared.handles.withLock({ $0 }) { handle.wake.give() }
    }

    /// The number of connections cut off within a request, known once the server has ended.
    package var cutOffRequests: Int { shared.cutOffRequests.load(ordering: .relaxed) }

    /// Returns when every worker has ended.
    package func untilEnded() async {
        await withCheckedContinuation { continuation in
            workers.notify(queue: DispatchQueue(label: "http-server-end")) { continuation.resume() }
        }
    }

    /// Blocks the calling thread until every worker has ended; for a main thread that has nothing else to do.
    package func waitUntilEnded() { workers.wait() }

    package var counters: HTTPServerCounters {
        var sum = HTTPServerCounters()
        for handle in shared.handles.withLock({ $0 }) { handle.counters.add(to: &sum) }
        return sum
    }
}

/// What an ``HTTPServer`` needs to know.
package struct HTTPServerConfiguration: Sendable {
    /// Where to listen; port 0 lets the system choose (see ``HTTPServer/localAddresses``).
    package var addresses: [ListenAddress]
    /// The permissions of Unix sockets among them.
    package var socketMode: UnixSocketMode
    /// Worker threads, at least 1; nil: one for each processor this process may use.
    package var workerCount: Int?
    package var limits: HTTPServerLimits
    /// The TLS settings of the listeners; nil: they speak plain HTTP.
    package var tls: Published<TLSContext>?

    package init(
        addresses: [ListenAddress],
        socketMode: UnixSocketMode = .standard,
        workerCount: Int? = nil,
        limits: HTTPServerLimits = HTTPServerLimits(),
        tls: Published<TLSContext>? = nil
    ) {
        self.addresses = addresses
        self.socketMode = socketMode
        self.workerCount = workerCount
        self.limits = limits
        self.tls = tls
    }
}
