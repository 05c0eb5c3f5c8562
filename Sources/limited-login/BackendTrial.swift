internal import Glibc
internal import LLBytes
internal import LLHTTP
internal import LLStandIn
internal import LimitedLogin

/// One try of a backend, and its result.
struct TrialResult {
    let name: String
    /// The credential, in one sentence.
    let sent: String
    let mustAccept: Bool
    let outcome: TrialOutcome
    let reason: TrialReason

    var isRight: Bool {
        switch outcome {
        case .accepted: mustAccept
        case .refused: !mustAccept
        case .notAsked: true
        case .broken: false
        }
    }

    var failure: String { "must be \(mustAccept ? "accepted" : "refused"): \(outcome.text). \(reason.why)" }

    /// The lines of the table.
    var text: String {
        let mark = outcome == .notAsked ? "      " : isRight ? "right " : "WRONG "
        let line = "\(mark) \(name): \(sent) \(mustAccept ? "Yes" : "No") is right; \(outcome.text)."
        return isRight ? line : "\(line)\n       \(reason.why) (\(reason.clause))"
    }
}

/// The meaning of a wrong answer: what follows from it, and the rule.
struct TrialReason {
    let why: String
    let clause: String

    static let lockout = TrialReason(
        why: "People with a good token cannot log in.",
        clause: "OpenID Connect Core 3.1.3.7"
    )

    /// The reason to refuse a token with this code.
    static func of(_ code: Rejection.Code?) -> TrialReason {
        guard let code else { return lockout }
        let (why, clause): (String, String) =
            switch code {
            case .malformedToken:
                (
                    "Two readers may read it differently, and one check is then made on other text than is used.",
                    "RFC 7515 5.2"
                )
            case .notAnIDToken: ("A token made for another purpose opens a login.", "RFC 8725 3.11")
            case .unsupportedAlgorithm: ("Anybody can make a token for anybody.", "RFC 8725 3.1")
            case .unsupportedCriticalHeader: ("A condition that the token demands is not checked.", "RFC 7515 4.1.11")
            case .missingKeyID: ("The backend guesses the key.", "OpenID Connect Core 10.1")
            case .unknownKey, .invalidSignature: ("Anybody can make a token for anybody.", "RFC 7515 5.2")
            case .invalidIssuer: ("Another issuer can log in anybody.", "OpenID Connect Core 3.1.3.7 rule 2")
            case .invalidAudience:
                (
                    "The owner of any other app can log in as everybody who uses it.",
                    "OpenID Connect Core 3.1.3.7 rule 3"
                )
            case .expired: ("A token that leaks, from a log or a backup, opens the account for ever.", "RFC 7519 4.1.4")
            case .missingClaim, .malformedClaim:
                ("A check that needs the claim is not made.", "OpenID Connect Core 2")
            case .notYetValid: ("A token can be made to last longer than an hour.", "RFC 7519 4.1.5")
            case .nonceMismatch:
                ("Whoever steals a token logs in with it.", "OpenID Connect Core 3.1.3.7 rule 11")
            case .subjectMismatch: ("A session goes on with another person.", "OpenID Connect Core 12.2")
            case .keyThumbprintMismatch: ("A token of another device is accepted.", "RFC 9449 6")
            case .accessTokenHashMismatch:
                ("The access token of another person is used with this login.", "OpenID Connect Core 3.1.3.8")
            case .tokenReplayed, .nonceUsed: ("Whoever steals a token logs in with it again.", "RFC 8725 2.8")
            default: ("A token that must be refused is accepted.", "OpenID Connect Core 3.1.3.7")
            }
        return TrialReason(why: why, clause: clause)
    }
}

/// Tries a backend with every token of the catalogue, then with what only a sequence shows.
final class BackendTrial {
    let issuer: StandInIssuer
    let appID: String
    let backend: any TriedBackend
    private(set) var results: [TrialResult] = []

    init(issuer: StandInIssuer, appID: String, backend: any TriedBackend) {
        (self.issuer, self.appID, self.backend) = (issuer, appID, backend)
    }

    /// The longest wait for a backend that has just started, or that has failed to fetch the keys before, in seconds.
    private static let patience = 30

    func run() {
        if backend is TriedRoute {
            for _ in 0..<Self.patience where (try? backend.send(login())) != .accepted { sleep(1) }
        }
        // A token that is only wrong under a setting, or by this service's own limit, shows no fault of a backend.
        for entry in CatalogueEntry.all where entry.setting == nil && entry.code != .tokenTooLong { attempt(entry) }
        sequences()
    }

    private func record(
        _ name: String,
        _ sent: String,
        _ code: Rejection.Code?,
        _ attempt: () throws -> TrialOutcome
    ) {
        let outcome: TrialOutcome
        do {
            outcome = try attempt()
        } catch let failure as TrialFailure {
            outcome = .broken(failure.clause)
        } catch {
            outcome = .broken("\(error)")
        }
        let reason = TrialReason.of(code)
        results.append(TrialResult(name: name, sent: sent, mustAccept: code == nil, outcome: outcome, reason: reason))
    }

    private func attempt(_ entry: CatalogueEntry) {
        record(entry.name, entry.fault, entry.code) {
            let begun = try backend.begin()
            let nonce = begun["nonce"] ?? "n-" + .random(32)
            // A token of another login has a nonce of its own.
            let workshop = try workshop(nonce: entry.code == .nonceMismatch ? "n-" + .random(32) : nonce)
            var values = ["nonce": nonce, "app_id": appID]
            for (name, value) in entry.requestMembers(workshop) where name != "nonce" {
                guard backend.takes(name) else { return .notAsked }
                values[name] = value
            }
            return try backend.send(values.merging(begun) { $1 }.merging(["token": entry.token(workshop)]) { $1 })
        }
    }

    private func workshop(nonce: String) throws -> CatalogueWorkshop {
        try CatalogueWorkshop(
            template: issuer.template,
            keys: issuer.keys,
            nonce: nonce,
            now: issuer.conditions.now()
        )
    }

    /// A good login.
    /// - Parameter minter: The key that signs; the newest one if nil.
    private func login(signedBy minter: TokenMinter? = nil) throws -> [String: String] {
        let begun = try backend.begin()
        let nonce = begun["nonce"] ?? "n-" + .random(32)
        let payload = Array(try workshop(nonce: nonce).payload().utf8)
        let signer = minter ?? issuer.keys.published[0]
        let token = try signer.mint(header: signer.header, payload: payload)
        return ["nonce": nonce, "app_id": appID].merging(begun) { $1 }.merging(["token": token]) { $1 }
    }

    private func sequences() {
        record("nonce-again", "A good login is sent a second time.", .nonceUsed) {
            guard backend.hasMemory else { return .notAsked }
            let values = try login()
            guard try backend.send(values) == .accepted else { throw TrialFailure(clause: "the first time is refused") }
            return try backend.send(values)
        }
        let withdrawn = issuer.keys.published[1]
        record("rotation", "Facebook signs with a key that it has just published.", nil) {
            try issuer.keys.rotate()
            return try backend.send(login())
        }
        record("withdrawn-key", "Its key is no longer published.", .unknownKey) {
            try issuer.keys.rotate()
            // A token with the newest key has the backend fetch the keys, and the withdrawn one is not among them.
            _ = try backend.send(login())
            return try backend.send(login(signedBy: withdrawn))
        }
        record("outage", "Facebook's keys cannot be fetched, and the backend has them.", nil) {
            guard !(backend is TriedProgram) else { return .notAsked }
            issuer.conditions.outageEnd = MonotonicClock.now() + .seconds(600)
            return try backend.send(login())
        }
        record("outage-unknown-key", "Facebook's keys cannot be fetched, and a stranger signed it.", .unknownKey) {
            issuer.conditions.outageEnd = MonotonicClock.now() + .seconds(600)
            // Without the keys it is right to say neither yes nor no.
            return try backend.send(login(signedBy: TokenMinter.make())) == .accepted ? .accepted : .refused
        }
        record("outage-over", "Facebook's keys can be fetched again.", nil) {
            issuer.conditions.outageEnd = MonotonicClock.now()
            return try backend.send(login())
        }
    }
}
