internal import ArgumentParser
internal import Dispatch
internal import HTTPServer
internal import KeySets
internal import LimitedLogin
internal import Sockets
internal import VerificationService

struct Inspect: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Serves a page on this machine that judges a pasted token and shows every check.",
        discussion: """
            It judges with the configuration and keys that the service would use. Nothing is kept, and no token leaves \
            this machine. --listen takes a loopback address alone (default here: 127.0.0.1:0, a free port).
            """
    )

    @OptionGroup var options: ConfigurationOptions

    func run() async throws {
        let place = options.given(.listen) ?? "127.0.0.1:0"
        guard let address = SocketAddress(place), address.isLoopback else {
            throw Exit.refusing("--listen '\(place)' is no loopback address and port, such as 127.0.0.1:0")
        }
        // The address is the page's, not the service's.
        let configuration = try options.load(without: .listen).configuration
        // A setting out of range ends the start, not the first verdict.
        _ = try ServiceParts.verifier(configuration)
        let desk = try InspectDesk(configuration: configuration)
        let listener = HTTPServerConfiguration(addresses: [.network(address)], workerCount: 1)
        let server = HTTPServer(configuration: listener) { _ in PageHandler(desk: desk) }
        try server.start()
        let own = server.localAddresses.first?.description ?? place
        StandardOutput.write("Open the page: http://\(own)/\nControl-C stops it.")
        await Lifecycle.run {
            desk.cache.start()
        } stop: {
            desk.cache.stop()
            await server.stop(drainDelay: .zero, grace: .seconds(1))
        }
    }
}

/// Judges the tokens that are pasted into the page.
final class InspectDesk: PageDesk {
    /// Time between fetches for keys that the set lacks: a page that is asked again and again must not ask the issuer so.
    private static let fetchInterval = Duration.seconds(5)
    /// How long a token with an unknown key waits for a fetch.
    private static let fetchPatience = DispatchTimeInterval.seconds(10)

    let cache: JWKSetCache
    private let configuration: ServiceConfiguration
    /// Signalled by every fetch that ends.
    private let fetched = DispatchSemaphore(value: 0)
    private let nextFetch = Locked(MonotonicInstant(nanoseconds: 0))

    init(configuration: ServiceConfiguration) throws(StartError) {
        self.configuration = configuration
        cache = try KeySetLoader.cache(configuration)
        cache.onUpdate { [fetched] in fetched.signal() }
    }

    func state() -> JSON {
        let status = cache.status
        let keys = status.keys.map { String($0.id.prefix(6)) }.joined(separator: ", ")
        return [
            "mode": "inspect",
            "place": "Tokens for app \(configuration.appIDs.joined(separator: ", "))",
            "keys": status.isUsable
                ? "\(status.keys.count) keys: \(keys)" : "No keys yet\(status.lastError.map { ": \($0)" } ?? "")",
            "checks": Self.checks(),
        ]
    }

    func run(_ body: [UInt8]) throws(PageRefusal) -> JSON {
        guard let (texts, _) = JSON.members(body), let token = texts["id_token"], let name = texts["binding"] else {
            throw PageRefusal(sentence: "The body must be a JSON object with id_token and binding.")
        }
        guard let binding = Self.bindings[name] else {
            throw PageRefusal(sentence: "A token is tied to a login by one of \(Self.bindings.keys.sorted()).")
        }
        let text = TokenInput.trimmed(Array(token.utf8))
        let value = texts["value"] ?? ""
        do {
            var report = try report(text, binding, value)
            let lackingKeys: [ProblemCode] = [.rejectedToken(.unknownKey), .keysUnavailable]
            if lackingKeys.contains(where: { $0.text == report.refusal?.code }), fetchOnce() {
                report = try self.report(text, binding, value)
            }
            let option = binding == .unbound || binding == .issuedNonce ? "" : " \(Self.shell(value))"
            return outcome(
                token: String(decoding: text, as: UTF8.self),
                report: report,
                note: Self.meaning(of: binding),
                command: "limited-login verify - --\(name.replacing("_", with: "-"))\(option)"
            )
        } catch {
            throw PageRefusal(sentence: "The token cannot be judged: \(error).")
        }
    }

    private func report(_ token: [UInt8], _ binding: BindingKind, _ value: String) throws -> CheckReport {
        var configuration = configuration
        if binding == .unbound { configuration.bindingIsRequired = false }
        return try CheckReport.ofIDToken(
            token,
            TokenQuestion(binding, Array(value.utf8)),
            keySet: cache.snapshot.keySet,
            configuration: configuration,
            now: Moment.now()
        )
    }

    /// What an accepted token means. Empty where a nonce was compared: the page then says that the token belongs to its login.
    private static func meaning(of binding: BindingKind) -> String {
        switch binding {
        case .nonce, .rawNonce: ""
        case .issuedNonce:
            "The token is good, and its nonce was issued here. The service alone knows whether it was used before."
        case .subject:
            "The token is good, and names this person. A session that exists may go on; no login may begin with it."
        case .unbound:
            "The token is good, but tied to no login: anybody who holds it may have sent it. Do not log anybody in by it."
        }
    }

    /// Fetches the keys, unless that was done a moment ago; false where nothing was fetched.
    private func fetchOnce() -> Bool {
        let now = MonotonicClock.now()
        let isDue = nextFetch.withLock { next in
            guard now >= next else { return false }
            next = now + Self.fetchInterval
            return true
        }
        guard isDue else { return false }
        while fetched.wait(timeout: .now()) == .success {}
        cache.refreshNow()
        return fetched.wait(timeout: .now() + Self.fetchPatience) == .success
    }

    private static let bindings: [String: BindingKind] = [
        "nonce": .nonce, "raw_nonce": .rawNonce, "issued_nonce": .issuedNonce, "subject": .subject, "unbound": .unbound,
    ]

    /// The text as one word of a shell.
    static func shell(_ text: String) -> String { "'" + text.replacing("'", with: "'\\''") + "'" }
}
