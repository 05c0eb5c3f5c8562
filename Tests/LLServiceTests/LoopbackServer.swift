import LLHTTP
import LLStores
import LLTestSupport
import LimitedLoginKeys
import Logging

@testable import LLService

/// The whole service on a loopback port, without the servers that it calls. It stops with its last owner.
final class LoopbackServer: Sendable {
    let core: ServiceCore
    let server: HTTPServer
    let cache: JWKSetCache
    let registry: PrometheusRegistry
    let log: Locked<[String]>

    /// The parts that count and log for a service.
    struct Tools {
        let registry = PrometheusRegistry(help: ServiceMetrics.help)
        let metrics: ServiceMetrics
        let logger: Logger
        let log: Locked<[String]>

        init() {
            metrics = ServiceMetrics(registry: registry)
            (logger, log) = lineLogger(.trace, .text)
        }
    }

    init(
        _ settings: RuntimeSettings,
        _ tools: Tools = Tools(),
        cache: JWKSetCache,
        store: ReplayStore = .memory(MemoryReplayStore(now: WallClock.unixMilliseconds())),
        workerCount: Int = 2,
        graph: GraphWorkers? = nil,
        webhooks: WebhookSender? = nil
    ) throws {
        let registry = tools.registry
        let core = ServiceCore(
            settings: settings,
            cache: cache,
            replayStore: store,
            metrics: tools.metrics,
            logger: tools.logger,
            identifiers: RequestIdentifier(process: 0xabc),
            graph: graph,
            webhooks: webhooks,
            exposition: { registry.render() }
        )
        var configuration = HTTPServerConfiguration(address: .loopback(port: 0), workerCount: workerCount)
        configuration.limits = .patient
        server = HTTPServer(configuration: configuration) { _ in ServiceHandler(core: core, listener: .service) }
        (self.core, self.cache, self.registry, log) = (core, cache, registry, tools.log)
        try server.start()
    }

    /// A cache with the published key.
    static func loadedCache() async throws -> JWKSetCache {
        let cache = try JWKSetCache(sources: [ScriptedSource([StandInKeys.current])])
        _ = await cache.refresh()
        return cache
    }

    func connect() throws -> BlockingClient { try BlockingClient(server.localAddress ?? .loopback(port: 0)) }

    func stop(grace: Duration = .seconds(5)) async {
        cache.stop()
        await server.stop(drainDelay: .zero, grace: grace)
    }

    deinit {
        cache.stop()
        server.beginStop(drainDelay: .zero, grace: .zero)
    }
}

/// A logger with the service's own handler, and its lines; lines of text without time and level.
func lineLogger(_ level: Logger.Level, _ format: LineLogHandler.Format = .json)
    -> (logger: Logger, lines: Locked<[String]>)
{
    let lines = Locked<[String]>([])
    let logger = Logger(label: "test") { label in
        LineLogHandler(label: label, level: LogLevelSwitch(level), format: format) { line in
            let parts = line.split(separator: UInt8(ascii: " "), maxSplits: format == .text ? 2 : 0)
            lines.withLock { $0.append(String(decoding: parts.last ?? [], as: UTF8.self)) }
        }
    }
    return (logger, lines)
}
