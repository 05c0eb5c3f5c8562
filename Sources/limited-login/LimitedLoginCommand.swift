internal import ArgumentParser
internal import Glibc
internal import OpenSSL
internal import Sockets
internal import VerificationService

struct LimitedLoginCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "limited-login",
        abstract: "Decides whether a Facebook Limited Login id token is genuine, meant for this app, fresh and tied "
            + "to this login.",
        discussion: """
            Start with 'limited-login demo': it needs no network and no Facebook app.
            Every setting is a flag, an environment variable or a member of the configuration file, in this order \
            of precedence; 'limited-login check-config' shows what is in force.
            """,
        version: BuildInformation.version,
        subcommands: [
            Serve.self, Demo.self, Issuer.self, Verify.self, Keys.self, CheckConfig.self, HealthCheck.self,
            ClientKey.self, NonceCommand.self, DPoPCommand.self, Permissions.self, SignedRequestCommand.self,
            Inspect.self, Catalogue.self,
        ]
    )
}

/// The entry: it differs from the library's own only in the exit code of `verify`'s usage mistakes.
@main
enum Main {
    static func main() {
        ProcessSignals.block()
        StandardStreams.prepare()
        guard LifecycleExecutor.shared.start() else {
            let sentence = "the system gives this process no second thread: raise its limit of processes (ulimit -u)"
            Glibc.exit(Exit.refusing(sentence).rawValue)
        }
        ProcessExit.leavesOpenSSLInPlace()
        Task(executorPreference: LifecycleExecutor.shared) {
            end(await run())
        }
        ProcessSignals.shared.takeForEver()
    }

    /// What was logged is written first, for as long as the reader of the log takes it.
    private static func end(_ code: ExitCode) -> Never {
        LoggingSetup.writer.flush(until: MonotonicClock.now() + LoggingSetup.flushTime)
        Glibc.exit(code.rawValue)
    }

    private static func run() async -> ExitCode {
        let arguments = Array(CommandLine.arguments.dropFirst())
        do {
            var command = try LimitedLoginCommand.parseAsRoot(arguments)
            if !(command is Serve) { ProcessSignals.shared.endAtHangUp() }
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
            return .success
        } catch let error as StartError {
            return Exit.refusing("\(error)", error.exitCode)
        } catch let error where error is ConfigurationError || error is SocketError || error is OpenSSLError {
            return Exit.refusing("\(error)")
        } catch {
            let code = LimitedLoginCommand.exitCode(for: error)
            // Help and the version.
            if code == .success { LimitedLoginCommand.exit(withError: error) }
            // Not by `exit(withError:)`, which quotes arguments as they are.
            let message = LimitedLoginCommand.fullMessage(for: error)
            if !message.isEmpty { StandardError.write(lines: message) }
            // `verify` is used in scripts that tell 0, 1, 2 and 3 apart, as grep's users do.
            let isUsageOfVerify = arguments.first == Verify._commandName && code == .validationFailure
            return isUsageOfVerify ? Exit.verifyUsage : code
        }
    }
}

/// What this build is.
enum BuildInformation {
    /// The semantic version of the service and its API.
    static let version = "0.2.0"
}
