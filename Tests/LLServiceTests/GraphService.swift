import LLHTTP
import LLStores
import LLTestSupport
import LimitedLogin
import Logging
import Testing

@testable import LLService

/// The whole service on a loopback port, with a scripted Graph behind it, which is also the backend for webhooks.
final class GraphService: Sendable {
    static let key = "secret"
    static let secret = "0123456789abcdef0123456789abcdef"

    /// The time limit of a call that Graph does not answer. It lets a slow machine send that call and one before it.
    static let impatience = Duration.seconds(5)

    let graph: ScriptedIssuer
    private let live: LoopbackServer
    private let workers: GraphWorkers

    var core: ServiceCore { live.core }
    var server: HTTPServer { live.server }
    var registry: PrometheusRegistry { live.registry }
    var log: Locked<[String]> { live.log }

    /// - Parameters:
    ///   - secrets: The text of the secrets file; nil if none is configured.
    ///   - moreClients: More lines of the callers' file.
    ///   - callTimeout: The time limit of one call of Graph, including pauses.
    ///   - hasBackend: True to send webhooks to `/webhooks` of the server that plays Graph, or to another backend.
    init(
        appIDs: [String] = [InProcessService.appID],
        secrets: String? = "\(InProcessService.appID) \(GraphService.secret)",
        hasClients: Bool = true,
        moreClients: String = "",
        maximumTokenAge: Duration? = nil,
        replayStore: ReplayStore? = nil,
        workerCount: Int = 2,
        callTimeout: Duration = .seconds(300),
        acceptsAccessTokens: Bool = true,
        rejectsReplays: Bool = false,
        nonces: NonceIssuer? = nil,
        binding: VerificationPolicy.Binding = .required,
        gateway: GatewaySettings? = nil,
        tokens: TokenSettings? = nil,
        hasBackend: Bool = false,
        backendURL: String? = nil,
        limits: WebhookLimits = CallbackService.limits(),
        manner: ScriptedIssuer.Manner = .plain,
        script: @escaping ScriptedIssuer.Script = { _, peer in try peer.answerAndStay("true") }
    ) async throws {
        graph = try ScriptedIssuer(manner, script: script)
        let tools = LoopbackServer.Tools()
        let base = String(graph.url.dropLast("/keys".count)).replacing("http://localhost", with: "http://127.0.0.1")
        let authorities = try TestCertificates.shared.get().authorityFile
        let store = replayStore ?? .memory(MemoryReplayStore(now: WallClock.unixMilliseconds()))
        workers = GraphWorkers(
            client: GraphClient(
                configuration: try GraphConfiguration(url: base, uninstallURL: base + "/platform/uninstall/"),
                client: HTTPSClient(trust: .authorities(file: authorities)),
                metrics: tools.metrics,
                callTimeout: callTimeout,
                random: { _ in 0 }
            )
        )
        let clients = "backend \(ClientKeysTests.secret)\n\(moreClients)"
        let policy = try VerificationPolicy(appIDs: appIDs, maximumTokenAge: maximumTokenAge, binding: binding)
        let settings = RuntimeSettings(
            verifier: TokenVerifier(policy: policy, nonces: nonces),
            clients: hasClients ? try ClientKeys(parsing: Array(clients.utf8), place: "clients") : nil,
            gateway: gateway,
            rejectsReplays: rejectsReplays,
            appSecrets: try secrets.map { try AppSecrets(parsing: Array($0.utf8), place: "secrets", appIDs: appIDs) },
            acceptsAccessTokens: acceptsAccessTokens,
            webhook: hasBackend ? try CallbackService.target(backendURL ?? base + "/webhooks") : nil,
            tokens: tokens
        )
        live = try LoopbackServer(
            settings,
            tools,
            cache: await LoopbackServer.loadedCache(),
            store: store,
            workerCount: workerCount,
            graph: workers,
            webhooks: hasBackend ? try CallbackService.sender(tools, limits) : nil
        )
    }

    func connect() throws -> BlockingClient { try live.connect() }

    /// Sends one request on a new connection and reads the answer.
    func answer(
        _ method: String,
        _ target: String,
        fields: [String] = ["X-Api-Key: \(GraphService.key)"],
        body: String = ""
    ) throws -> TestResponse {
        try #require(try connect().exchange(Self.request(method, target, fields: fields, body: body)))
    }

    /// Sends an id token to /verify.
    func verify(_ token: String, _ members: String = #""nonce":"n-1""#) throws -> TestResponse {
        try answer("POST", "/verify", body: #"{"id_token":"\#(token)",\#(members)}"#)
    }

    static func request(
        _ method: String,
        _ target: String,
        fields: [String] = ["X-Api-Key: \(GraphService.key)"],
        body: String = ""
    ) -> String {
        var lines = ["\(method) \(target) HTTP/1.1", "Host: test"] + fields
        if !body.isEmpty, !fields.contains(where: { $0.hasPrefix("Content-Type:") }) {
            lines.append("Content-Type: application/json")
        }
        if !body.isEmpty { lines.append("Content-Length: \(body.utf8.count)") }
        return lines.joined(separator: "\r\n") + "\r\n\r\n" + body
    }

    /// Sends a form to /token.
    func exchange(_ form: String) throws -> TestResponse {
        try answer("POST", "/token", fields: [OwnTokenTests.form, "X-Api-Key: \(GraphService.key)"], body: form)
    }

    /// The value of a series of the metrics.
    func metric(_ series: String) -> Int? {
        let line = registry.render().split(separator: "\n").first { $0.hasPrefix(series + " ") }
        return line.flatMap { $0.split(separator: " ").last }.flatMap { Int($0) }
    }

    func stop() async {
        core.webhooks?.stop()
        workers.stop()
        await live.stop(grace: .seconds(300))
    }

    deinit {
        core.webhooks?.stop()
        workers.stop()
        graph.stop()
    }
}
