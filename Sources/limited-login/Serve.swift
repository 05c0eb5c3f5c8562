internal import ArgumentParser
internal import Logging
internal import Sockets
internal import VerificationService

/// `serve`: runs the service until SIGTERM or SIGINT.
struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Runs the service: the HTTP API, health and metrics.",
        discussion:
            "SIGTERM drains and stops with exit code 0; a second one ends at once. SIGHUP re-reads the configuration."
    )

    @OptionGroup var options: ConfigurationOptions

    func run() async throws {
        let loaded = try options.load()
        let (logger, level) = LoggingSetup.bootstrap(loaded.configuration)
        let application = try Application(loaded.configuration, logger: logger)
        let options = options
        let reload = Reload(application: application, loaded: loaded, logLevel: level) {
            file throws(ConfigurationError) in try options.load(again: file)
        }
        reload.begin()
        try await Lifecycle.run(start: application.start, stop: application.stop)
    }
}

/// Re-reads the configuration at each SIGHUP: a good one takes effect with the next request, a bad one is refused with
/// its reason and the old one stays.
struct Reload: Sendable {
    let application: Application
    let logLevel: LogLevelSwitch
    /// Loads the configuration anew, as the start did, with the file that was read last.
    let load: @Sendable (_ file: String?) throws(ConfigurationError) -> LoadedConfiguration
    /// What the last reload put in force, or the start.
    private let inForce: Locked<LoadedConfiguration>

    init(
        application: Application,
        loaded: LoadedConfiguration,
        logLevel: LogLevelSwitch,
        load: @escaping @Sendable (_ file: String?) throws(ConfigurationError) -> LoadedConfiguration
    ) {
        self.application = application
        self.logLevel = logLevel
        self.load = load
        inForce = Locked(loaded)
    }

    /// Takes SIGHUP from now on. Called before anybody is told that the service is ready: the signal would end it.
    func begin() {
        ProcessSignals.shared.onReload { reload() }
    }

    private func reload() {
        // A service that stops must not say again that it is ready.
        if application.core.isDraining { return }
        application.notify(.reloading, "Reading the configuration again")
        let isReloaded = takeConfiguration()
        application.notify(
            .ready,
            isReloaded ? "Configuration reloaded" : "The last reload was refused, the old configuration stays"
        )
    }

    /// - Returns: False where the new configuration was refused.
    private func takeConfiguration() -> Bool {
        let logger = application.core.logger
        let reason: String
        do {
            let old = inForce.withLock { $0 }
            let new = try load(old.file)
            let configuration = new.configuration
            if let refusal = configuration.refusal(after: old.configuration) {
                reason = refusal
            } else {
                // Everything is made before anything takes effect.
                let settings = try ServiceParts.settings(configuration)
                let tls = try ServiceParts.tlsContext(configuration)
                application.core.settings.publish(settings)
                if let tls { application.tls?.publish(tls) }
                inForce.withLock { $0 = new }
                logLevel.set(Logger.Level(rawValue: configuration.logLevel) ?? .info)
                application.warnOfDoubts(in: configuration)
                logger.notice("configuration reloaded", metadata: ["apps": "\(configuration.appIDs.count)"])
                return true
            }
        } catch {
            reason = "\(error)"
        }
        logger.error("configuration not reloaded, the old one stays", metadata: ["reason": "\(reason)"])
        return false
    }
}
