internal import ArgumentParser
internal import Logging
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
        let loaded: LoadedConfiguration
        do throws(ConfigurationError) {
            loaded = try options.load()
        } catch {
            throw Exit.refusing("\(error)")
        }
        do throws(StartError) {
            let (logger, level) = LoggingSetup.bootstrap(loaded.configuration)
            let application = try Application(loaded.configuration, logger: logger)
            let options = options
            let reload = Reload(application: application, loaded: loaded, logLevel: level) {
                file throws(ConfigurationError) in try options.load(again: file)
            }
            reload.begin()
            try await Lifecycle.run(start: application.start, stop: application.stop)
        } catch {
            throw Exit.refusing(error.description)
        }
    }
}
