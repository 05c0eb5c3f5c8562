import LLBytes
import LLHTTP
import LLStores
import LLTestSupport
import LimitedLogin
import LimitedLoginKeys
import Logging
import Testing

@testable import LLService

/// The whole service on a loopback port, with a scripted backend that receives its webhooks.
final class CallbackService: Sendable {
    /// The secret that signs the webhooks.
    static let secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"
    static let statusURL = "https://app.example/deletion"

    let backend: ScriptedIssuer
    private let live: LoopbackServer
    private let sender: WebhookSender

    var core: ServiceCore { live.core }
    var server: HTTPServer { live.server }
    var log: Locked<[String]> { live.log }

    /// Limits with short pauses and enough time for a slow machine. Give a shorter `attemptTime` if the backend hangs.
    static func limits(attemptTime: Duration = .seconds(300)) -> WebhookLimits {
        var limits = WebhookLimits()
        limits.deliveryTime = .seconds(300)
        limits.attemptTime = attemptTime
        limits.firstPause = .milliseconds(10)
        return limits
    }

    /// - Parameters:
    ///   - manner: How the backend treats connections.
    ///   - hasBackend: False for a service without a configured backend.
    init(
        _ manner: ScriptedIssuer.Manner = .plain,
        hasBackend: Bool = true,
        hasSecrets: Bool = true,
        limits: WebhookLimits = CallbackService.limits(),
        backendURL: String? = nil,
        store: ReplayStore = .memory(MemoryReplayStore(now: WallClock.unixMilliseconds())),
        script: @escaping ScriptedIssuer.Script = { _, peer in try peer.answer("{}") }
    ) async throws {
        backend = try ScriptedIssuer(manner, script: script)
        let tools = LoopbackServer.Tools()
        sender = try Self.sender(tools, limits: limits)
        // The address avoids a name lookup, which would use up part of an attempt's time. Only TLS needs the name.
        let url = backend.url.replacing("http://localhost", with: "http://127.0.0.1")
        live = try LoopbackServer(
            Self.settings(url: hasBackend ? backendURL ?? url : nil, hasSecrets: hasSecrets),
            tools,
            cache: await LoopbackServer.loadedCache(),
            store: store,
            webhooks: hasBackend ? sender : nil
        )
    }

    private static func settings(url: String?, hasSecrets: Bool) throws -> RuntimeSettings {
        let appIDs = TestSignedRequest.secrets.map(\.appID)
        let lines = TestSignedRequest.secrets.map { "\($0.appID) \($0.secret)" }.joined(separator: "\n")
        return RuntimeSettings(
            verifier: TokenVerifier(policy: try VerificationPolicy(appIDs: appIDs + [InProcessService.appID])),
            clients: nil,
            appSecrets: hasSecrets ? try AppSecrets(parsing: Array(lines.utf8), place: "secrets", appIDs: appIDs) : nil,
            webhook: try url.map(target)
        )
    }

    static func target(_ url: String) throws -> WebhookTarget {
        WebhookTarget(
            url: try HTTPURL(parsing: url),
            secrets: try WebhookSecrets(parsing: Array(Self.secret.utf8), place: "webhooks"),
            statusURL: try HTTPURL(parsing: statusURL)
        )
    }

    static func sender(_ tools: LoopbackServer.Tools, limits: WebhookLimits = limits()) throws -> WebhookSender {
        WebhookSender(
            client: HTTPSClient(trust: .authorities(file: try TestCertificates.shared.get().authorityFile)),
            limits: limits,
            metrics: tools.metrics,
            logger: tools.logger
        )
    }

    func connect() throws -> BlockingClient { try live.connect() }

    /// A good signed request for a user of app 222.
    static func good(issuedAt: Int64 = WallClock.unixSeconds(), user: Int = 218_471) throws -> String {
        try TestSignedRequest.make(TestSignedRequest.payload(issuedAt: issuedAt).replacing("218471", with: "\(user)"))
    }

    /// Sends a callback on a new connection and reads the answer.
    func call(_ name: String, _ signedRequest: String) throws -> TestResponse {
        try send(name, form: FormParameters.encode([("signed_request", signedRequest)]))
    }

    /// Sends any form on a new connection and reads the answer.
    func send(_ name: String, form: String, fields: [String] = [CallbackService.formType]) throws -> TestResponse {
        let client = try connect()
        client.send(Self.request(name, form: form, fields: fields))
        return try #require(client.readResponses(1).last)
    }

    static let formType = "Content-Type: application/x-www-form-urlencoded"

    static func request(_ name: String, form: String, fields: [String] = [CallbackService.formType]) -> String {
        let lines =
            ["POST /callbacks/\(name) HTTP/1.1", "Host: test", "Content-Length: \(form.utf8.count)"] + fields
        return lines.joined(separator: "\r\n") + "\r\n\r\n" + form
    }

    /// The value of a series of the metrics.
    func metric(_ series: String) -> Int? {
        let line = live.registry.render().split(separator: "\n").first { $0.hasPrefix(series + " ") }
        return line.flatMap { $0.split(separator: " ").last }.flatMap { Int($0) }
    }

    func stop() async {
        sender.stop()
        await live.stop(grace: .seconds(300))
    }

    deinit {
        sender.stop()
        backend.stop()
    }
}
