internal import ArgumentParser
internal import LLService
internal import LLStandIn
internal import LimitedLogin

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

    struct Public: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "public",
            abstract: "Prints the public keys of signing_keys_file: the JWK Set, and each key in PEM form.",
            discussion: """
                For consumers that take no URL of a JWK Set, such as HAProxy. Exit code 0 done, 64 usage, 78 configuration.
                """
        )

        @Flag(help: "Print one JSON object: the JWK Set alone.")
        var json = false

        @OptionGroup var options: ConfigurationOptions<SigningKeySettings>

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

    struct Judge: ParsableCommand {
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

        @OptionGroup var options: ConfigurationOptions<TokenSettingsScope>

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
