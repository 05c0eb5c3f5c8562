internal import ArgumentParser
internal import Dispatch
internal import LLHTTP
internal import LLJOSE
internal import LLService
internal import LimitedLogin
internal import LimitedLoginKeys

struct Inspect: ServingCommand, SettingScope {
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

    static func settings(of all: Settings) -> [any AnySetting] {
        [
            all.appIDs, all.listen, all.jwksURLs, all.accessTokensAreAccepted, all.appSecretsFile,
            all.onlyLimitedTracking,
        ]
    }

    @OptionGroup var options: ConfigurationOptions<Self>

    func run() throws {
        let place = options.given(Settings.all.listen) ?? "127.0.0.1:0"
        guard let address = SocketAddress(place), address.isLoopback else {
            throw Exit.refusing("--listen '\(place)' is no loopback address and port, such as 127.0.0.1:0")
        }
        // The address is the page's, not the service's.
        let configuration = try options.load(without: Settings.all.listen)
        // A setting out of range ends the start, not the first verdict.
        _ = try ServiceFactory.verifier(configuration)
        let cache = try KeySetLoader.cache(configuration)
        let page = InspectPage(configuration: configuration, cache: cache, at: time.at)
        let listener = HTTPServerConfiguration(address: .network(address), workerCount: 1)
        let server = HTTPServer(configuration: listener) { _ in PageHandler(backend: page) }
        do throws(SocketError) {
            try server.start()
        } catch { throw StartError(error, "--listen") }
        let own = server.localAddress?.description ?? place
        StandardOutput.write("Open the page: http://\(own)/\nControl-C stops it.")
        ProcessSignals.run {
            cache.start()
        } stop: {
            cache.stop()
            server.stop(drainDelay: .zero, grace: .seconds(1))
        }
    }
}

/// Judges the tokens that a person pastes into the page.
struct InspectPage: PageBackend {
    let configuration: ServiceConfiguration
    let cache: JWKSetCache
    /// The time for which tokens are judged; nil for now.
    let at: NumericDate?

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
        let isOfGraph = configuration.accessTokensAreAccepted && token.looksLikeAnAccessToken
        do {
            let subject = name == "subject" ? value : nil
            let report =
                try isOfGraph
                ? .ofAccessToken(token, subject: subject, configuration, now: moment ?? Moment.now())
                : judge(token, binding, moment)
            var options: [String] = []
            if !isOfGraph || subject != nil { options.append("--\(name.replacing("_", with: "-"))") }
            if !options.isEmpty, ![.unbound, .issuedNonce].contains(binding) { options.append(value.shellWord) }
            let ofGraph = "Graph says whose token it is. It is tied to no login: anybody who holds it may have sent it."
            let (text, note) = (String(decoding: token, as: UTF8.self), isOfGraph ? ofGraph : Self.meaning(of: binding))
            return outcome(token: text, report: report, note: note, command: command(token, options, moment))
        } catch is ExitCode {
            throw PageRefusal(sentence: "Graph cannot tell now; the terminal of this page says why.")
        } catch { throw PageRefusal(sentence: "The token cannot be judged: \(error).") }
    }

    /// The time for which to judge: the page's, else the command line's; nil for now.
    private func moment(_ text: String?) throws(PageRefusal) -> NumericDate? {
        guard let text, !text.isEmpty else { return at }
        guard let moment = try? Moment.read(text) else {
            throw PageRefusal(sentence: "The time is none: use seconds since 1970 or 2024-01-31T12:00:00Z.")
        }
        return moment
    }

    /// The same as a command with the settings as flags; the token is its input, since other users see arguments.
    private func command(_ token: [UInt8], _ options: [String], _ moment: NumericDate?) -> String {
        let time = moment.map { ["--at", "\($0.wholeSeconds)".shellWord] } ?? []
        let words = options + flags + time
        let text = String(decoding: token, as: UTF8.self).shellWord
        return "printf %s \(text) | limited-login verify - \(words.joined(separator: " "))"
    }

    /// The settings that may change a verdict, as far as they are set; `binding` comes with the question.
    private var flags: [String] {
        let all = Settings.all
        let decisive: [any AnySetting] = [
            all.appIDs, all.issuers, all.jwksURLs, all.caFile, all.clockSkew, all.maxTokenAgeSeconds,
            all.onlyLimitedTracking, all.accessTokensAreAccepted, all.appSecretsFile, all.graphURL, all.graphVersion,
            all.nonceSecretFile,
        ]
        return decisive.map { $0.row }.flatMap { row in
            configuration.settings[row.name].map { ["--\(row.flagName)", row.kind.text(of: $0.value).shellWord] } ?? []
        }
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

    /// The meaning of an accepted token; empty if a nonce was compared: the page then says that it belongs to its login.
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
