internal import Graph
internal import KeySets
internal import LimitedLogin
internal import Logging
internal import Metrics
internal import Networking
internal import OpenSSL
internal import ReplayStores
internal import VerificationService

/// Everything of one running service, wired together; `serve` and `demo` both start here.
struct Application {
    let core: ServiceCore
    let cache: JWKSetCache
    let server: HTTPServer
    let administration: HTTPServer
    let configuration: ServiceConfiguration
    /// Where it is remembered what was used.
    let replayStore: ReplayStore
    /// The TLS settings of the service's listener; nil where it speaks plain HTTP.
    let tls: TLSContextPublisher?

    /// Builds the service from its configuration; nothing is bound and nothing is fetched yet.
    ///
    /// - Parameter nonces: in a demonstration, issues nonces in place of a configured secret; callers may then be unknown.
    init(
        _ configuration: ServiceConfiguration,
        logger: Logger,
        demonstratingWith nonces: NonceIssuer? = nil
    ) throws(StartError) {
        let registry = PrometheusRegistry(help: ServiceMetrics.help)
        self.configuration = configuration
        let keyEvents = KeyEvents(logger: logger, factory: registry)
        let cache = try KeyCacheFactory.make(configuration) { event in keyEvents.record(event) }
        let process = ProcessMetrics(factory: registry)
        tls = try Self.tlsContext(configuration).map { TLSContextPublisher($0) }
        let metrics = ServiceMetrics(factory: registry)
        let graph = try GraphClientFactory.make(configuration).map { client in
            GraphWorkers(client: client, metrics: metrics.graph())
        }
        let storeEvents = ReplayStoreEvents(logger: logger, factory: registry)
        replayStore = try ReplayStoreFactory.make(configuration) { event in storeEvents.record(event) }
        let core = ServiceCore(
            settings: try Self.settings(configuration, demonstratingWith: nonces),
            cache: cache,
            replayStore: replayStore,
            metrics: metrics,
            logger: logger,
            identifiers: RequestIdentifier(process: UInt32.random(in: .min ... .max)),
            graph: graph,
            exposition: {
                process.update()
                return registry.render()
            }
        )
        self.core = core
        self.cache = cache
        server = HTTPServer(
            configuration: HTTPServerConfiguration(
                addresses: [configuration.listen],
                socketMode: configuration.listenMode,
                workerCount: configuration.workers,
                tls: tls
            )
        ) { _ in ServiceHandler(core: core, listener: .service) }
        administration = HTTPServer(
            configuration: HTTPServerConfiguration(
                addresses: [.network(configuration.adminListen)],
                workerCount: 1
            )
        ) { _ in ServiceHandler(core: core, listener: .administration) }
        let server = server
        cache.onUpdate { server.wakeParked() }
        process.observe(server: server, cache: cache, replayStore: replayStore, tls: tls)
    }

    /// Reads the files of the service's listener; nil where it speaks plain HTTP.
    static func tlsContext(_ configuration: ServiceConfiguration) throws(StartError) -> TLSContext? {
        guard let files = configuration.tls else { return nil }
        do throws(TLSError) {
            return try TLSContext(
                serverCertificateFile: files.certificate,
                keyFile: files.key,
                clientAuthoritiesFile: files.clientAuthorities
            )
        } catch {
            throw StartError(error.description)
        }
    }

    /// What a reload can change: the policy, the clients and the nonces.
    static func settings(
        _ configuration: ServiceConfiguration,
        demonstratingWith nonces: NonceIssuer? = nil
    ) throws(StartError) -> RuntimeSettings {
        var clients: ClientKeys?
        if let file = configuration.clientKeysFile {
            do throws(ConfigurationError) {
                clients = try ClientKeys(path: file)
            } catch {
                throw StartError(error.description)
            }
        }
        var appSecrets: AppSecrets?
        if let file = configuration.appSecretsFile {
            do throws(ConfigurationError) {
                appSecrets = try AppSecrets(path: file, appIDs: configuration.appIDs)
            } catch {
                throw StartError(error.description)
            }
        }
        // Not by `??`, whose closure throws untyped.
        let issuer = nonces == nil ? try nonceIssuer(configuration) : nonces
        return RuntimeSettings(
            verifier: TokenVerifier(
                policy: try policy(configuration),
                nonces: issuer
            ),
            clients: clients,
            callersMayBeUnknown: nonces != nil,
            gatewayIsEnabled: configuration.gatewayIsEnabled,
            nonceLifetimeSeconds: configuration.nonceTTLSeconds,
            rejectsReplays: configuration.replaysAreRejected,
            appSecrets: appSecrets
        )
    }

    /// Issues and recognises nonces; nil where no secret is configured.
    static func nonceIssuer(_ configuration: ServiceConfiguration) throws(StartError) -> NonceIssuer? {
        guard let file = configuration.nonceSecretFile else { return nil }
        do throws(ConfigurationError) {
            return try NonceSecretsFile.issuer(path: file)
        } catch {
            throw StartError(error.description)
        }
    }

    /// What the verifier is told; every value was bounded by the configuration already.
    static func policy(_ configuration: ServiceConfiguration) throws(StartError) -> VerificationPolicy {
        do throws(VerificationPolicyError) {
            return try VerificationPolicy(
                appIDs: configuration.appIDs,
                issuers: configuration.issuers,
                clockSkewSeconds: configuration.clockSkewSeconds,
                maximumTokenAgeSeconds: configuration.maxTokenAgeSeconds,
                binding: configuration.bindingIsRequired ? .required : .optional,
                tracking: configuration.onlyLimitedTracking ? .limited : .any
            )
        } catch {
            throw StartError("the verification policy cannot be used: \(error)")
        }
    }
}

/// Why the service does not start: one sentence for standard error.
struct StartError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
