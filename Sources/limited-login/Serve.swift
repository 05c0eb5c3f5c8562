internal import ArgumentParser
internal import KeySets
internal import Logging
internal import Networking
internal import VerificationService

/// `serve`: runs the service until SIGTERM or SIGINT.
struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Runs the service: POST /verify, /livez, /readyz, /healthz.",
        discussion: "SIGTERM drains and stops with exit code 0; a second one ends at once."
    )

    @OptionGroup var options: ConfigurationOptions

    func run() async throws {
        let loaded: LoadedConfiguration
        do throws(ConfigurationError) {
            loaded = try options.load()
        } catch {
            throw Exit.refusing("\(error)")
        }
        let logger = LoggingSetup.bootstrap(loaded.configuration)
        let application: Application
        do {
            application = try Application.started(loaded.configuration, logger: logger)
        } catch let error as StartError {
            throw Exit.refusing(error.description)
        }
        try await Lifecycle.run([ServerService(application: application)])
    }

}

extension Application {
    /// Builds the service, binds its listeners and begins to fetch the keys.
    static func started(_ configuration: ServiceConfiguration, logger: Logger) throws -> Application {
        let registry = PrometheusRegistry(help: ServiceMetrics.help)
        let application = try Application(configuration, logger: logger, registry: registry)
        try application.start(logger: logger)
        return application
    }

    /// Binds both listeners, then starts the key cache.
    func start(logger: Logger) throws(StartError) {
        do throws(SocketError) {
            try administration.start()
            try server.start()
        } catch {
            throw StartError("\(error)")
        }
        cache.start()
        logger.notice(
            "listening",
            metadata: [
                "address": "\(server.localAddresses.map(\.description).joined(separator: ","))",
                "admin_address": "\(administration.localAddresses.map(\.description).joined(separator: ","))",
                "app_ids": "\(configuration.appIDs.count)",
                "version": "\(BuildInformation.version)",
            ]
        )
    }
}
