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
        let reload = Reload(application: application, options: options, logLevel: level, inForce: Locked(loaded))
        // Before anybody is told that the service is ready: the signal would end it.
        ProcessSignals.shared.onReload { reload.take() }
        try await Lifecycle.run(start: application.start, stop: application.stop)
    }
}

/// Re-reads the configuration at each SIGHUP: a good one takes effect with the next request, a bad one is refused with
/// its reason and the old one stays.
private struct Reload: Sendable {
    let application: Application
    let options: ConfigurationOptions
    let logLevel: LogLevelSwitch
    /// What the last reload put in force, or the start.
    let inForce: Locked<LoadedConfiguration>

    func take() {
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
        do {
            let old = inForce.withLock { $0 }
            let new = try options.load(again: old.file)
            let configuration = new.configuration
            if let refusal = configuration.refusal(after: old.configuration) { throw StartError(refusal) }
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
        } catch {
            logger.error("configuration not reloaded, the old one stays", metadata: ["reason": "\(error)"])
            return false
        }
    }
}
