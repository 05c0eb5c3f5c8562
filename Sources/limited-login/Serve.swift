internal import ArgumentParser
internal import Glibc
internal import LLHTTP
internal import LLJOSE
internal import LLService
internal import Logging

struct Serve: ServingCommand, SettingScope {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Runs the service: the HTTP API, health and metrics.",
        discussion: """
            SIGTERM drains and stops; a second one ends at once. SIGHUP, and a change of a file (watch_files), re-read the \
            configuration. Exit code 0 stopped, 64 usage, 75 an address that is taken, 78 configuration.
            """
    )

    static func settings(of all: Settings) -> [any AnySetting] {
        [
            all.appIDs, all.listen, all.adminListen, all.clientKeysFile, all.nonceSecretFile,
            all.accessTokensAreAccepted, all.appSecretsFile, all.gatewayIsEnabled, all.replayStore,
        ]
    }

    @OptionGroup var options: ConfigurationOptions<Self>

    func run() throws {
        let files = FollowedFiles()
        files.follow(try options.load())
        // It is read again: the file may have changed before the watch began.
        let configuration = try options.load()
        let fault = files.follow(configuration, wereRead: true)
        let (logger, level) = LoggingSetup.bootstrap(configuration)
        let application = try Application(configuration, logger: logger)
        let inForce = Locked(configuration)
        try ProcessSignals.run { () throws(StartError) in
            // An address may be taken by a process that is ending, or its interface may be coming up.
            try application.start(tryingFor: .seconds(5))
            logger.notice("configuration in force", metadata: ["file": "\(configuration.file ?? "none")"])
            // A signal that came earlier was kept until now: a service that is not ready must not report that it is.
            let reload = { @Sendable [options] in application.reload(options, level, inForce, files) }
            ProcessSignals.take(SIGHUP, on: files.queue, reload)
            files.start(reload)
            if let fault { logger.warning("changed files may need SIGHUP", metadata: ["reason": "\(fault)"]) }
        } stop: {
            application.stop()
        }
    }
}

extension Application {
    /// Reads the configuration again. A good one takes effect with the next request. A bad one is refused with its reason,
    /// and the old one stays in force.
    fileprivate func reload(
        _ options: ConfigurationOptions<Serve>,
        _ logLevel: LogLevelSwitch,
        _ inForce: Locked<ServiceConfiguration>,
        _ files: FollowedFiles
    ) {
        // A stopping service must not report again that it is ready.
        if core.isDraining { return }
        notify(.reloading, "Reading the configuration again")
        do {
            let old = inForce.withLock { $0 }
            files.follow(old)
            let new = try options.load(again: old.file)
            // A refused file is followed too: its mend is a change.
            files.follow(new, wereRead: true)
            if let refusal = new.refusal(after: old) { throw StartError(refusal) }
            // All parts are made before any takes effect.
            let settings = try ServiceFactory.settings(new)
            let tls = try ServiceFactory.tlsContext(new)
            core.settings.publish(settings)
            if let tls { self.tls?.publish(tls) }
            inForce.withLock { $0 = new }
            logLevel.set(new.logLevel)
            warn(of: new, tls)
            for change in new.weakenings(since: old) {
                core.logger.warning(
                    "the reload made a setting less strict",
                    metadata: ["setting": "\(change.name)", "old": "\(change.old)", "new": "\(change.new)"]
                )
            }
            core.logger.notice(
                "configuration reloaded",
                metadata: ["apps": "\(new.appIDs.count)", "file": "\(new.file ?? "none")"]
            )
            notify(.ready, "Configuration reloaded")
        } catch {
            core.logger.error("configuration not reloaded, the old one stays", metadata: ["reason": "\(error)"])
            notify(.ready, "The last reload was refused, the old configuration stays")
        }
    }
}

struct HealthCheck: ParsableCommand, SettingScope {
    static let configuration = CommandConfiguration(
        commandName: "healthcheck",
        abstract: "Asks the running service whether it is alive (or, with --ready, ready).",
        discussion: """
            Of the service's configuration it reads where the administrative listener is. Exit code 0 when the service is \
            well, 1 when it is not, 64 usage, 78 when the setting cannot be used.
            """
    )

    @Flag(help: "Ask for readiness: usable keys, known revocations, and not stopping.")
    var ready = false

    static func settings(of all: Settings) -> [any AnySetting] { [all.adminListen] }

    @OptionGroup var options: ConfigurationOptions<Self>

    func run() throws {
        let listener = try options.load().adminListen
        guard listener.port != 0 else {
            throw Exit.refusing("admin_listen: port 0 is another one at each start; name a port that can be asked")
        }
        let path = ready ? "/readyz?verbose" : "/livez"
        do {
            let url = try HTTPURL(parsing: "http://\(listener.reachable)\(path)")
            var limits = HTTPSClientLimits()
            limits.connectTime = .seconds(2)
            limits.fetchTimeout = .seconds(4)
            let answer = try HTTPSClient().send(HTTPSRequest(.get, url), limits: limits)
            if answer.status == 200 { return StandardOutput.write("ok") }
            let reason = JSONObject(answer.body)?.string("detail").map { ": \($0)" } ?? ""
            StandardError.write("limited-login: \(path) answers \(answer.status)\(reason)")
        } catch {
            StandardError.write("limited-login: \(path) does not answer: \(error)")
        }
        throw Exit.rejected
    }
}

extension SocketAddress {
    /// The address at which this machine reaches a listener: the loopback address for one on all addresses.
    var reachable: SocketAddress {
        switch host {
        case "0.0.0.0": .loopback(port: port)
        case "::": .loopbackIPv6(port: port)
        default: self
        }
    }
}
