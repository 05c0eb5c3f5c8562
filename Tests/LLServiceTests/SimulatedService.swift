import Dispatch
import LLTestSupport
import LimitedLogin
import Logging

@testable import LLHTTP
@testable import LLService
@testable import LLStores
@testable import LimitedLoginKeys

/// A replica of the service in a ``Simulation``: its worker on the simulation's thread, its store on a thread that the
/// simulation runs. A process that ends is another object's predecessor.
final class SimulatedService {
    private struct Request {
        let bytes: [UInt8]
        let headCount: Int
        let begunAt: MonotonicInstant
        var until = MonotonicInstant.never
        let answered: (TestResponse?) -> Void
    }

    let store: RedisReplayStore
    private let cache: JWKSetCache
    private let handler: ServiceHandler
    private let woken = Locked<[ParkedRequest]>([])
    private let time: SimulatedTime
    private let lead: Int64
    private let thread: Int32
    private let haveKeysChanged = Locked(false)
    private var parked: [Int: Request] = [:]
    private var count = 0

    /// - Parameter lead: the wall clock less the monotonic one, in nanoseconds.
    init(
        _ url: String,
        _ limits: ReplayLimits,
        _ source: ScriptedSource,
        lead: Int64,
        rejects: Bool,
        _ time: SimulatedTime
    ) throws {
        (self.time, self.lead) = (time, lead)
        time.setLead(lead)
        var cacheLimits = JWKSetCacheLimits()
        cacheLimits.jitter = 0.5
        let clock: @Sendable () -> Duration = { time.instant.duration(since: MonotonicInstant(nanoseconds: 0)) }
        cache = try JWKSetCache(sources: [source], limits: cacheLimits, clock: clock)
        var configuration = RedisReplayStore.Configuration(url: try ReplayStoreURL(parsing: url))
        configuration.limits = limits
        let store = try RedisReplayStore(configuration)
        self.store = store
        store.state.withLock { $0.link = .connecting }
        thread = time.start(lead: lead) { RedisConnector(store).run() }
        let core = ServiceCore(
            settings: RuntimeSettings(
                verifier: TokenVerifier(
                    policy: try VerificationPolicy(appIDs: [InProcessService.appID]),
                    nonces: try DecodedNonce.issuer()
                ),
                clients: try ClientKeysTests.backend(),
                gateway: GatewaySettings(),
                rejectsReplays: rejects
            ),
            cache: cache,
            replayStore: .redis(store),
            metrics: ServiceMetrics(registry: PrometheusRegistry(help: ServiceMetrics.help)),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            identifiers: RequestIdentifier(process: 1),
            exposition: { "" }
        )
        handler = ServiceHandler(core: core, listener: .service)
        handler.attach { [woken] request in woken.withLock { $0.append(request) } }
        cache.onUpdate { [haveKeysChanged] in haveKeysChanged.withLock { $0 = true } }
        cache.refreshNow()
        finishFetches()
    }

    /// The process is killed: the clients of the requests under way get no answer.
    func kill() {
        let left = parked.sorted { $0.key < $1.key }
        parked = [:]
        for (_, request) in left { request.answered(nil) }
        store.stop()
        time.kill(thread)
        cache.stopAndWait()
    }

    func send(_ line: String, _ body: String = "", _ answered: @escaping (TestResponse?) -> Void) {
        let type = body.isEmpty ? "" : "Content-Type: application/json\r\n"
        let length = "Content-Length: \(body.utf8.count)"
        let head = "\(line) HTTP/1.1\r\nHost: test\r\nX-Api-Key: secret\r\n\(type)\(length)\r\n\r\n"
        count += 1
        let request = Request(
            bytes: Array((head + body).utf8),
            headCount: head.utf8.count,
            begunAt: time.instant,
            answered: answered
        )
        visit(count, request, .first)
    }

    private func visit(_ number: Int, _ request: Request, _ visit: RequestVisit) {
        time.setLead(lead)
        let context = RequestContext(
            firstByteAt: request.begunAt,
            now: time.instant,
            visit: visit,
            request: ParkedRequest(connectionID: 1, requestsBefore: number),
            descriptor: -1
        )
        var exchange = HTTPExchange(context: context)
        var parser = RequestParser(limits: HTTPLimits())
        _ = try? parser.parse(request.bytes.span, into: &exchange.head)
        parked[number] = nil
        if visit != .first || handler.receiveHead(&exchange, bytes: request.bytes.span) != .respond {
            exchange.response.reset()
            exchange.body = request.headCount..<request.bytes.count
            if case .park(let until) = handler.receiveRequest(&exchange, bytes: request.bytes.span) {
                parked[number] = request
                parked[number]?.until = until
            }
        }
        finishFetches()
        if parked[number] == nil { request.answered(InProcessService.read(exchange.response)) }
    }

    /// Visits the requests that were woken, or whose time is over, and does what is due for the keys.
    /// - Returns: false if there was nothing to do.
    func work() -> Bool {
        var woken: [(Int, RequestVisit)] = woken.withLock { requests in
            defer { requests = [] }
            return requests.map { ($0.requestsBefore, .woken) }
        }
        if dueKeys <= time.instant {
            cache.queue.sync { cache.tick() }
            finishFetches()
        }
        if haveKeysChanged.withLock({ $0.take() }) { woken += parked.keys.sorted().map { ($0, .woken) } }
        woken += parked.filter { $0.value.until <= time.instant }.keys.sorted().map { ($0, .expired) }
        for (number, way) in woken { if let request = parked[number] { visit(number, request, way) } }
        return !woken.isEmpty
    }

    private var dueKeys: MonotonicInstant {
        cache.storage.withLock { $0.machine.nextWake(after: time.instant) } ?? .never
    }

    /// The next moment at which there is something to do without an event.
    var due: MonotonicInstant { parked.values.reduce(dueKeys) { min($0, $1.until) } }

    /// A fetch ends at the moment at which it begins.
    private func finishFetches() { cache.queue.sync {} }
}

extension Bool {
    /// The value, which is false from now on.
    fileprivate mutating func take() -> Bool {
        defer { self = false }
        return self
    }
}
