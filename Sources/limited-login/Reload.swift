internal import Graph
internal import Logging
internal import Networking
internal import VerificationService

/// Re-reads the configuration at each SIGHUP: a good one takes effect with the next request, a bad one is refused with
/// its reason and the old one stays.
struct Reload: Sendable {
    let application: Application
    let logLevel: LogLevelSwitch
    /// Loads the configuration anew, as the start did.
    let load: @Sendable () throws(ConfigurationError) -> LoadedConfiguration

    /// Takes SIGHUP from now on. Called before anybody is told that the service is ready: the signal would end it.
    func begin() {
        ProcessSignals.shared.onReload { reload() }
    }

    private func reload() {
        // Who stops has nothing more to serve by it, and must not say again that it is ready.
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
            let configuration = try load().configuration
            if let key = Self.keyThatNeedsRestart(application.configuration, configuration) {
                reason = "a changed \(key.rawValue) takes effect with a restart alone"
            } else {
                // Everything is made before anything takes effect.
                let settings = try Application.settings(configuration)
                let tls = try Application.tlsContext(configuration)
                application.core.settings.publish(settings)
                if let tls { application.tls?.publish(tls) }
                logLevel.set(Logger.Level(rawValue: configuration.logLevel) ?? .info)
                application.warnOfDoubts(in: configuration)
                logger.notice("configuration reloaded", metadata: ["app_ids": "\(configuration.appIDs.count)"])
                return true
            }
        } catch {
            reason = "\(error)"
        }
        logger.error("configuration not reloaded, the old one stays", metadata: ["reason": "\(reason)"])
        return false
    }

    /// The first key whose change a running service cannot follow.
    private static func keyThatNeedsRestart(
        _ old: ServiceConfiguration,
        _ new: ServiceConfiguration
    ) -> ConfigurationKey? {
        let fixed: [(ConfigurationKey, Bool)] = [
            (.jwksURLs, old.jwksURLs == new.jwksURLs), (.jwksFile, old.jwksFile == new.jwksFile),
            (.caFile, old.caFile == new.caFile), (.jwksTTLSeconds, old.jwksTTLSeconds == new.jwksTTLSeconds),
            (.jwksMinimumTTLSeconds, old.jwksMinimumTTLSeconds == new.jwksMinimumTTLSeconds),
            (.jwksMaximumTTLSeconds, old.jwksMaximumTTLSeconds == new.jwksMaximumTTLSeconds),
            (.jwksMaxStaleSeconds, old.jwksMaxStaleSeconds == new.jwksMaxStaleSeconds),
            (.listen, old.listen == new.listen), (.listenMode, old.listenMode == new.listenMode),
            (.adminListen, old.adminListen == new.adminListen),
            (.workers, old.workers == new.workers), (.logFormat, old.logFormat == new.logFormat),
            (.tlsCertificateFile, (old.tls == nil) == (new.tls == nil)),
            (.replayStore, old.replayStore == new.replayStore),
            (.replayStorePasswordFile, old.replayStorePasswordFile == new.replayStorePasswordFile),
            (.replayStoreCapacity, old.replayStoreCapacity == new.replayStoreCapacity),
            (.appSecretsFile, (old.appSecretsFile == nil) == (new.appSecretsFile == nil)),
            (.graphURL, old.graph.hasSameURL(as: new.graph)), (.graphVersion, old.graph.version == new.graph.version),
            (.uninstallURL, old.graph == new.graph),
            (.drainDelaySeconds, old.drainDelaySeconds == new.drainDelaySeconds),
        ]
        return fixed.first { !$0.1 }?.0
    }
}
