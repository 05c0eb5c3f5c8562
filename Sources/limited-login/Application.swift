internal import FoundationEssentials
internal import HTTPServer
internal import KeySets
internal import Logging
internal import LoginStores
internal import OpenSSL
internal import Sockets
internal import VerificationService

/// Everything of one running service, wired together; `serve` and `demo` both start here.
struct Application {
    let core: ServiceCore
    let cache: JWKSetCache
    let server: HTTPServer
    let administration: HTTPServer
    let configuration: ServiceConfiguration
    let replayStore: ReplayStore
    /// The TLS settings of the service's listener; nil where it speaks plain HTTP.
    let tls: Published<TLSContext>?

    /// Builds the service from its configuration; nothing is bound and nothing is fetched yet.
    init(_ configuration: ServiceConfiguration, logger: Logger) throws(StartError) {
        let registry = PrometheusRegistry(help: ServiceMetrics.help)
        self.configuration = configuration
        cache = try ServiceParts.keyCache(configuration, events: ServiceEvents.ofKeys(logger))
        let process = ProcessMetrics(factory: registry)
        tls = try ServiceParts.tlsContext(configuration).map { Published($0) }
        let metrics = ServiceMetrics(factory: registry)
        let webhooks = try ServiceParts.webhookSender(configuration, metrics: metrics, logger: logger)
        let storeEvents = ServiceEvents.ofReplayStore(logger, registry)
        replayStore = try ServiceParts.replayStore(configuration, onEvent: storeEvents)
        let graph = GraphWorkers(
            client: try ServiceParts.graphClient(configuration),
            metrics: metrics,
            revocations: replayStore.revocations
        )
        core = ServiceCore(
            settings: try ServiceParts.settings(configuration),
            cache: cache,
            replayStore: replayStore,
            metrics: metrics,
            logger: logger,
            identifiers: RequestIdentifier(process: UInt32.random(in: .min ... .max)),
            signatureCacheEntries: configuration.signaturesPerWorker,
            auditLogger: configuration.auditIsOn ? LoggingSetup.auditLogger : nil,
            graph: graph,
            webhooks: webhooks,
            exposition: {
                process.update()
                return registry.render()
            }
        )
        let memory = ProcessLimits.memory(of: configuration.memoryLimitBytes)
        var limits = HTTPServerLimits()
        // The other half is for the program with its files (20 MB), for what buffers leave unused, for the signatures that
        // are remembered (``SignatureMemory/memoryShare``), and for what was used.
        limits.connectionBytes = memory / 2
        limits.idleTimeout = .seconds(configuration.idleTimeoutSeconds)
        limits.trustedPeers = configuration.trustedPeers
        limits.leaveDescriptors(
            of: ProcessLimits.raiseDescriptorLimit(),
            workers: configuration.workerCount
        )
        server = HTTPServer(
            configuration: HTTPServerConfiguration(
                addresses: [configuration.listen],
                socketMode: configuration.listenMode,
                workerCount: configuration.workers,
                limits: limits,
                tls: tls
            )
        ) { [core] _ in ServiceHandler(core: core, listener: .service) }
        // Probes and Prometheus need no more.
        limits.connections = 256
        // The metrics are longer than any answer of the service; a few slow readers of them are all there may be.
        limits.connectionBytes = memory / 16
        limits.waitingAnswerBytes = limits.connectionBytes / 4
        administration = HTTPServer(
            configuration: HTTPServerConfiguration(
                addresses: [.network(configuration.adminListen)],
                workerCount: 1,
                limits: limits
            )
        ) { [core] _ in ServiceHandler(core: core, listener: .administration) }
        cache.onUpdate { [server] in server.wakeParked() }
        process.observe(self)
    }

    /// Binds both listeners, then starts the key cache. The store of what was used connects meanwhile.
    func start() throws(SocketError) {
        if case .redis(let store) = replayStore { store.start() }
        try administration.start()
        try server.start()
        cache.start()
        if let expiry = tls?.value.certificateExpiry, expiry <= WallClock.unixSeconds() {
            core.logger.warning("the TLS certificate has expired")
        }
        warnOfDoubts(in: configuration)
        let addresses = server.localAddresses.map(\.description).joined(separator: ",")
        notify(.ready, "Listening on \(addresses)")
        core.logger.notice(
            "listening",
            metadata: [
                "address": "\(addresses)",
                "admin_address": "\(administration.localAddresses.map(\.description).joined(separator: ","))",
                "apps": "\(configuration.appIDs.count)",
                "version": "\(BuildInformation.version)",
            ]
        )
    }

    /// Logged at the start and at each reload, when the operator reads the log.
    func warnOfDoubts(in configuration: ServiceConfiguration) {
        for doubt in configuration.doubts {
            core.logger.warning("a setting may be a mistake", metadata: ["reason": "\(doubt)"])
        }
    }

    func notify(_ state: ServiceManager.State, _ status: String) {
        let socket = ProcessInfo.processInfo.environment["NOTIFY_SOCKET"]
        guard let manager = ServiceManager(notifySocket: socket) else { return }
        do throws(SocketError) {
            try manager.notify(state, status: status)
        } catch {
            core.logger.warning("the service manager cannot be told", metadata: ["reason": "\(error)"])
        }
    }

    /// Drains, and stops everything in the reverse order.
    func stop() async {
        core.beginDraining()
        notify(.stopping, "Stopping")
        let delay = configuration.drainDelaySeconds
        core.logger.notice("stopping", metadata: ["drain_delay_seconds": "\(delay)"])
        // Requests under way may take 10 s to end after the listeners have closed.
        let cut = await server.stop(drainDelay: .seconds(delay), grace: .seconds(10))
        await administration.stop(drainDelay: .zero, grace: .seconds(1))
        await cache.stopAndWait()
        // Graph first: the store remembers what its last calls revoked.
        core.graph?.stop()
        core.webhooks?.stop()
        if case .redis(let store) = replayStore { store.stop() }
        core.logger.notice("stopped", metadata: ["requests_cut_off": "\(cut)"])
    }
}
