internal import ArgumentParser
internal import LLService
internal import LLStandIn
internal import LimitedLogin

struct SignedRequestCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "signed-request",
        abstract: "Judges a signed request of Facebook's callbacks, or makes one to try your backend with.",
        discussion: "Needs app_secrets_file. Exit code 0 done, 1 refused, 64 usage, 78 configuration.",
        subcommands: [Judge.self, Make.self]
    )

    struct Judge: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "judge",
            abstract: "Tells the app, the person and the moment of a signed request, or why it is refused.",
            discussion: "Needs app_secrets_file. Exit code 0 accepted, 1 refused, 64 usage, 78 configuration."
        )

        @Argument(help: "The form field signed_request (after -- if it begins with a hyphen), or - for standard input.")
        var text: String

        @OptionGroup var time: AsOf

        @Flag(help: "Print one JSON object.")
        var json = false

        @OptionGroup var options: ConfigurationOptions<SignedRequestSettings>

        func run() throws {
            let (configuration, secrets) = try options.loadWithAppSecrets()
            let bytes = try TokenInput.read(argument: text, file: nil)
            guard !bytes.isEmpty else { throw ValidationError("The signed request is empty: nothing was given.") }
            let now = try time.moment()
            do {
                let request = try SignedRequest(
                    verifying: String(decoding: bytes, as: UTF8.self),
                    secrets: secrets.signers,
                    clockSkew: configuration.clockSkew,
                    now: now
                )
                guard json else {
                    StandardOutput.write(line: "app: \(request.appID)")
                    StandardOutput.write(line: "user: \(request.userID)")
                    return StandardOutput.write(line: "issued: \(LocalTime.describe(request.issuedAt, now: now))")
                }
                StandardOutput.write(json: [
                    "app_id": JSON(request.appID), "user_id": JSON(request.userID),
                    "issued_at": JSON(request.issuedAt.wholeSeconds),
                ])
            } catch {
                let refusal = Rejection.of(error)
                if json {
                    StandardOutput.write(json: ["code": JSON(refusal.code.rawValue), "detail": JSON(refusal.detail)])
                } else {
                    StandardOutput.write(line: "refused: \(refusal)")
                }
                throw Exit.rejected
            }
        }
    }

    struct Make: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "make",
            abstract: "Prints a signed request as Facebook would send it.",
            discussion: """
                For instance: curl http://127.0.0.1:8080/callbacks/deauthorize \
                --data-urlencode "signed_request=$(limited-login signed-request make 218471)"
                Needs app_secrets_file. Exit code 0 done, 64 usage, 78 configuration.
                """
        )

        @OptionGroup var person: PersonOptions

        @Option(
            help: "The moment it is made at: seconds since 1970, or 2024-01-31T12:00:00Z; now by default.",
            transform: Moment.read
        )
        var issuedAt: NumericDate?

        @OptionGroup var options: ConfigurationOptions<SignedRequestSettings>

        func run() throws {
            let secret = try person.app(options).1.secret
            let (user, seconds) = (person.userID, try (issuedAt ?? Moment.now()).wholeSeconds)
            guard let text = try? SignedRequestMinter.mint(userID: user, issuedAt: seconds, appSecret: secret) else {
                throw Exit.refusing("no signed request could be made")
            }
            StandardOutput.write(line: text)
        }
    }
}
