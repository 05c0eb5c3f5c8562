internal import ArgumentParser
internal import Logging
internal import Sockets
internal import VerificationService

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
        let inForce = Locked(loaded)
        // Before anybody is told that the service is ready: the signal would end it.
        ProcessSignals.shared.onReload { [options] in application.reload(options, level, inForce) }
        try await Lifecycle.run(start: application.start, stop: application.stop)
    }
}

extension Application {
    /// Re-reads the configuration at each SIGHUP: a good one takes effect with the next request, a bad one is refused with
    /// its reason and the old one stays.
    /// - Parameter inForce: what the last reload put in force, or the start.
    fileprivate func reload(
        _ options: ConfigurationOptions,
        _ logLevel: LogLevelSwitch,
        _ inForce: Locked<LoadedConfiguration>
    ) {
        // A service that stops must not say again that it is ready.
        if core.isDraining { return }
        notify(.reloading, "Reading the configuration again")
        do {
            let old = inForce.withLock { $0 }
            let new = try options.load(again: old.file)
            let configuration = new.configuration
            if let refusal = configuration.refusal(after: old.configuration) { throw StartError(refusal) }
            // Everything is made before anything takes effect.
            let settings = try ServiceParts.settings(configuration)
            let tls = try ServiceParts.tlsContext(configuration)
            core.settings.publish(settings)
            if let tls { self.tls?.publish(tls) }
            inForce.withLock { $0 = new }
            logLevel.set(Logger.Level(rawValue: configuration.logLevel) ?? .info)
            warnOfDoubts(in: configuration)
            core.logger.notice("configuration reloaded", metadata: ["apps": "\(configuration.appIDs.count)"])
            notify(.ready, "Configuration reloaded")
        } catch {
            core.logger.error("configuration not reloaded, the old one stays", metadata: ["reason": "\(error)"])
            notify(.ready, "The last reload was refused, the old configuration stays")
        }
    }
}
