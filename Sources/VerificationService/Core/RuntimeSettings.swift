package import LimitedLogin
internal import Sockets
internal import Synchronization

/// What a reload can change while the service runs; immutable, so that a worker holds one whole or another.
package final class RuntimeSettings: Sendable {
    /// Judges tokens by the policy in force.
    package let verifier: TokenVerifier
    /// The callers that may use the service; nil when anybody may.
    package let clients: ClientKeys?
    /// Whether the routes for gateways answer.
    package let gatewayIsEnabled: Bool
    /// The life of the nonces issued, in seconds.
    package let nonceLifetimeSeconds: Int
    /// Whether a token is accepted once.
    package let rejectsReplays: Bool
    /// What the service proves itself with to Graph; nil where the routes for permissions are disabled.
    package let appSecrets: AppSecrets?
    /// Judges by the same policy the tokens whose callers cannot know the login: at `/auth` and `/introspect`.
    package let unboundVerifier: TokenVerifier

    package init(
        verifier: TokenVerifier,
        clients: ClientKeys?,
        gatewayIsEnabled: Bool = false,
        nonceLifetimeSeconds: Int = NonceIssuer.defaultLifetimeSeconds,
        rejectsReplays: Bool = false,
        appSecrets: AppSecrets? = nil
    ) {
        self.nonceLifetimeSeconds = nonceLifetimeSeconds
        self.rejectsReplays = rejectsReplays
        self.verifier = verifier
        self.clients = clients
        self.gatewayIsEnabled = gatewayIsEnabled
        self.appSecrets = appSecrets
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
