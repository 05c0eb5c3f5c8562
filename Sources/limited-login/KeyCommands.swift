internal import ArgumentParser
internal import Glibc
internal import LLBytes
internal import LLHTTP
internal import LLJOSE
internal import LLService
internal import LLStandIn
internal import LimitedLogin

struct ClientKey: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "client-key",
        abstract: "Makes keys for the callers of the service.",
        subcommands: [New.self]
    )

    struct New: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "new",
            abstract: "Prints a new key, once, and the line to add to the client keys file.",
            discussion: """
                Give the key to the caller; add the line to the file, or have --append do it.
                Exit code 0 done, 64 usage or a name that is there already, 78 a file that cannot be used.
                """
        )

        @Argument(help: "The caller's name, 1 to 64 of [A-Za-z0-9._-].")
        var name: String

        @Option(
            name: .customLong("append"),
            help: ArgumentHelp("Add the line to this file; a new file gets mode 0600.", valueName: "file"),
            completion: .file()
        )
        var file: String?

        func run() throws {
            guard let (key, line) = ClientKeys.make(name: name) else {
                throw ValidationError("'\(name)' is no name; use 1 to 64 of [A-Za-z0-9._-].")
            }
            if let file { try append(line, to: file) }
            StandardOutput.write("key:  \(key)")
            if file == nil { StandardOutput.write("line: \(line)") }
        }

        private func append(_ line: String, to file: String) throws {
            var text: [UInt8] = []
            do throws(FileContents.Failure) {
                text = try FileContents.read(path: file, limit: ClientKeys.fileByteLimit)
            } catch {
                guard error.isMissing else { throw ConfigurationError(file, error) }
            }
            guard let addition = try ClientKeys.addition(of: line, name: name, to: text, place: file) else {
                throw ValidationError("\(file) has a key of '\(name)' already; add a second one by hand to replace it.")
            }
            try SecretFile.append(addition, to: file)
        }
    }
}

/// The place for a new secret: standard output, or a new file.
struct SecretFile: ParsableArguments {
    @Option(
        help: ArgumentHelp("Write a new file with mode 0600; a file that is there is left alone.", valueName: "file"),
        completion: .file()
    )
    var out: String?

    func write(_ secret: String) throws {
        guard let out else { return StandardOutput.write(secret) }
        try Self.append(Array((secret + "\n").utf8), to: out, O_EXCL)
        StandardOutput.write(line: "\(out) is written; its owner alone can read it.")
    }

    /// Adds text at a file's end; a new file gets mode 0600. `flag` is one more of open(2).
    fileprivate static func append(_ text: [UInt8], to file: String, _ flag: Int32 = 0) throws {
        let descriptor = unsafe open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | flag, 0o600)
        guard descriptor >= 0 || errno != EEXIST else {
            throw ValidationError("\(file) is there already, and is left alone; name another file, or move it away.")
        }
        defer { if descriptor >= 0 { close(descriptor) } }
        // O_APPEND and one write(2), the usual case, keep the lines of two runs apart.
        guard descriptor >= 0, LogWriter.write(text, to: descriptor) == text.count else {
            throw StartError("\(file): it cannot be written: \(SystemReason.sentence(for: errno))")
        }
    }
}

struct NonceCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "nonce",
        abstract: "Issues a nonce, or makes the secret for it.",
        subcommands: [New.self, Secret.self]
    )

    struct New: ParsableCommand, SettingScope {
        static let configuration = CommandConfiguration(
            commandName: "new",
            abstract: "Prints a nonce that the service with the same secret recognises.",
            discussion: """
                It needs nonce_secret_file. A service whose memory of used nonces began less than five seconds before, \
                or begins later, refuses it. Exit code 0 done, 64 usage, 78 configuration.
                """
        )

        @Option(name: .customLong("app-id"), help: "The app that logs in; optional if only one is configured.")
        var app: String?

        @Flag(help: "Print one JSON object, as POST /nonces answers it.")
        var json = false

        static func settings(of all: Settings) -> [any AnySetting] { [all.appIDs, all.nonceSecretFile, all.nonceTTL] }

        @OptionGroup var options: ConfigurationOptions<Self>

        func run() throws {
            let configuration = try options.load()
            guard let issuer = try ServiceFactory.nonceIssuer(configuration) else {
                throw Exit.refusing(
                    "nonce_secret_file: no secret is configured; 'limited-login nonce secret' makes one"
                )
            }
            let apps = configuration.appIDs
            guard let appID = app ?? (apps.count == 1 ? apps.first : nil) else {
                throw ValidationError("Several apps are configured: name the login's app with --app-id.")
            }
            guard apps.contains(appID) else { throw ValidationError("--app-id '\(appID)' is not among app_ids.") }
            let seconds = Double(WallClock.unixMilliseconds()) / 1_000
            guard let now = NumericDate(secondsSince1970: seconds),
                let issued = issuer.issue(appID: appID, lifetime: configuration.nonceTTL, now: now)
            else { throw Exit.refusing("no nonce could be made") }
            guard json else { return StandardOutput.write(issued.nonce.value) }
            StandardOutput.write(json: JSON { NonceAnswer.write(issued, to: &$0) })
        }
    }

    struct Secret: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "secret",
            abstract: "Makes a new secret: a line for the file that nonce_secret_file names.",
            discussion: "Exit code 0 done, 64 usage or a file that is there already, 78 a file that cannot be written."
        )

        @OptionGroup var place: SecretFile

        func run() throws {
            guard let bytes = try? RandomBytes.make(count: NonceSecret.leastByteCount) else {
                throw Exit.refusing("this machine has no randomness")
            }
            try place.write(Hexadecimal.encode(bytes))
        }
    }
}

struct SigningKeyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "signing-key",
        abstract: "Makes and publishes the keys that sign the service's own tokens.",
        subcommands: [New.self, Public.self]
    )

    struct New: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "new",
            abstract: "Makes a new private key in PEM form, for signing_keys_file.",
            discussion: """
                To rotate, put the new key second; 300 s later put it first; once token_lifetime_seconds are over take the \
                old one away. Exit code 0 done, 64 usage or a file that is there already, 78 a file that cannot be written.
                """
        )

        @Flag(help: "A key of the curve P-256 (ES256) instead of RSA with 2,048 bits (RS256).")
        var ec = false

        @OptionGroup var place: SecretFile

        func run() throws {
            let key = try SigningKey(generating: ec ? .es256 : .rs256)
            // The text ends with a line feed, and so do the file and the output.
            try place.write(String(key.privatePEM().dropLast()))
        }
    }

    struct Public: ParsableCommand, SettingScope {
        static let configuration = CommandConfiguration(
            commandName: "public",
            abstract: "Prints the public keys of signing_keys_file: the JWK Set, and each key in PEM form.",
            discussion: """
                For consumers that take no URL of a JWK Set, such as HAProxy. Exit code 0 done, 64 usage, 78 configuration.
                """
        )

        @Flag(help: "Print one JSON object: the JWK Set alone.")
        var json = false

        static func settings(of all: Settings) -> [any AnySetting] { [all.signingKeysFile] }

        @OptionGroup var options: ConfigurationOptions<Self>

        func run() throws {
            guard let keys = try ServiceFactory.signingKeys(options.load()) else {
                throw Exit.refusing(
                    "signing_keys_file: no keys are configured; 'limited-login signing-key new' makes one"
                )
            }
            StandardOutput.write(keys.jwkSet)
            if json { return }
            for key in keys.keys {
                StandardOutput.write(line: "")
                StandardOutput.write(line: "\(key)")
                StandardOutput.write(String(try key.publicPEM().dropLast()))
            }
        }
    }
}

struct TokenCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token",
        abstract: "Judges the service's own tokens.",
        subcommands: [Judge.self]
    )

    struct Judge: ParsableCommand, SettingScope {
        static let configuration = CommandConfiguration(
            commandName: "judge",
            abstract: "Judges a token that POST /token issued: each check, then what it says.",
            discussion: """
                It needs issuer and signing_keys_file. Only the running service knows which logins were revoked. Exit code \
                0 accepted, 1 refused, 64 usage, 78 configuration.
                """
        )

        @Argument(help: "The token, or - to read it from standard input.")
        var token: String

        @OptionGroup var time: AsOf

        @Flag(help: "Print one JSON object.")
        var json = false

        static func settings(of all: Settings) -> [any AnySetting] {
            [all.appIDs, all.issuer, all.signingKeysFile, all.tokenAudiences]
        }

        @OptionGroup var options: ConfigurationOptions<Self>

        func run() throws {
            let configuration = try options.load()
            guard let issued = try ServiceFactory.tokens(configuration) else {
                throw Exit.refusing(
                    "issuer: no tokens are issued here; set issuer, signing_keys_file and client_keys_file"
                )
            }
            let text = TokenInput.trimmed(try TokenInput.read(argument: token, file: nil))
            guard !text.isEmpty else { throw ValidationError("The token is empty: nothing was given.") }
            let verifier = OwnTokenVerifier(issued.issuer, verification: try ServiceFactory.policy(configuration))
            let report = CheckReport.ofOwnToken(text, verifier, now: try time.moment())
            report.write(asJSON: json)
            if report.refusal != nil { throw Exit.rejected }
        }
    }
}
