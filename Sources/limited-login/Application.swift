internal import Dispatch
internal import FoundationEssentials
internal import Glibc
internal import LLHTTP
internal import LLService
internal import LLStores
internal import LimitedLoginKeys
internal import Logging

/// All parts of one running service, wired together; `serve` and `demo` both start here.
struct Application {
    let core: ServiceCore
    let server: HTTPServer
    let administration: HTTPServer
    let configuration: ServiceConfiguration
    let tls: Published<TLSContext>?

    /// Builds the service from its configuration; it binds and fetches nothing yet.
    /// - Parameter isLocal: True if the service answers only requests for a loopback host.
    init(_ configuration: ServiceConfiguration, logger: Logger, isLocal: Bool = false) throws(StartError) {
        let registry = PrometheusRegistry(help: ServiceMetrics.help)
        self.configuration = configuration
        let cache = try ServiceFactory.keyCache(configuration, events: ServiceEvents.ofKeys(logger))
        let process = ProcessMetrics(registry: registry)
        tls = try ServiceFactory.tlsContext(configuration).map { Published($0) }
        let metrics = ServiceMetrics(registry: registry)
        let webhooks = try configuration.callbacksURL.map { _ throws(StartError) in
            WebhookSender(client: try ServiceFactory.httpsClient(configuration), metrics: metrics, logger: logger)
        }
        let store = try ServiceFactory.replayStore(
            configuration,
            onEvent: ServiceEvents.ofReplayStore(logger, registry)
        )
        let graph = GraphWorkers(client: try ServiceFactory.graphClient(configuration, metrics: metrics))
        core = ServiceCore(
            settings: try ServiceFactory.settings(configuration),
            cache: cache,
            replayStore: store,
            metrics: metrics,
            logger: logger,
            identifiers: RequestIdentifier(process: UInt32.random(in: .min ... .max)),
            signatureCacheEntries: configuration.signaturesPerWorker,
            auditLogger: configuration.auditIsOn ? LoggingSetup.auditLogger : nil,
            graph: graph,
            webhooks: webhooks,
            stuckThread: { now in process.application.withLock { $0?.stuckThread(at: now) } },
            exposition: {
                process.update()
                return registry.render()
            }
        )
        let memory = ProcessLimits.memory(of: configuration.memoryLimitBytes)
        var limits = HTTPServerLimits()
        let descriptors = ProcessLimits.raiseDescriptorLimit()
        // The other half is for the program with its files (20 MB), for unused parts of buffers, for the remembered
        // signatures (``ServiceConfiguration/signaturesPerWorker``), and for the replay store's entries.
        limits.connectionBytes = memory / 2
        limits.idleTimeout = configuration.idleTimeout
        limits.trustedPeers = configuration.trustedPeers
        let free = try configuration.freeDescriptors(of: descriptors)
        limits.leaveDescriptors(of: descriptors, workers: configuration.workerCount, free: free)
        var listener = HTTPServerConfiguration(address: configuration.listen, workerCount: configuration.workers)
        (listener.socketMode, listener.limits, listener.tls) = (configuration.listenMode, limits, tls)
        server = HTTPServer(configuration: listener) { [core] _ in
            guard isLocal else { return ServiceHandler(core: core, listener: .service) }
            return ServiceHandler(core: core, listener: .service) { SameOrigin.refusesHost(&$0, $1) }
        }
        // Probes and Prometheus need no more connections.
        limits.connections = min(256, free / 4)
        // The metrics are longer than any answer of the service; only a few slow readers of them are allowed.
        limits.connectionBytes = memory / 16
        limits.waitingAnswerBytes = limits.connectionBytes / 4
        listener = HTTPServerConfiguration(address: .network(configuration.adminListen), workerCount: 1)
        listener.limits = limits
        administration = HTTPServer(configuration: listener) { [core] _ in
            ServiceHandler(core: core, listener: .administration)
        }
        cache.onUpdate { [server] in server.wakeParked() }
        process.application.withLock { [self] in $0 = self }
    }

    /// The address at which this machine reaches the service, once started; nil for a Unix socket.
    var ownAddress: SocketAddress? { server.localAddress?.network?.reachable }

    /// Acquires all that the configuration needs, threads and both listeners, then reports that the service is ready.
    /// The replay store connects meanwhile.
    func start(tryingFor time: Duration) throws(StartError) {
        Threads.require(configuration.threads)
        if case .redis(let store) = core.replayStore { store.start() }
        try start(administration, "--admin-listen", until: MonotonicClock.now() + time)
        try start(server, "--listen", until: MonotonicClock.now() + time)
        core.cache.start()
        warn(of: configuration, tls?.value)
        let address = server.localAddress?.description ?? ""
        notify(.ready, "Listening on \(address)")
        if let pulse = ServiceManager.pulse(ProcessInfo.processInfo.environment) {
            beat(every: pulse, on: DispatchQueue(label: "watchdog"))
        }
        core.logger.notice(
            "listening",
            metadata: [
                "address": "\(address)",
                "admin_address": "\(administration.localAddress?.description ?? "")",
                "apps": "\(configuration.appIDs.count)",
                "version": "\(BuildInformation.version)",
            ]
        )
    }

    /// Sends the manager signs of life for as long as the administrative `/livez` is good.
    private func beat(every pulse: Duration, on queue: DispatchQueue) {
        if core.stuckThread(MonotonicClock.now()) == nil { notify(.alive) }
        let time = DispatchTimeInterval.nanoseconds(Int(clamping: pulse.wholeNanoseconds))
        queue.asyncAfter(deadline: .now() + time) { beat(every: pulse, on: queue) }
    }

    /// Starts a server. It retries after an error that may pass, unless the program is to stop.
    private func start(_ server: HTTPServer, _ flag: String, until deadline: MonotonicInstant) throws(StartError) {
        var isTold = false
        while true {
            do throws(SocketError) {
                return try server.start()
            } catch {
                let mayPass = [EADDRINUSE, EADDRNOTAVAIL, EAGAIN]
                guard mayPass.contains(error.errorNumber), MonotonicClock.now() < deadline,
                    !ProcessSignals.stopComes(before: .now() + .milliseconds(100))
                else { throw StartError(error, flag) }
                if !isTold { core.logger.warning("trying on", metadata: ["reason": "\(error)"]) }
                isTold = true
            }
        }
    }

    /// The name of a queue that has not run for 10 s; nil if all run.
    private func stuckThread(at now: MonotonicInstant) -> String? {
        let longestTurn = Duration.seconds(10)
        if let number = server.stuckWorker(at: now, within: longestTurn) { return "http-worker-\(number)" }
        return core.cache.isAlive(at: now, within: longestTurn) ? nil : "key-set-cache"
    }

    /// Logged at the start and at each reload, when the operator reads the log.
    func warn(of configuration: ServiceConfiguration, _ tls: TLSContext?) {
        if let (start, end) = tls?.certificateTimes {
            let now = WallClock.unixSeconds()
            if end <= now { core.logger.warning("the TLS certificate has expired") }
            if start > now { core.logger.warning("the TLS certificate is not valid yet") }
        }
        for warning in configuration.warnings {
            core.logger.warning("a setting may be a mistake", metadata: ["reason": "\(warning)"])
        }
    }

    func notify(_ state: ServiceManager.State, _ status: String? = nil) {
        let socket = ProcessInfo.processInfo.environment["NOTIFY_SOCKET"]
        guard let manager = ServiceManager(notifySocket: socket),
            state == .stopping || state == .alive || !core.isDraining
        else { return }
        do throws(SocketError) {
            // Open requests and the log may take a while beyond the delay.
            let time = configuration.drainDelay + .seconds(20)
            try manager.notify(state, status: status, within: state == .stopping ? time : nil)
        } catch {
            core.logger.warning("the service manager cannot be told", metadata: ["reason": "\(error)"])
        }
    }

    func stop() {
        core.beginDraining()
        notify(.stopping, "Stopping")
        let delay = configuration.drainDelay
        core.logger.notice("stopping", metadata: ["drain_delay_seconds": "\(delay.components.seconds)"])
        // Open requests may take 10 s to end after the listeners have closed.
        let cut = server.stop(drainDelay: delay, grace: .seconds(10))
        administration.stop(drainDelay: .zero, grace: .seconds(1))
        core.cache.stopAndWait()
        // Graph stops first: the store remembers the revocations of its last calls.
        core.graph?.stop()
        core.webhooks?.stop()
        if case .redis(let store) = core.replayStore { store.stop() }
        core.logger.notice("stopped", metadata: ["requests_cut_off": "\(cut)"])
    }
}

// The resources that a configuration needs from the system, besides connections.
extension ServiceConfiguration {
    /// The greatest number of calls to other servers at a time, including the fetch of the keys. Each has a thread, and
    /// a second one during a name look-up.
    private var calls: Int {
        1 + (self.appSecretsFile != nil ? GraphWorkers.threadLimit : 0)
            + (self.accessTokensAreAccepted ? GraphWorkers.accessTokenThreadLimit : 0)
            + (self.callbacksURL != nil ? WebhookLimits().threadCount : 0)
    }

    /// The workers, the administrative listener's worker, calls with their look-ups, and the queues of the keys, the seed
    /// file, the store, the signals and a reload.
    fileprivate var threads: Int { workerCount + 1 + 2 * calls + 5 }

    fileprivate func freeDescriptors(of limit: Int) throws(StartError) -> Int {
        // A worker has an epoll set, a wake-up signal and a listener. A call has a connection and a wake-up signal, and two
        // more for its look-up. 16 are for Redis, files, and the check that an address is free.
        let needed = ProcessMetrics.openDescriptors() + 3 * (workerCount + 1) + 4 * calls + 16
        // For the connections of both listeners, and those held beyond a limit: a quarter for each kind.
        let leastConnections = 64
        guard limit - needed >= leastConnections else {
            throw StartError(
                "\(needed + leastConnections) descriptors are needed with \(workerCount) workers, and the system "
                    + "gives this process \(limit): set workers lower, or raise its limit (ulimit -n, LimitNOFILE=)"
            )
        }
        return limit - needed
    }
}
