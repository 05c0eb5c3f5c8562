import LLHTTP
import LLStores
import LLTestSupport
import LimitedLogin
import LimitedLoginKeys
import Logging
import Testing

@testable import LLService

/// The whole service on a loopback port, with a scripted Graph behind it.
final class GraphService: Sendable {
    static let key = "secret"
    static let secret = "0123456789abcdef0123456789abcdef"

    /// The time limit of a call that Graph does not answer. It lets a slow machine send that call and one before it.
    static let impatience: Duration = Sanitizer.isActive ? .seconds(4) : .milliseconds(800)

    let graph: ScriptedIssuer
    let server: HTTPServer
    let core: ServiceCore
    let registry: PrometheusRegistry
    let log = Locked<[String]>([])
    private let cache: JWKSetCache
    private let workers: GraphWorkers

    /// - Parameters:
    ///   - secrets: The text of the secrets file; nil if none is configured.
    ///   - moreClients: More lines of the callers' file.
    ///   - callTimeout: The time limit of one call of Graph, including pauses.
    init(
        appIDs: [String] = [InProcessService.appID],
        secrets: String? = "\(InProcessService.appID) \(GraphService.secret)",
        hasClients: Bool = true,
        moreClients: String = "",
        maximumTokenAgeSeconds: Int? = nil,
        replayStore: ReplayStore? = nil,
        workerCount: Int = 2,
        callTimeout: Duration = .seconds(300),
        acceptsAccessTokens: Bool = false,
        rejectsReplays: Bool = false,
        nonces: NonceIssuer? = nil,
        binding: VerificationPolicy.Binding = .required,
        gateway: GatewaySettings? = nil,
        tokens: TokenSettings? = nil,
        manner: ScriptedIssuer.Manner = .plain,
        script: @escaping ScriptedIssuer.Script = { _, peer in try peer.answerAndStay("true") }
    ) async throws {
        graph = try ScriptedIssuer(manner, script: script)
        cache = try JWKSetCache(sources: [ScriptedSource([StandInKeys.current])])
        _ = await cache.refresh()
        let registry = PrometheusRegistry(help: ServiceMetrics.help)
        let metrics = ServiceMetrics(registry: registry)
        let base = String(graph.url.dropLast("/keys".count)).replacing("http://localhost", with: "http://127.0.0.1")
        let authorities = try TestCertificates.shared.get().authorityFile
        let store = replayStore ?? .memory(MemoryReplayStore(now: WallClock.unixMilliseconds()))
        let workers = GraphWorkers(
            client: GraphClient(
                configuration: try GraphConfiguration(url: base, uninstallURL: base + "/platform/uninstall/"),
                client: HTTPSClient(trust: .authorities(file: authorities)),
                callTimeout: callTimeout,
                random: { _ in 0 }
            ),
            metrics: metrics,
            revocations: store.revocations
        )
        let clients = "backend \(ClientKeysTests.secret)\n\(moreClients)"
        let policy = try VerificationPolicy(
            appIDs: appIDs,
            maximumTokenAgeSeconds: maximumTokenAgeSeconds,
            binding: binding
        )
        let log = log
        var logger = Logger(label: "test") { _ in GatheringLogHandler(lines: log) }
        logger.logLevel = .trace
        let core = ServiceCore(
            settings: RuntimeSettings(
                verifier: TokenVerifier(policy: policy, nonces: nonces),
                clients: hasClients ? try ClientKeys(parsing: Array(clients.utf8), place: "clients") : nil,
                gateway: gateway,
                rejectsReplays: rejectsReplays,
                appSecrets: try secrets.map {
                    try AppSecrets(parsing: Array($0.utf8), place: "secrets", appIDs: appIDs)
                },
                acceptsAccessTokens: acceptsAccessTokens,
                tokens: tokens
            ),
            cache: cache,
            replayStore: store,
            metrics: metrics,
            logger: logger,
            identifiers: RequestIdentifier(process: 0xabc),
            graph: workers,
            exposition: { registry.render() }
        )
        server = HTTPServer(
            configuration: HTTPServerConfiguration(
                addresses: [.loopback(port: 0)],
                workerCount: workerCount,
                limits: .patient
            )
        ) { _ in ServiceHandler(core: core, listener: .service) }
        (self.core, self.registry, self.workers) = (core, registry, workers)
        try server.start()
    }

    func connect() throws -> BlockingClient {
        try BlockingClient(server.localAddresses.first ?? .loopback(port: 0))
    }

    /// Sends one request on a new connection and reads the answer.
    func answer(
        _ method: String,
        _ target: String,
        fields: [String] = ["X-Api-Key: \(GraphService.key)"],
        body: String = ""
    ) throws -> TestResponse {
        try #require(try connect().exchange(Self.request(method, target, fields: fields, body: body)))
    }

    static func request(
        _ method: String,
        _ target: String,
        fields: [String] = ["X-Api-Key: \(GraphService.key)"],
        body: String = ""
    ) -> String {
        var lines = ["\(method) \(target) HTTP/1.1", "Host: test"] + fields
        if !body.isEmpty { lines += ["Content-Type: application/json", "Content-Length: \(body.utf8.count)"] }
        return lines.joined(separator: "\r\n") + "\r\n\r\n" + body
    }

    func stop() async {
        workers.stop()
        graph.stop()
        cache.stop()
        await server.stop(drainDelay: .zero, grace: .seconds(5))
    }
}

/// Collects every line with its metadata.
struct GatheringLogHandler: LogHandler {
    let lines: Locked<[String]>
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let line = "\(event.message) \(event.metadata ?? [:])"
        lines.withLock { $0.append(line) }
    }
}
