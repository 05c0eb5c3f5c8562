package import Graph
package import LimitedLogin
internal import Sockets

/// What a reload can change while the service runs; immutable, so that a worker holds one whole or another.
package final class RuntimeSettings: Sendable {
    /// Judges tokens by the policy in force.
    package let verifier: TokenVerifier
    /// The callers that may use the service; nil when anybody may.
    package let clients: ClientKeys?
    /// How gateways are answered; nil where their routes are closed.
    package let gateway: GatewaySettings?
    /// The life of the nonces issued, in seconds.
    package let nonceLifetimeSeconds: Int
    /// Whether a token is accepted once.
    package let rejectsReplays: Bool
    /// What the service proves itself with to Graph; nil where the routes for permissions are disabled.
    package let appSecrets: AppSecrets?
    /// What Graph is asked with about access tokens, app by app; nil where access tokens are refused.
    package let accessTokenApps: [AppSecret]?
    /// Where the backend is told of Facebook's callbacks; nil where it is not.
    package let webhook: WebhookTarget?
    /// Judges by the same policy the tokens whose callers cannot know the login: at `/auth` and `/introspect`.
    package let unboundVerifier: TokenVerifier

    package init(
        verifier: TokenVerifier,
        clients: ClientKeys?,
        gateway: GatewaySettings? = nil,
        nonceLifetimeSeconds: Int = NonceIssuer.defaultLifetimeSeconds,
        rejectsReplays: Bool = false,
        appSecrets: AppSecrets? = nil,
        acceptsAccessTokens: Bool = false,
        webhook: WebhookTarget? = nil
    ) {
        self.nonceLifetimeSeconds = nonceLifetimeSeconds
        self.rejectsReplays = rejectsReplays
        self.verifier = verifier
        self.clients = clients
        self.gateway = gateway
        self.appSecrets = appSecrets
        accessTokenApps = acceptsAccessTokens ? appSecrets?.all : nil
        self.webhook = webhook
        unboundVerifier = verifier.acceptingUnbound()
    }
}

extension RuntimeSettings {
    /// The configured app that a request names; without a name the only one there is.
    func app(named appID: String?) throws(Problem) -> String {
        let configured = verifier.policy.appIDs
        guard let appID else {
            guard configured.count == 1 else {
                throw Problem(.invalidRequest, "Several apps are configured, so app_id must say whose login it is.")
            }
            return configured[0]
        }
        // Compared as bytes: equal text in another spelling is another app's.
        guard configured.contains(where: { $0.utf8.elementsEqual(appID.utf8) }) else {
            throw Problem(.unknownApp, "The app ID given is not one of the configured apps.")
        }
        return appID
    }
}

/// One worker's copy of the settings in force.
final class WorkerSettings {
    private var copy: Published<RuntimeSettings>.Copy

    init(_ published: Published<RuntimeSettings>) { copy = Published.Copy(published) }

    var settings: RuntimeSettings { copy.value }

    /// Takes the newest settings if there are any.
    func refresh() { _ = copy.refresh() }
}
