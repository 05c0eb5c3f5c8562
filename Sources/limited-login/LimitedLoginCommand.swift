internal import ArgumentParser
internal import CLLDocuments
internal import Dispatch
internal import Glibc
internal import LLHTTP
internal import LLJOSE
internal import LLService
internal import LimitedLogin

struct LimitedLoginCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "limited-login",
        abstract: "Decides whether a Facebook Limited Login id token is genuine, meant for this app, fresh and tied "
            + "to this login.",
        discussion: """
            Start with 'limited-login demo': it needs no network and no Facebook app.
            Every setting is a flag, an environment variable or a member of the configuration file, in this order \
            of precedence; 'limited-login check-config' shows what is in force, and COMMAND --help-all lists them.
            Exit codes: 0 done, 1 refused, 2 usage of verify, 3 try again, 64 usage, 75 address taken, 78 configuration.
            """,
        version: BuildInformation.version,
        subcommands: [
            Serve.self, Demo.self, Issuer.self, Verify.self, Keys.self, CheckConfig.self, HealthCheck.self,
            ClientKey.self, SigningKeyCommand.self, TokenCommand.self, NonceCommand.self, DPoPCommand.self,
            Permissions.self, SignedRequestCommand.self,
            Inspect.self, Catalogue.self, Explain.self,
        ]
    )
}

/// A command that runs until a signal stops it.
protocol ServingCommand: ParsableCommand {}

/// The entry of the program. It differs from the library's own in three points: the messages of usage mistakes,
/// `--help-all`, and the exit code of `verify`'s usage mistakes.
@main
enum Main {
    static func main() {
        ProcessSignals.block([SIGTERM, SIGINT, SIGHUP])
        ProcessLimits.setStackSize()
        // The stack of the main thread has the size of `ulimit -s`, which may be 64 KiB.
        DispatchQueue(label: "command").async {
            // `serve` takes SIGHUP later, for a reload.
            ProcessSignals.endAtOnce([SIGTERM, SIGINT])
            prepareStreams()
            ProcessExit.leavesOpenSSLInPlace()
            let code = run()
            // The reader of the log gets the remaining lines first, as long as it accepts them, for 2 s at most.
            LoggingSetup.writer.flush(until: MonotonicClock.now() + .seconds(2))
            Glibc.exit(code.rawValue)
        }
        while true { pause() }
    }

    private static func run() -> ExitCode {
        let arguments = Array(ProcessArguments.all().dropFirst())
        let named = NamedCommand(arguments)
        if let mistake = named.mistake { return refuse(usage: mistake, of: named) }
        do {
            // The library calls it --help-hidden.
            let end = arguments.firstIndex(of: "--") ?? arguments.endIndex
            let known = arguments[..<end].map { $0 == "--help-all" ? "--help-hidden" : $0 } + arguments[end...]
            var command = try LimitedLoginCommand.parseAsRoot(known)
            if !(command is Serve) { ProcessSignals.endAtOnce([SIGHUP]) }
            try requireAlgorithms()
            // Enough for the servers of `demo` and for the first steps of every other command.
            if command is any ServingCommand { Threads.require(9) }
            try command.run()
            return .success
        } catch let error as StartError {
            return Exit.refusing("\(error)", error.exitCode)
        } catch let error as ConfigurationError {
            error.sentences.forEach { StandardError.write("limited-login: \($0)") }
            return Exit.configuration
        } catch let failure as GraphFailure {
            return failure.told()
        } catch let error where error is SocketError || error is OpenSSLError || error is InvalidConfiguration {
            return Exit.refusing("\(error)")
        } catch let error as ValidationError {
            // A running command threw this error: the library would print the usage of the whole program.
            return refuse(usage: error.message, of: named)
        } catch {
            let code = LimitedLoginCommand.exitCode(for: error)
            // `exit(withError:)` is not used, since it quotes arguments unchanged.
            let message = LimitedLoginCommand.fullMessage(for: error)
            // The success code means help, the version or completions.
            if code == .success {
                StandardOutput.write(message + (message.hasPrefix("OVERVIEW:") ? named.helpFooter(arguments) : ""))
                return code
            }
            if !message.isEmpty { StandardError.write(lines: message) }
            return code == .validationFailure ? named.usageExit : code
        }
    }

    private static func requireAlgorithms() throws(StartError) {
        do throws(OpenSSLError) {
            try RequiredAlgorithms.check()
        } catch {
            throw StartError(
                "OpenSSL cannot verify RSA signatures with SHA-256 (\(error)): its configuration file (openssl.cnf, or that "
                    + "of OPENSSL_CONF) selects providers or properties without them"
            )
        }
    }

    private static func refuse(usage mistake: String, of named: NamedCommand) -> ExitCode {
        let usage = LimitedLoginCommand.usageString(for: named.type)
        StandardError.write(
            lines: """
                Error: \(mistake)
                Usage: \(usage)
                  See '\(named.path) --help' for more information.
                """
        )
        return named.usageExit
    }
}

struct NamedCommand {
    /// The command, or its parent as far as the name is known.
    private(set) var type: any ParsableCommand.Type = LimitedLoginCommand.self
    private(set) var path = LimitedLoginCommand._commandName
    private(set) var mistake: String?

    init(_ arguments: [String]) {
        for word in arguments {
            let below = type.configuration.subcommands
            // Only the last command has arguments.
            if below.isEmpty || word.hasPrefix("-") { return }
            if word == "help" { continue }
            guard let next = below.first(where: { $0._commandName == word }) else {
                let near = Self.nearest(word, among: below.map { $0._commandName }).map { "; did you mean '\($0)'?" }
                mistake = word == "reload" ? Self.reloadAdvice : "There is no command '\(word)'\(near ?? ".")"
                return
            }
            type = next
            path += " \(word)"
        }
    }

    private static let reloadAdvice = """
        There is no command 'reload': the service reads changed files by itself (watch_files). To have it read them now, \
        send it SIGHUP: systemctl reload limited-login, docker kill --signal HUP NAME, or kubectl rollout restart.
        """

    /// Scripts that use `verify` distinguish 0, 1, 2 and 3, like those that use grep.
    var usageExit: ExitCode { type == Verify.self ? Exit.verifyUsage : .validationFailure }

    /// A line below the help of a command that has further options.
    func helpFooter(_ arguments: [String]) -> String {
        let hasMore =
            LimitedLoginCommand.helpMessage(for: type, includeHidden: true).count
            > LimitedLoginCommand.helpMessage(for: type).count
        guard hasMore, !arguments.contains("--help-all"), !arguments.contains("--help-hidden") else { return "" }
        return "\nEvery other setting: \(path) --help-all"
    }

    /// The most likely name for a misspelt one: a name that it begins, else one with the fewest edits, at most two.
    private static func nearest(_ word: String, among names: [String]) -> String? {
        let word = word.lowercased()
        if word.count > 1, let whole = names.first(where: { $0.hasPrefix(word) }) { return whole }
        return (0...2).lazy.compactMap { edits in names.first { Spelling.isNear(word, $0, edits: edits) } }.first
    }
}

enum BuildInformation {
    private static let number = "0.3.0-dev"
    /// The semantic version of the service and its API; between two versions with the commit that was built.
    static let version = unsafe number + (build_commit().pointee == 0 ? "" : "+\(String(cString: build_commit()))")
}
