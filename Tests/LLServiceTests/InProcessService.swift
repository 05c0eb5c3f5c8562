import Foundation
import LLStandIn
import LLStores
import LLTestSupport
import LimitedLogin
import LimitedLoginKeys
import Logging
import Testing

@testable import LLHTTP
@testable import LLService

/// A JWK Set source that answers as a test says and counts the fetches.
final class ScriptedSource: JWKSetSource {
    let name = "test"
    private let state: Locked<(minters: [TokenMinter]?, fetches: Int)>

    /// - Parameter minters: the published keys; nil for a source that is down.
    init(_ minters: [TokenMinter]?) { state = Locked((minters, 0)) }

    var fetchCount: Int { state.withLock { $0.fetches } }

    func publish(_ minters: [TokenMinter]?) { state.withLock { $0.minters = minters } }

    func fetch(validator: String?) throws(JWKSetSourceError) -> JWKSetAnswer {
        let minters = state.withLock { state in
            state.fetches += 1
            return state.minters
        }
        guard let minters else { throw JWKSetSourceError("the test's source is down") }
        return .fetched(JWKSetDocument(bytes: TokenMinter.jwkSet(minters)))
    }

    func cancel() {}
}

/// The service without sockets. Requests pass through the real parser and the real handler.
final class InProcessService {
    static let appID = "123456789012345"

    let source: ScriptedSource
    let cache: JWKSetCache
    let core: ServiceCore
    let registry = PrometheusRegistry(help: ServiceMetrics.help)
    private let handler: ServiceHandler
    private var requests = 0

    init(
        minters: [TokenMinter]? = [StandInKeys.current, StandInKeys.previous],
        policy: VerificationPolicy? = nil,
        clients: ClientKeys? = nil,
        listener: ListenerRole = .service,
        gatewayIsEnabled: Bool = false,
        gateway: GatewaySettings? = nil,
        nonces: NonceIssuer? = nil,
        rejectsReplays: Bool = false,
        replayStore: ReplayStore? = nil,
        logger: Logger? = nil,
        auditLogger: Logger? = nil,
        stuckThread: String? = nil,
        tokens: TokenSettings? = nil
    ) async throws {
        source = ScriptedSource(minters)
        var limits = JWKSetCacheLimits()
        // A key ID that a fetch did not find stays unknown for the whole test.
        (limits.negativeLifetime, limits.joinedNegativeLifetime) = (.seconds(3_600), .seconds(3_600))
        // Only one fetch starts for unknown key IDs. Later requests wait for the next fetch as long as the test runs.
        (limits.unknownKeyIDInterval, limits.waitForUnknownKeyID) = (.seconds(3_600), .seconds(7_200))
        cache = try JWKSetCache(sources: [source], limits: limits)
        if minters != nil { _ = await cache.refresh() }
        let registry = registry
        let policy = try policy ?? VerificationPolicy(appIDs: [Self.appID, "42"])
        core = ServiceCore(
            settings: RuntimeSettings(
                verifier: TokenVerifier(policy: policy, nonces: nonces),
                clients: clients,
                gateway: gateway ?? (gatewayIsEnabled ? GatewaySettings() : nil),
                rejectsReplays: rejectsReplays,
                tokens: tokens
            ),
            cache: cache,
            // The store is as complete as after a minute of running.
            replayStore: replayStore ?? .memory(MemoryReplayStore(now: WallClock.unixMilliseconds() - 60_000)),
            metrics: ServiceMetrics(registry: registry),
            logger: logger ?? Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            identifiers: RequestIdentifier(process: 0xabc),
            auditLogger: auditLogger,
            stuckThread: { _ in stuckThread },
            exposition: { registry.render() }
        )
        handler = ServiceHandler(core: core, listener: listener)
    }

    /// The outcome of a request.
    enum Outcome {
        case answered(TestResponse)
        case parked(until: MonotonicInstant)

        /// The answer to a request that must be answered at once.
        func response() throws -> TestResponse {
            guard case .answered(let response) = self else { throw TestSupportError("parked") }
            return response
        }

        var isParked: Bool { if case .parked = self { true } else { false } }
    }

    /// Sends a whole request, or the last one `again`, and returns its outcome. `listener` is another listener of the same service.
    func send(
        _ method: String = "POST",
        _ target: String = "/verify",
        fields: [String] = ["Content-Type: application/json"],
        body: String = "",
        visit: RequestVisit = .first,
        again: Bool = false,
        listener: ListenerRole? = nil
    ) throws -> Outcome {
        if !again { requests += 1 }
        let handler = listener.map { ServiceHandler(core: core, listener: $0) } ?? handler
        let head = (["\(method) \(target) HTTP/1.1", "Host: test"] + fields).joined(separator: "\r\n")
        let bytes = Array("\(head)\r\nContent-Length: \(body.utf8.count)\r\n\r\n".utf8)
        var exchange = try exchange(1, bytes.span)
        if handler.receiveHead(&exchange, bytes: bytes.span) != .respond {
            exchange.response.reset()
            exchange.context.visit = visit
            let request = bytes + Array(body.utf8)
            exchange.body = bytes.count..<request.count
            let decision = handler.receiveRequest(&exchange, bytes: request.span)
            if case .park(let moment) = decision { return .parked(until: moment) }
        }
        handler.didRespond(status: exchange.response.status, context: exchange.context)
        return .answered(Self.read(exchange.response))
    }

    /// The exchange of a request, with the head at the start of `bytes`.
    private func exchange(_ connectionID: UInt64, _ bytes: Span<UInt8>) throws -> HTTPExchange {
        let context = RequestContext(
            firstByteAt: MonotonicClock.now(),
            now: MonotonicClock.now(),
            request: ParkedRequest(connectionID: connectionID, requestsBefore: requests),
            descriptor: -1
        )
        var exchange = HTTPExchange(context: context)
        var parser = RequestParser(limits: HTTPLimits())
        guard try parser.parse(bytes, into: &exchange.head) else { throw TestSupportError("no request") }
        return exchange
    }

    /// The answer to a request that the server itself refuses.
    func fail(_ failure: HTTPRefusal, _ method: String, _ target: String) throws -> TestResponse {
        let bytes = Array("\(method) \(target) HTTP/1.1\r\nHost: test\r\n\r\n".utf8)
        var exchange = try exchange(2, bytes.span)
        handler.renderFailure(failure, &exchange, bytes: bytes.span)
        return Self.read(exchange.response)
    }

    /// The client of the last request disconnects.
    func abandonLast() { handler.didAbandon(ParkedRequest(connectionID: 1, requestsBefore: requests)) }

    /// Sends a request that must be answered at once.
    func answer(
        _ method: String = "POST",
        _ target: String = "/verify",
        fields: [String] = ["Content-Type: application/json"],
        body: String = ""
    ) throws -> TestResponse {
        try send(method, target, fields: fields, body: body).response()
    }

    /// Sends a token to /verify.
    func verify(_ token: String, _ members: String = #""nonce":"n-1""#) throws -> TestResponse {
        try answer(body: "{\"id_token\":\"\(token)\"\(members.isEmpty ? "" : ",")\(members)}")
    }

    /// Sends a form to /introspect with the key `secret`.
    func introspect(_ form: String) throws -> TestResponse {
        let fields = ["Content-Type: application/x-www-form-urlencoded", "Authorization: Bearer secret"]
        return try answer("POST", "/introspect", fields: fields, body: form)
    }

    static func read(_ response: borrowing HTTPResponse) -> TestResponse {
        let lines = String(decoding: response.fields, as: UTF8.self).split(separator: "\r\n")
        let fields = lines.map { line in
            let parts = line.split(separator: ":", maxSplits: 1)
            return (name: parts[0].lowercased(), value: String(parts[1].dropFirst()))
        }
        return TestResponse(status: Int(response.status), fields: fields, body: response.body, head: "")
    }
}

extension ServiceCore {
    /// Ends the logins of a person of the tests' app.
    func revoke(_ user: String, at moment: Int64, kind: RevocationKind = .order) {
        revocations.revoke(app: InProcessService.appID.utf8.span, user: user.utf8.span, at: moment, kind: kind) { _ in }
    }
}

extension RedisReplayStore {
    /// A store with time enough for a slow machine.
    static func patient(
        _ url: String,
        observe: @escaping @Sendable (ReplayStoreEvent) -> Void = { _ in }
    ) throws -> RedisReplayStore {
        var configuration = Configuration(url: try ReplayStoreURL(parsing: url))
        (configuration.limits.connectTimeout, configuration.limits.answerTimeout) = (.seconds(60), .seconds(60))
        return try RedisReplayStore(configuration, observe: observe)
    }
}

/// Tokens for these tests, by default signed with the published key.
enum Tokens {
    static func claims(
        audience: String = InProcessService.appID,
        nonce: String = "n-1",
        issuedAt: Int64 = WallClock.unixSeconds()
    ) -> MintedClaims {
        MintedClaims(audience: audience, subject: "2954873201847263", nonce: nonce, issuedAt: issuedAt)
    }

    static func mint(_ claims: MintedClaims, by minter: TokenMinter = StandInKeys.current) throws -> String {
        try minter.mint(claims)
    }
}

/// A problem as a client decodes it.
struct DecodedProblem: Decodable {
    let type, title, detail, hint, code: String
    let status: Int
    let claim: String?
    let requestID: String

    enum CodingKeys: String, CodingKey {
        case type, title, detail, hint, code, status, claim
        case requestID = "request_id"
    }
}

extension TestResponse {
    /// The answer's JSON object; empty if it is none.
    var object: [String: Any] { (try? JSONSerialization.jsonObject(with: Data(body))) as? [String: Any] ?? [:] }
    /// Nil if the answer is no problem.
    private var problem: DecodedProblem? { try? JSONDecoder().decode(DecodedProblem.self, from: Data(body)) }
    var code: String? { problem?.code }
    var detail: String { problem?.detail ?? "" }
    var hint: String { problem?.hint ?? "" }
}
