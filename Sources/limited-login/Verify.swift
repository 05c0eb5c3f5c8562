internal import ArgumentParser
internal import LLJOSE
internal import LLService
internal import LimitedLogin

struct Verify: ParsableCommand, SettingScope {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Judges an id token or access token: each check, then the Profile, or the remedy.",
        discussion: """
            Exit code 0 accepted, 1 refused, 2 usage, 3 no keys or no word from Graph, 78 configuration.
            Take the nonce from your own session or store: every token shows its nonce, so one that comes with the token \
            proves nothing. The use of a nonce of POST /nonces is not judged here.
            Other users of the machine see arguments: '-' and --token-file hide the token.
            """
    )

    @Argument(help: "The token, or - to read it from standard input.")
    var token: String?

    @Option(help: ArgumentHelp("A file with the token.", valueName: "file"), completion: .file())
    var tokenFile: String?

    // A value in base64url may begin with a hyphen, as options do.
    @Option(parsing: .unconditional, help: "The nonce in your session, as the app got it.")
    var nonce: String?

    @Option(parsing: .unconditional, help: ArgumentHelp("The same, if the app got its SHA-256.", valueName: "nonce"))
    var rawNonce: String?

    @Flag(help: "The nonce must be of POST /nonces; alone, it ties to no login.")
    var issuedNonce = false

    @Option(help: "The session's user: a refresh, alone or with its nonce.")
    var subject: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The RFC 7638 thumbprint of the device's key.", valueName: "jkt")
    )
    var keyThumbprint: String?

    @Option(
        help: ArgumentHelp("Judges this access token by Graph; beside an id token, its at_hash.", valueName: "file"),
        completion: .file()
    )
    var accessTokenFile: String?

    @Flag(help: "Judge the token without tying it to a login.")
    var unbound = false

    @Option(help: "A JWK Set's file or URL, in place of jwks_urls.", completion: .file())
    var jwks: String?

    @OptionGroup var time: AsOf

    @Flag(help: "Print one JSON object.")
    var json = false

    static func settings(of all: Settings) -> [any AnySetting] { [all.appIDs] }

    @OptionGroup var options: ConfigurationOptions<Self>

    func validate() throws {
        guard (token == nil) != (tokenFile == nil) || hasAccessTokenAlone else {
            throw ValidationError(
                "Give the token as the argument, as - for standard input, with --token-file or --access-token-file."
            )
        }
        guard nonce == nil || rawNonce == nil else {
            throw ValidationError("Give only one of --nonce and --raw-nonce; --issued-nonce may stand beside it.")
        }
        for (name, value) in [("subject", subject), ("key-thumbprint", keyThumbprint)] where value == "" {
            throw ValidationError("--\(name) is empty.")
        }
    }

    func run() throws {
        var configuration = try options.load()
        // On the command line --unbound decides; the service has a setting for it.
        if unbound { configuration.bindingIsRequired = false }
        let text = try TokenInput.read(argument: token, file: tokenFile ?? accessTokenFile)
        let looksLikeOne = configuration.accessTokensAreAccepted && text.looksLikeAnAccessToken
        if hasAccessTokenAlone || looksLikeOne && accessTokenFile == nil {
            guard !hasNonce, keyThumbprint == nil else {
                throw ValidationError(
                    "An access token carries no nonce and no device's key: --subject alone names its person."
                )
            }
            let now = try time.moment()
            return try tell(.ofAccessToken(text, subject: subject, configuration, now: now))
        }
        guard (hasNonce || subject != nil) != unbound else {
            throw ValidationError(
                "Give --nonce or --raw-nonce, for a refresh --subject, --issued-nonce, or --unbound alone."
            )
        }
        let expectation = try expectation()
        if let given = expectation.binding.nonce, Nonce.isWeak(given) {
            let least = Nonce.weakCharacterCount
            StandardError.write("limited-login: warning: a nonce of fewer than \(least) characters can be guessed")
        }
        let now = try time.moment()
        func report(_ keySet: JWKSet) throws -> CheckReport {
            try .ofIDToken(text, expectation, keySet, configuration, now: now)
        }
        // Without keys only the shape is judged: a token of another kind needs no keys.
        var verdict = try report(JWKSet(keys: []))
        if verdict.lacksKey { verdict = try report(KeySetLoader.load(jwks, configuration)) }
        try tell(verdict)
    }

    private func tell(_ report: CheckReport) throws {
        report.write(asJSON: json)
        if report.refusal != nil { throw report.isOfQuestion ? Exit.verifyUsage : Exit.rejected }
    }

    private var hasNonce: Bool { nonce != nil || rawNonce != nil || issuedNonce }

    /// True if the access token itself is judged, and no id token with it.
    private var hasAccessTokenAlone: Bool { token == nil && tokenFile == nil && accessTokenFile != nil }

    private func expectation() throws -> TokenExpectation {
        let binding = TokenBinding(
            nonce: (nonce ?? rawNonce).map { Array($0.utf8) },
            isRaw: nonce == nil && rawNonce != nil,
            issue: issuedNonce ? .required : .recognized,
            subject: subject.map { Array($0.utf8) }
        )
        var expectation = TokenExpectation(binding: binding, keyThumbprint: keyThumbprint)
        if let accessTokenFile {
            let accessToken = try TokenInput.read(argument: nil, file: accessTokenFile)
            guard !accessToken.isEmpty else { throw ValidationError("--access-token-file is empty.") }
            expectation.accessTokenBytes = accessToken
        }
        return expectation
    }
}
