internal import ArgumentParser
internal import Dispatch
internal import LLHTTP
internal import LLJOSE
internal import LLService
internal import LimitedLogin
internal import LimitedLoginKeys

struct Inspect: ServingCommand {
    static let configuration = CommandConfiguration(
        commandName: "inspect",
        abstract: "Serves a page on this machine that judges a pasted token and shows every check.",
        discussion: """
            It judges with the configuration and keys that the service would use, and keeps nothing. No id token leaves this \
            machine; an access token goes to Graph. --listen takes a loopback address alone (default here: 127.0.0.1:0, a \
            free port). Exit code 0 stopped, 64 usage, 75 an address that is taken, 78 configuration.
            """
    )

    @OptionGroup var time: AsOf

    @OptionGroup var options: ConfigurationOptions<PageSettings>

    func run() throws {
        let place = options.given(Settings.all.listen) ?? "127.0.0.1:0"
        guard let address = SocketAddress(place), address.isLoopback else {
            throw Exit.refusing("--listen '\(place)' is no loopback address and port, such as 127.0.0.1:0")
        }
        // The address is the page's, not the service's.
        let configuration = try options.load(without: Settings.all.listen)
        // A setting out of range ends the start, not the first verdict.
        _ = try ServiceFactory.verifier(configuration)
        let flags = VerdictSettings.flags(of: configuration)
        let page = try InspectPage(configuration: configuration, flags: flags, at: time.at)
        let listener = HTTPServerConfiguration(address: .network(address), workerCount: 1)
        let server = HTTPServer(configuration: listener) { _ in PageHandler(backend: page) }
        do throws(SocketError) {
            try server.start()
        } catch {
            throw StartError(error, "--listen")
        }
        let own = server.localAddress?.description ?? place
        StandardOutput.write("Open the page: http://\(own)/\nControl-C stops it.")
        Lifecycle.run {
            page.cache.start()
        } stop: {
            page.cache.stop()
            server.stop(drainDelay: .zero, grace: .seconds(1))
        }
    }
}

/// Judges the tokens that a person pastes into the page.
final class InspectPage: PageBackend {
    let cache: JWKSetCache
    private let configuration: ServiceConfiguration
    private let flags: [(name: String, value: String)]
    /// The time for which tokens are judged; nil for now.
    private let at: NumericDate?

    init(configuration: ServiceConfiguration, flags: [(name: String, value: String)], at: NumericDate?)
        throws(StartError)
    {
        (self.configuration, self.flags, self.at) = (configuration, flags, at)
        cache = try KeySetLoader.cache(configuration)
    }

    func state() -> JSON {
        let status = cache.status
        return [
            "mode": "inspect",
            "place": "Tokens for app \(configuration.appIDs.joined(separator: ", "))",
            "keys": status.isUsable
                ? "Tokens are judged by \(Self.names(of: status.keys.map(\.keyID)))."
                : "There are no keys yet\(status.lastError.map { ": \($0)" } ?? "").",
            "checks": Self.checks(),
            "at": JSON(at.map { "\($0.wholeSeconds)" }),
        ]
    }

    func run(_ body: [UInt8]) throws(PageRefusal) -> JSON {
        guard let wish = JSONObject(body), let pasted = wish.string("id_token"), let name = wish.string("binding")
        else {
            throw PageRefusal(sentence: "The body must be a JSON object with id_token and binding.")
        }
        guard let makeBinding = Self.bindings[name] else {
            throw PageRefusal(sentence: "A token is tied to a login by one of \(Self.bindings.keys.sorted()).")
        }
        let token = TokenInput.trimmed(Array(pasted.utf8))
        let value = wish.string("value") ?? ""
        let binding = makeBinding(Array(value.utf8))
        let moment = try moment(wish.string("at"))
        let isOfGraph = configuration.accessTokensAreAccepted && PastedText(bytes: token).looksLikeAnAccessToken
        do {
            let report =
                isOfGraph
                ? try CheckReport.ofAccessToken(
                    token,
                    subject: name == "subject" ? value : nil,
                    configuration,
                    now: moment ?? Moment.now()
                ) : try judge(token, binding, moment)
            var options: [String] = []
            if !isOfGraph || name == "subject" { options.append("--\(name.replacing("_", with: "-"))") }
            if !options.isEmpty, ![.unbound, .issuedNonce].contains(binding) { options.append(value.shellWord) }
            return outcome(
                token: String(decoding: token, as: UTF8.self),
                report: report,
                note: isOfGraph ? Self.meaningOfAccessToken : Self.meaning(of: binding),
                command: command(token, options, moment)
            )
        } catch is ExitCode {
            throw PageRefusal(sentence: "Graph cannot tell now; the terminal of this page says why.")
        } catch {
            throw PageRefusal(sentence: "The token cannot be judged: \(error).")
        }
    }

    /// The time for which to judge: the page's, else the command line's; nil for now.
    private func moment(_ text: String?) throws(PageRefusal) -> NumericDate? {
        guard let text, !text.isEmpty else { return at }
        guard let moment = try? Moment.read(text) else {
            throw PageRefusal(sentence: "The time is none: use seconds since 1970 or 2024-01-31T12:00:00Z.")
        }
        return moment
    }

    /// The same as a complete command: the token on standard input, since other users see arguments, and the settings
    /// as flags.
    private func command(_ token: [UInt8], _ options: [String], _ moment: NumericDate?) -> String {
        let time = moment.map { ["--at", "\($0.wholeSeconds)".shellWord] } ?? []
        let words = options + flags.flatMap { [$0.name, $0.value.shellWord] } + time
        let text = String(decoding: token, as: UTF8.self).shellWord
        return "printf %s \(text) | limited-login verify - \(words.joined(separator: " "))"
    }

    /// Judges an id token; a key that is missing is fetched first.
    private func judge(_ token: [UInt8], _ binding: TokenBinding, _ moment: NumericDate?) throws -> CheckReport {
        var configuration = configuration
        if binding.isUnbound { configuration.bindingIsRequired = false }
        func report() throws -> CheckReport {
            let (keys, now) = (cache.snapshot.keySet, try moment ?? Moment.now())
            return try .ofIDToken(token, TokenExpectation(binding), keys, configuration, now: now)
        }
        let first = try report()
        guard first.lacksKey else { return first }
        // Two sources may take longer than a page waits; the report then says that the key is missing.
        cache.fetch(until: .now() + 10)
        return try report()
    }

    private static let meaningOfAccessToken =
        "Graph says whose token it is. It is tied to no login: anybody who holds it may have sent it."

    /// The meaning of an accepted token. Empty if a nonce was compared: the page then says that the token belongs to
    /// its login.
    private static func meaning(of binding: TokenBinding) -> String {
        switch (binding.nonce, binding.subject) {
        case (_?, _): ""
        case (nil, _) where binding.issue == .required:
            "The token has one of your nonces, of any login. The service alone knows whether it was used before."
        case (nil, _?):
            "The token is good, and names this person. A session that exists may go on; no login may begin with it."
        case (nil, nil):
            "The token is good, but tied to no login: anybody who holds it may have sent it. Log no user in by it."
        }
    }

    private static let bindings: [String: @Sendable ([UInt8]) -> TokenBinding] = [
        "nonce": { TokenBinding(nonce: $0) }, "raw_nonce": { TokenBinding(nonce: $0, isRaw: true) },
        "issued_nonce": { _ in .issuedNonce }, "subject": { TokenBinding(subject: $0) }, "unbound": { _ in .unbound },
    ]
}

extension String {
    /// The text as one word of a shell.
    var shellWord: String { "'\(replacing("'", with: "'\\''"))'" }
}
