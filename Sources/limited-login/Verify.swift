internal import ArgumentParser
internal import LimitedLogin
internal import VerificationService

struct Verify: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract:
            "Judges one token, an id token or an access token: every check with its outcome, then the Profile, or what to do about the refusal.",
        discussion: """
            Exit code 0 accepted, 1 refused, 2 usage, 3 nobody can tell (no keys, or no word from Graph), 78 configuration.
            An access token is told by its shape, or given with --access-token-file alone. Graph is asked about it, with \
            access_tokens and app_secrets_file set; it is tied to no login, but --subject may name its person.
            Take the nonce from your own session or store: every token shows its nonce, so one that comes with the token \
            proves nothing.
            --subject with a nonce is a refresh: the login's nonce, which may be used and expired, and its user.
            Arguments stand in the process list for every user of the machine: '-' reads the token from standard \
            input, --token-file from a file.
            """
    )

    @Argument(help: "The token, or - to read it from standard input.")
    var token: String?

    @Option(help: "A file with the token.", completion: .file())
    var tokenFile: String?

    // A value in base64url may begin with a hyphen, as options do.
    @Option(parsing: .unconditional, help: "The nonce in your session, given to the app; the claim must equal it.")
    var nonce: String?

    @Option(
        parsing: .unconditional,
        help: "The nonce in your session, whose lower-case hexadecimal SHA-256 was given to the app."
    )
    var rawNonce: String?

    @Flag(help: "The nonce is one that POST /nonces issued; whether it was used before is not known here.")
    var issuedNonce = false

    @Option(help: "The user of an existing session, alone or with the nonce of its login; the claim sub must equal it.")
    var subject: String?

    @Option(
        parsing: .unconditional,
        help: "The RFC 7638 thumbprint of the device's key; the claim cnf.jkt must equal it."
    )
    var keyThumbprint: String?

    @Option(
        help: "A file with the access token: alone, to be judged by Graph; beside an id token, at_hash must be its.",
        completion: .file()
    )
    var accessTokenFile: String?

    @Flag(help: "Judge the token without tying it to a login.")
    var unbound = false

    @Option(help: "The JWK Set: a file or a URL, instead of the configured sources.", completion: .file())
    var jwks: String?

    @Option(help: "Judge as of this moment: seconds since 1970, or 2024-01-31T12:00:00Z.", transform: Moment.read)
    var at: NumericDate?

    @Flag(help: "Print one JSON object.")
    var json = false

    @Option(help: "Whether to use colours; auto means on a terminal, unless NO_COLOR is set.")
    var color = ColourChoice.auto

    @OptionGroup var options: ConfigurationOptions

    func validate() throws {
        guard
            [token, tokenFile].compactMap({ $0 }).count == 1 || token == nil && tokenFile == nil && hasAccessTokenAlone
        else {
            throw ValidationError(
                "Give the token as the argument, as - for standard input, with --token-file or --access-token-file."
            )
        }
        guard nonceCount <= 1 else {
            throw ValidationError("Give only one of --nonce, --raw-nonce and --issued-nonce.")
        }
        for (name, value) in [("subject", subject), ("key-thumbprint", keyThumbprint)] where value == "" {
            throw ValidationError("--\(name) is empty.")
        }
    }

    func run() async throws {
        var configuration = try options.load().configuration
        // On the command line --unbound says so; the service asks its policy.
        if unbound { configuration.bindingIsRequired = false }
        let text = try TokenInput.read(
            argument: token,
            file: tokenFile ?? (hasAccessTokenAlone ? accessTokenFile : nil)
        )
        let looksLikeOne = configuration.accessTokensAreAccepted && PastedText(bytes: text).looksLikeAnAccessToken
        if hasAccessTokenAlone || looksLikeOne && accessTokenFile == nil {
            guard nonceCount == 0, keyThumbprint == nil else {
                throw ValidationError(
                    "An access token carries no nonce and no device's key: --subject alone names its person."
                )
            }
            let now = try at ?? Moment.now()
            return try tell(.ofAccessToken(text, subject: subject, configuration: configuration, now: now))
        }
        guard (nonceCount > 0 || subject != nil) != unbound else {
            throw ValidationError(
                "Give one of --nonce, --raw-nonce and --issued-nonce, for a refresh --subject, or --unbound alone."
            )
        }
        let keySet = try await KeySetLoader.load(jwks, configuration)
        let question = try question()
        let now = try at ?? Moment.now()
        try tell(.ofIDToken(text, question, keySet: keySet, configuration: configuration, now: now))
    }

    private func tell(_ report: CheckReport) throws {
        if json {
            StandardOutput.write(json: report.json)
        } else {
            StandardOutput.write(report.text(isColoured: color.isOn))
        }
        if let refusal = report.refusal { throw refusal.isOfQuestion ? Exit.verifyUsage : Exit.rejected }
    }

    private var nonceCount: Int { [nonce, rawNonce].compactMap { $0 }.count + (issuedNonce ? 1 : 0) }

    /// Whether the access token is what is judged, not what came with an id token.
    private var hasAccessTokenAlone: Bool { token == nil && tokenFile == nil && accessTokenFile != nil }

    private func question() throws -> TokenQuestion {
        var question = TokenQuestion()
        question.keyThumbprint = Array((keyThumbprint ?? "").utf8)
        if let accessTokenFile {
            question.accessToken = try TokenInput.read(argument: nil, file: accessTokenFile)
            guard !question.accessToken.isEmpty else { throw ValidationError("--access-token-file is empty.") }
        }
        let subject = Array((subject ?? "").utf8)
        if nonceCount > 0 {
            question.binding = nonce != nil ? .nonce : rawNonce != nil ? .rawNonce : .issuedNonce
            question.bindingValue = Array((nonce ?? rawNonce ?? "").utf8)
            question.subject = subject
        } else if !subject.isEmpty {
            (question.binding, question.bindingValue) = (.subject, subject)
        }
        return question
    }
}
