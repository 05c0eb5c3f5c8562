internal import ArgumentParser
internal import KeySets
internal import Logging
internal import Networking
internal import OpenSSL
internal import ReplayStores
internal import VerificationService

/// `serve`: runs the service until SIGTERM or SIGINT.
struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Runs the service: POST /verify, /livez, /readyz, /healthz.",
        discussion:
            "SIGTERM drains and stops with exit code 0; a second one ends at once. SIGHUP re-reads the configuration."
    )

    @OptionGroup var options: ConfigurationOptions

    func run() async throws {
        let loaded: LoadedConfiguration
        do throws(ConfigurationError) {
            loaded = try options.load()
        } catch {
            throw Exit.refusing("\(error)")
        }
        do {
            let (logger, level) = LoggingSetup.bootstrap(loaded.configuration)
            let application = try Application(loaded.configuration, logger: logger)
            let options = options
            let reload = Reload(application: application, logLevel: level) {
                () throws(ConfigurationError) in try options.load()
            }
            reload.begin()
            try await Lifecycle.run([ServerService(application: application)])
        } catch let error as StartError {
            throw Exit.refusing(error.description)
        }
    }
}

extension Application {
    /// Binds both listeners, then starts the key cache. The store of what was used connects meanwhile.
    func start() throws(StartError) {
        do throws(SocketError) {
            if case .redis(let store) = replayStore { try store.start() }
            try administration.start()
            try server.start()
        } catch {
            throw StartError("\(error)")
        }
        cache.start()
        if let expiry = tls?.context.certificateExpiry, expiry <= WallClock.unixSeconds() {
            core.logger.warning("the TLS certificate has expired")
        }
        warnOfDoubts(in: configuration)
        let addresses = server.localAddresses.map(\.description).joined(separator: ",")
        notify(.ready, "Listening on \(addresses)")
        core.logger.notice(
            "listening",
            metadata: [
                "address": "\(addresses)",
                "admin_address": "\(administration.localAddresses.map(\.description).joined(separator: ","))",
                "app_ids": "\(configuration.appIDs.count)",
                "version": "\(BuildInformation.version)",
            ]
        )
    }

    /// Told at the start and at each reload, since who reads the log then is who set it.
    func warnOfDoubts(in configuration: ServiceConfiguration) {
        for doubt in configuration.doubts {
            core.logger.warning("a setting is hardly meant", metadata: ["reason": "\(doubt)"])
        }
    }
}
