internal import ArgumentParser
internal import LLBytes
internal import LLHTTP
internal import LLJOSE
internal import LLService
internal import LimitedLogin

struct NonceCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "nonce",
        abstract: "Issues a nonce, or makes the secret for it.",
        subcommands: [New.self, Secret.self]
    )

    struct New: ParsableCommand {
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

        @OptionGroup var options: ConfigurationOptions<NonceSettings>

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
