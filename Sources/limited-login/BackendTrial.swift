internal import Glibc
internal import LLBytes
internal import LLHTTP
internal import LLStandIn
internal import LimitedLogin

struct TrialResult {
    let name: String
    let sent: String
    let code: Rejection.Code?
    let outcome: TrialOutcome

    var mustAccept: Bool { code == nil }

    var isRight: Bool { outcome == .notAsked || outcome == (mustAccept ? .accepted : .refused) }

    var text: String {
        let mark = outcome == .notAsked ? "      " : isRight ? "right " : "WRONG "
        let line = "\(mark) \(name): \(sent) \(mustAccept ? "Yes" : "No") is right; \(outcome.text)."
        return isRight ? line : "\(line)\n       \(reason.why) (\(reason.clause))"
    }

    /// The meaning of a wrong answer: its consequence, and the rule.
    var reason: (why: String, clause: String) {
        guard let code else { return ("People with a good token cannot log in.", "OpenID Connect Core 3.1.3.7") }
        if case .broken = outcome { return ("There is no verdict on what anybody can send.", "RFC 9110 15.6.1") }
        return switch code {
        case .malformedToken:
            ("Two readers may read it differently, so that other text is used than was checked.", "RFC 7515 5.2")
        case .notAnIDToken: ("A token made for another purpose opens a login.", "RFC 8725 3.11")
        case .unsupportedAlgorithm: ("Anybody can make a token for anybody.", "RFC 8725 3.1")
        case .unsupportedCriticalHeader: ("A condition that the token demands is not checked.", "RFC 7515 4.1.11")
        case .missingKeyID: ("The backend guesses the key.", "OpenID Connect Core 10.1")
        case .unknownKey, .invalidSignature: ("Anybody can make a token for anybody.", "RFC 7515 5.2")
        case .invalidIssuer: ("Another issuer can log in anybody.", "OpenID Connect Core 3.1.3.7 rule 2")
        case .invalidAudience:
            ("The owner of another app can log in as each of its users.", "OpenID Connect Core 3.1.3.7 rule 3")
        case .expired: ("A token from an old log or backup opens the account for ever.", "RFC 7519 4.1.4")
        case .missingClaim, .malformedClaim: ("A check that needs the claim is not made.", "OpenID Connect Core 2")
        case .notYetValid: ("A token can be made to last longer than an hour.", "RFC 7519 4.1.5")
        case .nonceMismatch: ("A stolen token logs the thief in.", "OpenID Connect Core 3.1.3.7 rule 11")
        case .subjectMismatch: ("A session goes on with another person.", "OpenID Connect Core 12.2")
        case .keyThumbprintMismatch: ("A token of another device is accepted.", "RFC 9449 6")
        case .accessTokenHashMismatch:
            ("The access token of another person is used with this login.", "OpenID Connect Core 3.1.3.8")
        case .tokenReplayed, .nonceUsed: ("A stolen token logs the thief in after its owner.", "RFC 8725 2.8")
        default: ("A token that must be refused is accepted.", "OpenID Connect Core 3.1.3.7")
        }
    }
}

final class BackendTrial {
    let issuer: StandInIssuer
    let appID: String
    /// The backend is a server with these routes, or a program, which keeps no state.
    let routes: TriedRoutes?
    let program: TriedProgram?
    let prints: Bool
    private(set) var results: [TrialResult] = []

    init(issuer: StandInIssuer, appID: String, routes: TriedRoutes?, program: TriedProgram?, prints: Bool) {
        (self.issuer, self.appID, self.prints) = (issuer, appID, prints)
        (self.routes, self.program) = (routes, program)
    }

    func run() throws(TrialOutcome) {
        try waitForBackend()
        // A token that is only wrong under a setting, or by this service's own limit, shows no fault of a backend.
        for entry in CatalogueEntry.all where entry.setting == nil && entry.code != .tokenTooLong {
            record(entry.name, entry.fault, entry.code) { try send(login(entry)) }
        }
        sequences()
    }

    /// Waits until the backend accepts a good login: it may have just started, or have failed to fetch the keys before.
    private func waitForBackend() throws(TrialOutcome) {
        let deadline = MonotonicClock.now() + .seconds(30)
        var outcome = outcome { try send(login()) }
        if outcome != .accepted, routes != nil {
            StandardError.write("waiting 30 s at most for the backend to accept a good login; now: \(outcome.text)")
            while outcome != .accepted, MonotonicClock.now() < deadline {
                sleep(1)
                outcome = self.outcome { try send(login()) }
            }
        }
        if case .broken = outcome { throw outcome }
    }

    private func send(_ values: [String: String]) throws -> TrialOutcome {
        try routes?.send(values) ?? program?.send(values) ?? .notAsked
    }

    private func outcome(_ attempt: () throws -> TrialOutcome) -> TrialOutcome {
        do {
            return try attempt()
        } catch {
            return error as? TrialOutcome ?? .broken("\(error)")
        }
    }

    private func record(_ name: String, _ sent: String, _ code: Rejection.Code?, _ attempt: () throws -> TrialOutcome) {
        let result = TrialResult(name: name, sent: sent, code: code, outcome: outcome(attempt))
        results.append(result)
        if prints { StandardOutput.write(result.text) }
    }

    private func login(
        _ entry: CatalogueEntry? = nil,
        signedBy minter: @autoclosure () throws -> TokenMinter? = nil
    ) throws -> [String: String] {
        let begun = try routes?.begun() ?? [:]
        let nonce = begun["nonce"] ?? "n-" + .random(32)
        let workshop = try issuer.workshop(nonce: entry?.code == .nonceMismatch ? "n-" + .random(32) : nonce)
        var values = ["nonce": nonce, "app_id": appID].merging(begun) { $1 }
        for (name, value) in entry?.requestMembers(workshop) ?? [] where name != "nonce" {
            guard routes?.takes(name) != false else { throw TrialOutcome.notAsked }
            values[name] = value
        }
        values["token"] = try entry?.token(workshop) ?? workshop.token(signedBy: minter())
        return values
    }

    private func sequences() {
        record("nonce-again", "A good login is sent a second time.", .nonceUsed) {
            guard routes?.begin != nil else { return .notAsked }
            let values = try login()
            guard try send(values) == .accepted else { throw TrialOutcome.broken("the first time is refused") }
            return try send(values)
        }
        record("refresh", "The SDK has refreshed the session's token.", nil) { try refresh() }
        record("other-refresh", "A session is refreshed with another person's token.", .subjectMismatch) {
            try refresh([("sub", "\"1000200030004000\"")])
        }
        let withdrawn = issuer.keys.published[1]
        record("rotation", "Facebook signs with a key that it has just published.", nil) {
            try issuer.keys.rotate()
            return try send(login())
        }
        record("withdrawn-key", "Its key is no longer published.", .unknownKey) {
            try issuer.keys.rotate()
            // A token with the newest key has the backend fetch the keys, and the withdrawn one is not among them.
            _ = try send(login())
            return try send(login(signedBy: withdrawn))
        }
        record("outage", "Facebook's keys cannot be fetched, and the backend has them.", nil) {
            guard routes != nil else { return .notAsked }
            issuer.beginOutage(.seconds(600))
            return try send(login())
        }
        record("outage-unknown-key", "Facebook's keys cannot be fetched, and a stranger signed it.", .unknownKey) {
            issuer.beginOutage(.seconds(600))
            // Without the keys it is right to say neither yes nor no.
            let outcome = outcome { try send(login(signedBy: .make())) }
            return outcome == .accepted ? .accepted : .refused
        }
        record("outage-over", "Facebook's keys can be fetched again.", nil) {
            issuer.beginOutage(.zero)
            return try send(login())
        }
    }

    private func refresh(_ claims: [FacebookJSON.Member] = []) throws -> TrialOutcome {
        guard let routes, let url = routes.refresh else { throw TrialOutcome.notAsked }
        return try routes.refresh(login(), with: issuer.workshop(nonce: StandInIssuer.uuid()).token(claims), at: url)
    }
}
