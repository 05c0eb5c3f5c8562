import LLHTTP
import LLStores
import LLTestSupport
import Testing

@testable import LLService

/// A ``GraphService`` that receives Facebook's callbacks; the scripted server is its backend.
enum CallbackService {
    /// The secret that signs the webhooks.
    static let secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"
    static let statusURL = "https://app.example/deletion"
    static let formType = "Content-Type: application/x-www-form-urlencoded"

    /// Limits with short pauses and enough time for a slow machine. Give a shorter `attemptTime` if the backend hangs.
    static func limits(attemptTime: Duration = .seconds(300)) -> WebhookLimits {
        var limits = WebhookLimits()
        (limits.deliveryTime, limits.attemptTime) = (.seconds(300), attemptTime)
        limits.firstPause = .milliseconds(10)
        return limits
    }

    /// - Parameters:
    ///   - manner: How the backend treats connections.
    ///   - hasBackend: False for a service without a configured backend.
    static func make(
        _ manner: ScriptedIssuer.Manner = .plain,
        hasBackend: Bool = true,
        hasSecrets: Bool = true,
        limits: WebhookLimits = limits(),
        backendURL: String? = nil,
        store: ReplayStore? = nil,
        script: @escaping ScriptedIssuer.Script = { _, peer in try peer.answer("{}") }
    ) async throws -> GraphService {
        let lines = TestSignedRequest.secrets.map { "\($0.appID) \($0.secret)" }.joined(separator: "\n")
        return try await GraphService(
            appIDs: TestSignedRequest.secrets.map(\.appID),
            secrets: hasSecrets ? lines : nil,
            hasClients: false,
            replayStore: store,
            hasBackend: hasBackend,
            backendURL: backendURL,
            limits: limits,
            manner: manner,
            script: script
        )
    }

    static func target(_ url: String) throws -> WebhookTarget {
        WebhookTarget(
            url: try HTTPURL(parsing: url),
            secrets: try WebhookSecrets(parsing: Array(Self.secret.utf8), place: "webhooks"),
            statusURL: try HTTPURL(parsing: statusURL)
        )
    }

    static func sender(_ tools: LoopbackServer.Tools, _ limits: WebhookLimits) throws -> WebhookSender {
        WebhookSender(
            client: HTTPSClient(trust: .authorities(file: try TestCertificates.shared.get().authorityFile)),
            limits: limits,
            metrics: tools.metrics,
            logger: tools.logger
        )
    }

    /// A good signed request for a user of app 222.
    static func good(issuedAt: Int64 = WallClock.unixSeconds(), user: Int = 218_471) throws -> String {
        try TestSignedRequest.make(TestSignedRequest.payload(issuedAt: issuedAt).replacing("218471", with: "\(user)"))
    }
}

extension GraphService {
    /// Sends a callback on a new connection and reads the answer.
    func call(_ name: String, _ signedRequest: String) throws -> TestResponse {
        try send(name, form: FormParameters.encode([("signed_request", signedRequest)]))
    }

    func send(_ name: String, form: String, fields: [String] = [CallbackService.formType]) throws -> TestResponse {
        try answer("POST", "/callbacks/\(name)", fields: fields, body: form)
    }
}
