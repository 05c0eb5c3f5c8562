package import Graph
package import LimitedLogin
internal import Sockets
internal import Synchronization

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

/// Publishes the settings in force to the workers: one atomic load tells them that nothing has changed.
package final class SettingsPublisher: Sendable {
    private let current: Locked<RuntimeSettings>
    private let published = Atomic<UInt64>(1)

    package init(_ settings: RuntimeSettings) { current = Locked(settings) }

    /// Rises with each publication.
    package var epoch: UInt64 { published.load(ordering: .acquiring) }

    /// The settings in force.
    package var settings: RuntimeSettings { current.withLock { $0 } }

    /// Puts other settings in force, for every request that begins from now on.
    package func publish(_ settings: RuntimeSettings) {
        current.withLock { $0 = settings }
        published.wrappingAdd(1, ordering: .releasing)
    }
}

/// One worker's copy of the settings in force.
final class WorkerSettings {
    private let publisher: SettingsPublisher
    private var epoch: UInt64
    private(set) var settings: RuntimeSettings

    init(publisher: SettingsPublisher) {
        self.publisher = publisher
        // The number first: settings published in between are taken again, never missed.
        epoch = publisher.epoch
        settings = publisher.settings
    }

    /// Takes the newest settings if there are any.
    func refresh() {
        let newest = publisher.epoch
        guard newest != epoch else { return }
        epoch = newest
        settings = publisher.settings
    }
}
