internal import Dispatch
internal import FoundationEssentials
internal import LLHTTP
internal import LLJOSE
internal import LLService
internal import LLStores
internal import LimitedLogin
internal import LimitedLoginKeys
internal import Logging

/// A source that never answers while the program runs.
private final class SilentSource: JWKSetSource {
    let name = "none"
    private let isCancelled = DispatchSemaphore(value: 0)

    func fetch(validator: String?) throws(JWKSetSourceError) -> JWKSetAnswer {
        isCancelled.wait()
        throw JWKSetSourceError("cancelled")
    }

    func cancel() { isCancelled.signal() }
}

/// The whole service without sockets: bytes go through the connection machine, the parser and the real handler.
final class Service {
    private var host: ConnectionHost
    private var connection: Connection
    private let revocations: Revocations
    private var requests = 0
    private let now = MonotonicClock.now()

    /// The key of the only caller, if tokens are issued.
    static let callerKey = "llk_" + String(repeating: "5a", count: 32)

    /// - Parameters:
    ///   - keys: path of the JWK Set.
    ///   - appID: the app the tokens are for.
    ///   - isIssuing: true for a service that issues tokens, signed with ES256, to callers with a key.
    init(keys: String, appID: String, isIssuing: Bool) throws {
        // A seed file is read on this thread, so the instruction counts are the same in each run.
        let cache = try JWKSetCache(sources: [SilentSource()], seedFile: keys)
        cache.start()
        let registry = PrometheusRegistry(help: ServiceMetrics.help)
        let core = ServiceCore(
            settings: RuntimeSettings(
                verifier: TokenVerifier(policy: try VerificationPolicy(appIDs: [appID])),
                clients: isIssuing ? try Self.clients() : nil,
                gateway: GatewaySettings(),
                tokens: isIssuing ? try Self.issuer() : nil
            ),
            cache: cache,
            metrics: ServiceMetrics(registry: registry),
            logger: Logger(label: "stages") { _ in SwiftLogNoOpLogHandler() },
            identifiers: RequestIdentifier(process: 0xABCD_EF01),
            exposition: { registry.render() }
        )
        revocations = core.revocations
        let handler = ServiceHandler(core: core, listener: .service)
        host = ConnectionHost(limits: HTTPServerLimits(), handler: handler, now: now)
        host.waitingSince = now
        host.unixSeconds = WallClock.unixSeconds()
        connection = Connection(id: 1, descriptor: -1, isOverLimit: false, host)
    }

    private static func clients() throws -> ClientKeys {
        let digest = try SHA256.digest(of: Array(callerKey.utf8).span).hexadecimal
        return try ClientKeys(parsing: Array("bench \(digest)".utf8), place: "the caller")
    }

    private static func issuer() throws -> TokenSettings {
        TokenSettings(
            TokenIssuer(
                policy: try TokenIssuerPolicy(issuer: "https://login.example.com"),
                keys: try SigningKeySet([try SigningKey(generating: .es256)])
            )
        )
    }

    /// Revokes this many logins that no request names.
    func revoke(_ count: Int) {
        let app = Array("123456789012345".utf8)
        for number in 0..<count {
            let user = Array("\(1_000_000_000_000 + number)".utf8)
            revocations.revoke(app: app.span, user: user.span, at: WallClock.unixSeconds()) { _ in }
        }
    }

    /// Answers one request, which must be accepted.
    func answer(_ request: [UInt8]) throws {
        requests += 1
        // A connection ends after some number of requests, so open a new one in time.
        if requests % 5_000 == 0 { connection = Connection(id: 1, descriptor: -1, isOverLimit: false, host) }
        host.output.removeAll(keepingCapacity: true)
        connection.received(request.span, by: &host)
        guard connection.next(&host) == .wait, host.output.count > 12,
            host.output[9] == UInt8(ascii: "2")
        else {
            throw Failure("not accepted: \(String(decoding: host.output, as: UTF8.self))")
        }
    }
}
