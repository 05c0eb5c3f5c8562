internal import LLHTTP
internal import LLJOSE
internal import LLService
internal import LimitedLogin

/// The report of `verify` and of the page on a credential: every check with its outcome, then the Profile or the reason
/// of the refusal.
struct CheckReport {
    typealias Row = (check: String, title: String, outcome: Outcome)

    enum Outcome: String {
        case passed, failed, skipped
        case notAsked = "not_asked"
    }

    let rows: [Row]
    var refusal: Rejection?
    /// The claims of a refused id token, a JSON object; empty if it has none. They prove nothing.
    var unverifiedClaims: [UInt8] = []
    var answer: [UInt8] = []
    let moment: NumericDate

    /// The rows of these checks, of which the caller may not have asked for some; those after the failed one were skipped.
    private static func rows(_ checks: [(name: String, title: String, isAsked: Bool)], failed: Int?) -> [Row] {
        checks.enumerated().map { place, check in
            let reached: Outcome = place == failed ? .failed : place > failed ?? .max ? .skipped : .passed
            return (check.name, check.title, check.isAsked ? reached : .notAsked)
        }
    }

    /// True if the token was refused because its key is missing.
    var lacksKey: Bool { refusal?.code == .unknownKey || refusal?.code == .keysUnavailable }

    /// True if the question itself is wrong, so that no token was judged.
    var isOfQuestion: Bool { refusal?.check == .expectation }

    var json: JSON {
        let own: JSON = [
            "accepted": JSON(refusal == nil), "code": JSON(refusal?.code.rawValue), "claim": JSON(refusal?.claim),
            "detail": JSON(refusal?.detail), "cure": JSON(refusal?.serviceHint),
            "checks": JSON(rows.map { ["check": JSON($0.check), "outcome": JSON($0.outcome.rawValue)] }),
            "unverified_claims": unverifiedClaims.isEmpty ? nil : JSON { $0 += unverifiedClaims },
        ]
        // The answer is another object; its members follow these.
        return answer.isEmpty ? own : JSON { $0 = own.bytes.dropLast() + [UInt8(ascii: ",")] + answer.dropFirst() }
    }

    func write(asJSON: Bool) {
        if asJSON { StandardOutput.write(json: json) } else { StandardOutput.write(text) }
    }

    private var text: String {
        var lines = rows.map { row in
            switch row.outcome {
            case .passed: "\(Colour.green.paint("ok"))       \(row.title)"
            case .failed: "\(Colour.red.paint("REFUSED"))  \(row.title)"
            case .skipped: Colour.dim.paint("-        \(row.title)")
            case .notAsked: Colour.dim.paint("-        not asked: \(row.title)")
            }
        }
        lines.append("")
        if let refusal {
            let claim = refusal.claim.map { " (claim \($0))" } ?? ""
            let heading = Colour.red.paint("refused: \(refusal.code)")
            lines.append("\(heading)\(claim): \(TerminalText.safe(refusal.detail))")
            lines.append("\(Colour.bold.paint("what to do:")) \(TerminalText.safe(refusal.serviceHint))")
            let claims = claimLines
            if !claims.isEmpty { lines += ["", "the token claims (NOT VERIFIED, so prove nothing by it):"] + claims }
        } else {
            lines += [Colour.green.paint("accepted")] + answerLines
        }
        return lines.joined(separator: "\n")
    }

    private static func isTime(_ name: String) -> Bool {
        name.hasSuffix("_at") || ["exp", "iat", "nbf", "auth_time"].contains(name)
    }

    private var claimLines: [String] {
        guard let claims = JSONObject(unverifiedClaims) else { return [] }
        return lines(claims, of: claims.document.root)
    }

    private var answerLines: [String] {
        let limits = JSONLimits(byteCount: max(JSONLimits().byteCount, answer.count))
        guard let object = JSONObject(answer, limits: limits) else { return [] }
        var lines: [String] = []
        for section in ["authentication_token", "access_token", "profile", "claims"] as [StaticString] {
            // The claims repeat facts of the sections before them.
            guard "\(section)" != "claims" || lines.isEmpty, let node = object.object(section) else { continue }
            lines += ["", "\(section):"] + self.lines(object, of: node)
        }
        return lines
    }

    private func lines(_ object: borrowing JSONObject, of node: Int) -> [String] {
        var lines: [String] = []
        for name in object.document.children(of: node) {
            let (member, value) = (object.string(name), TerminalText.safe(object.string(name + 1)))
            let seconds = Self.isTime(member) ? object.document.double(name + 1, in: object.bytes.span) : nil
            let time = seconds.flatMap { NumericDate(secondsSince1970: $0) }
            let date = time.map { ", \(LocalTime.describe($0, now: moment))" } ?? ""
            lines.append("  \(TerminalText.safe(member)): \(value)\(date)")
        }
        return lines
    }
}

extension TokenExpectation {
    /// True if the caller asked for the check. Only checks that the caller can leave out may be false.
    fileprivate func asks(for check: VerificationCheck) -> Bool {
        switch check {
        case .binding: !binding.isUnbound
        case .device: keyThumbprintBytes != nil
        case .accessToken: accessTokenBytes != nil
        default: true
        }
    }

    fileprivate func title(of check: VerificationCheck) -> String {
        guard check == .binding, binding.isRefresh else { return check.title }
        return binding.requiresNonce
            ? "The token is a refresh of this login and belongs to its person"
            : "The token belongs to the person of this session"
    }
}

extension CheckReport {
    /// Judges an id token as the service would.
    static func ofIDToken(
        _ token: [UInt8],
        _ expectation: TokenExpectation,
        _ keySet: JWKSet,
        _ configuration: ServiceConfiguration,
        now moment: NumericDate,
        verifier: TokenVerifier? = nil
    ) throws -> CheckReport {
        let verifier = try verifier ?? ServiceFactory.verifier(configuration)
        var workspace = VerificationWorkspace()
        let checks = VerificationCheck.allCases
        func rows(until failed: VerificationCheck?) -> [Row] {
            let texts = checks.map { ("\($0)", expectation.title(of: $0), expectation.asks(for: $0)) }
            return Self.rows(texts, failed: failed.flatMap { checks.firstIndex(of: $0) })
        }
        do throws(Rejection) {
            let keys = VerificationKeys(keySet)
            let claims = try verifier.judge(token.span, expectation, keys: keys, now: moment, workspace: &workspace)
            let answer = JSON {
                VerifyAnswer.write(
                    claims,
                    workspace.payload.span,
                    workspace.keyID.span,
                    asked: nil,
                    isRefresh: expectation.binding.isRefresh,
                    to: &$0
                )
            }
            return CheckReport(rows: rows(until: nil), answer: answer.bytes, moment: moment)
        } catch {
            let remedy = Remedy(token: token, configuration: configuration, now: moment)
            var report = CheckReport(rows: rows(until: error.check), moment: moment)
            report.refusal = error.hint(error.of(token.span).hint + remedy.addition(to: error))
            if !report.isOfQuestion { report.unverifiedClaims = PastedText(bytes: token).unprovenPayload }
            return report
        }
    }

    /// The checks of an access token in their order, with their titles; Graph is asked from `known` on. `--json` prints
    /// the names of the cases.
    private enum AccessTokenCheck: String, CaseIterable {
        case allowed = "Access tokens are accepted (access_tokens)"
        case shape = "The token has the shape of an access token"
        case known = "Graph reads the token (debug_token)"
        case notRevoked = "Neither the person nor Facebook revoked it"
        case type = "It is a person's, not an app's or a page's"
        case app = "It was issued for a configured app"
        case user = "Graph names its person"
        case expiry = "It has not expired, and is not older than max_token_age_seconds allows"
        case subject = "It belongs to the person of this session"
        case person = "Graph names the same person to its holder (/me)"

        var name: String { self == .notRevoked ? "not_revoked" : "\(self)" }
    }

    /// Judges an access token as the service would, by asking Graph.
    /// - Throws: ``Exit`` if Graph cannot tell, after a line on standard error.
    static func ofAccessToken(
        _ token: [UInt8],
        subject: String?,
        _ configuration: ServiceConfiguration,
        now moment: NumericDate,
        settings: RuntimeSettings? = nil
    ) throws -> CheckReport {
        func report(_ failed: AccessTokenCheck? = nil, _ refusal: Rejection? = nil, _ answer: [UInt8] = []) -> Self {
            let checks = AccessTokenCheck.allCases
            let texts = checks.map { ($0.name, $0.rawValue, $0 != .subject || subject != nil) }
            let rows = rows(texts, failed: failed.flatMap { checks.firstIndex(of: $0) })
            return CheckReport(rows: rows, refusal: refusal, answer: answer, moment: moment)
        }
        let policy = try ServiceFactory.policy(configuration)
        let accepted =
            try settings ?? (configuration.accessTokensAreAccepted ? ServiceFactory.settings(configuration) : nil)
        let client = try ServiceFactory.graphClient(configuration)
        let deadline = MonotonicClock.now() + client.callTimeout
        let question: AccessTokenQuestion
        do throws(Rejection) {
            let apps = accepted?.accessTokenApps
            question = try AccessTokenQuestion(checking: token, apps: apps, subject: subject, policy: policy)
        } catch {
            return report(error.code == .accessTokenNotAllowed ? .allowed : .shape, error)
        }
        do throws(Rejection) {
            let verified = try question.ask(client.until(deadline)) { moment }
            return report(nil, nil, JSON { AccessTokenAnswer.write(verified, asked: nil, to: &$0) }.bytes)
        } catch {
            guard error.code.kind == .token else {
                error.write()
                throw Exit.unavailable
            }
            let configured = error == .accessTokenOfOtherApp ? configuration.appIDs.configuredApps : ""
            return report(check(error), error.hint(error.hint + configured))
        }
    }

    private static func check(_ rejection: Rejection) -> AccessTokenCheck {
        switch rejection {
        case .accessTokenRevoked: .notRevoked
        case .accessTokenOfNoPerson: .type
        case .accessTokenOfOtherApp: .app
        case .accessTokenWithoutUser: .user
        case .accessTokenExpired, .accessTokenWithoutExpiry, .accessTokenTooOld, .accessTokenOfUnknownAge: .expiry
        case .accessTokenOfOtherSubject: .subject
        case .accessTokenOfAnother: .person
        default: .known
        }
    }
}

extension CheckReport {
    /// The checks of a token that the service issued, in their order, with their titles for a person.
    static let ownTokenChecks: [(check: VerificationCheck, title: String)] = [
        (.size, "The token has 1 to 32,768 bytes"),
        (.serialization, "The token is a JWS of three parts in strict base64url"),
        (.header, "The header is one JSON object that names no member twice"),
        (.criticalHeader, "The header demands no extension"),
        (.type, "It is an access token: typ and client_id"),
        (.keyID, "The header names its key"),
        (.key, "The key is one of signing_keys_file"),
        (.algorithm, "The algorithm is the one of the key"),
        (.signature, "The signature is the key's"),
        (.payload, "The payload is one JSON object that names no member twice"),
        (.issuer, "The issuer is this service's"),
        (.audience, "The audience is configured, and so is the Facebook app"),
        (.times, "The token is valid now"),
        (.identity, "The token names its subject and itself"),
    ]

    /// Judges a token that the service issued, as `/auth` does.
    static func ofOwnToken(_ token: [UInt8], _ verifier: OwnTokenVerifier, now moment: NumericDate) -> CheckReport {
        var failed: Int?
        var refusal: Rejection?
        var answer: [UInt8] = []
        do throws(Rejection) {
            let own = try verifier.judge(token.span, appID: nil, isSigned: false, now: moment)
            answer = (["claims": JSON { $0 += own.payload }] as JSON).bytes
        } catch {
            failed = ownTokenChecks.firstIndex { $0.check == error.check } ?? 0
            refusal = error
        }
        let rows = rows(ownTokenChecks.map { ("\($0.check)", $0.title, true) }, failed: failed)
        var report = CheckReport(rows: rows, refusal: refusal, answer: answer, moment: moment)
        if refusal != nil { report.unverifiedClaims = PastedText(bytes: token).unprovenPayload }
        return report
    }
}

extension Rejection {
    /// Writes the failure of a call of Graph and its remedy to standard error, with the numbers that Facebook's support asks for.
    func write() {
        let logged = context.logged
        let numbers = [
            logged["graph_code"].map { "code \($0)" }, logged["graph_subcode"].map { "subcode \($0)" },
            logged["reason"],
        ]
        let facts = (numbers + [context.traceID.map { "fbtrace_id \($0)" }]).compactMap { $0 }
        let tail = facts.isEmpty ? "" : " (\(facts.joined(separator: ", ")))"
        StandardError.write("limited-login: \(code): \(detail)\(tail)")
    }
}

/// The command line's addition to a refusal's hint: facts for a person with the token and the configuration at hand.
struct Remedy {
    let token: [UInt8]
    let configuration: ServiceConfiguration
    let now: NumericDate

    /// A further sentence with a space before it; empty if there is none.
    func addition(to refusal: Rejection) -> String {
        switch refusal.code {
        case .unknownKey, .invalidSignature: foreignIssuer.map { isClaimed($0) } ?? ""
        case .unsupportedAlgorithm, .missingKeyID: claims?.string("iss").map { isClaimed($0) } ?? ""
        case .invalidIssuer: ofIssuer
        case .invalidAudience: configuration.appIDs.configuredApps
        case .expired:
            moment("exp").map {
                " It expired \(described($0)); judge it as of its own time with --at \(max(0, $0.wholeSeconds - 1))."
            } ?? ""
        case .notYetValid:
            moment(refusal.claim ?? "").map { " Its \(refusal.claim ?? "") is \(described($0))." } ?? ""
        case .tooOld: moment("iat").map { " It was issued \(described($0))." } ?? ""
        default: ""
        }
    }

    private var claims: JSONObject? { JSONObject(PastedText(bytes: token).unprovenPayload) }

    private var foreignIssuer: String? {
        claims?.string("iss").flatMap { configuration.issuers.contains($0) ? nil : $0 }
    }

    private func isClaimed(_ issuer: String) -> String {
        " The token says, unproven, that \(quoted(issuer)) issued it."
    }

    private var ofIssuer: String {
        guard let issuer = claims?.string("iss") else { return "" }
        if issuer.hasSuffix("/"), configuration.issuers.contains(String(issuer.dropLast())) {
            return " The token's issuer has a slash at its end that the configured one has not."
        }
        return " You trust \(configuration.issuers.joined(separator: ", "))."
    }

    private func moment(_ claim: String) -> NumericDate? {
        guard let claims, let node = claims.members.first(where: { $0.name == claim })?.node else { return nil }
        return claims.document.double(node, in: claims.bytes.span).flatMap { NumericDate(secondsSince1970: $0) }
    }

    private func described(_ moment: NumericDate) -> String { LocalTime.describe(moment, now: now) }

    private func quoted(_ text: String) -> String { String(text.prefix(80)).debugDescription }
}

extension [String] {
    /// The configured app ids as a sentence with a space before it.
    var configuredApps: String { " You configured \(prefix(5).joined(separator: ", "))." }
}
