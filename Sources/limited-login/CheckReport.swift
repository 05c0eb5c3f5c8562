internal import LLHTTP
internal import LLJOSE
internal import LLService
internal import LimitedLogin

/// The report of `verify` and of the page on a credential: every check, then the Profile or the reason of the refusal.
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
    private static func rows(_ checks: [(name: String, title: String, isAsked: Bool)], failed: String?) -> [Row] {
        var outcome = Outcome.passed
        return checks.map { check in
            if outcome == .failed { outcome = .skipped }
            if check.name == failed { outcome = .failed }
            return (check.name, check.title, check.isAsked ? outcome : .notAsked)
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
            if let claims = JSONObject(unverifiedClaims), !claims.members.isEmpty {
                lines += ["", "the token claims (NOT VERIFIED, so prove nothing by it):"]
                lines += self.lines(claims, of: claims.document.root)
            }
        } else {
            lines += [Colour.green.paint("accepted")] + answerLines
        }
        return lines.joined(separator: "\n")
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
            let isTime = member.hasSuffix("_at") || ["exp", "iat", "nbf", "auth_time"].contains(member)
            let seconds = isTime ? object.document.double(name + 1, in: object.bytes.span) : nil
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
        func rows(_ failed: VerificationCheck? = nil) -> [Row] {
            let checks = VerificationCheck.allCases.map {
                ("\($0)", expectation.title(of: $0), expectation.asks(for: $0))
            }
            return Self.rows(checks, failed: failed.map { "\($0)" })
        }
        do throws(Rejection) {
            let keys = VerificationKeys(keySet)
            let claims = try verifier.judge(token.span, expectation, keys: keys, now: moment, workspace: &workspace)
            let (payload, keyID, isRefresh) = (workspace.payload, workspace.keyID, expectation.binding.isRefresh)
            let answer = JSON {
                VerifyAnswer.write(claims, payload.span, keyID.span, asked: nil, isRefresh: isRefresh, to: &$0)
            }
            return CheckReport(rows: rows(), answer: answer.bytes, moment: moment)
        } catch {
            let remedy = token.remedy(for: error, configuration, now: moment)
            var report = CheckReport(rows: rows(error.check), moment: moment)
            report.refusal = error.hint(error.of(token.span).hint + remedy)
            if !report.isOfQuestion { report.unverifiedClaims = token.unprovenClaims?.bytes ?? [] }
            return report
        }
    }

    /// The checks of an access token in their order, with their titles and their own refusals. Graph is asked from
    /// `known` on; a refusal of no row is counted there.
    private static let accessTokenChecks: [(name: String, title: String, refusals: [Rejection])] = [
        ("allowed", "Access tokens are accepted (access_tokens)", []),
        ("shape", "The token has the shape of an access token", []),
        ("known", "Graph reads the token (debug_token)", []),
        ("not_revoked", "Neither the person nor Facebook revoked it", [.accessTokenRevoked]),
        ("type", "It is a person's, not an app's or a page's", [.accessTokenOfNoPerson]),
        ("app", "It was issued for a configured app", [.accessTokenOfOtherApp]),
        ("user", "Graph names its person", [.accessTokenWithoutUser]),
        (
            "expiry", "It has not expired, and is not older than max_token_age_seconds allows",
            [.accessTokenExpired, .accessTokenWithoutExpiry, .accessTokenTooOld, .accessTokenOfUnknownAge]
        ),
        ("subject", "It belongs to the person of this session", [.accessTokenOfOtherSubject]),
        ("person", "Graph names the same person to its holder (/me)", [.accessTokenOfAnother]),
    ]

    /// Judges an access token as the service would, by asking Graph.
    /// - Throws: ``Exit`` if Graph cannot tell, after a line on standard error.
    static func ofAccessToken(
        _ token: [UInt8],
        subject: String?,
        _ configuration: ServiceConfiguration,
        now moment: NumericDate,
        settings: RuntimeSettings? = nil
    ) throws -> CheckReport {
        func report(_ failed: String? = nil, _ refusal: Rejection? = nil, _ answer: [UInt8] = []) -> Self {
            let checks = accessTokenChecks.map { ($0.name, $0.title, $0.name != "subject" || subject != nil) }
            return CheckReport(rows: rows(checks, failed: failed), refusal: refusal, answer: answer, moment: moment)
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
        } catch { return report(error.code == .accessTokenNotAllowed ? "allowed" : "shape", error) }
        do throws(Rejection) {
            let verified = try question.ask(client.until(deadline)) { moment }
            return report(nil, nil, JSON { AccessTokenAnswer.write(verified, asked: nil, to: &$0) }.bytes)
        } catch {
            guard error.code.kind == .token else {
                error.write()
                throw Exit.unavailable
            }
            let failed = accessTokenChecks.first { $0.refusals.contains(error) }
            let configured = error == .accessTokenOfOtherApp ? configuration.appIDs.configuredApps : ""
            return report(failed?.name ?? "known", error.hint(error.hint + configured))
        }
    }

    /// The checks of a token that the service issued, in their order.
    private static let ownTokenChecks: [VerificationCheck] = [
        .size, .serialization, .header, .criticalHeader, .type, .keyID, .key, .algorithm, .signature, .payload, .issuer,
        .audience, .times, .identity,
    ]
    /// Their titles that differ from those of an id token's checks.
    private static let ownTokenTitles: [VerificationCheck: String] = [
        .type: "It is an access token: typ and client_id", .key: "The key is one of signing_keys_file",
        .algorithm: "The algorithm is the one of the key", .signature: "The signature is the key's",
        .issuer: "The issuer is this service's", .audience: "The audience is configured, and so is the Facebook app",
    ]

    /// Judges a token that the service issued, as `/auth` does.
    static func ofOwnToken(_ token: [UInt8], _ verifier: OwnTokenVerifier, now moment: NumericDate) -> CheckReport {
        func rows(_ failed: String?) -> [Row] {
            Self.rows(ownTokenChecks.map { ("\($0)", ownTokenTitles[$0] ?? $0.title, true) }, failed: failed)
        }
        do throws(Rejection) {
            let own = try verifier.judge(token.span, appID: nil, isSigned: false, now: moment)
            let answer: JSON = ["claims": JSON { $0 += own.payload }]
            return CheckReport(rows: rows(nil), answer: answer.bytes, moment: moment)
        } catch {
            let failed = ownTokenChecks.first { $0 == error.check } ?? .size
            let claims = token.unprovenClaims?.bytes ?? []
            return CheckReport(rows: rows("\(failed)"), refusal: error, unverifiedClaims: claims, moment: moment)
        }
    }
}

extension Rejection {
    /// Writes the failure of a call of Graph and its remedy to standard error, with the numbers that Facebook's support asks for.
    func write() {
        let logged = context.logged
        let facts = [
            logged["graph_code"].map { "code \($0)" }, logged["graph_subcode"].map { "subcode \($0)" },
            logged["reason"], context.traceID.map { "fbtrace_id \($0)" },
        ].compactMap(\.self)
        let tail = facts.isEmpty ? "" : " (\(facts.joined(separator: ", ")))"
        StandardError.write("limited-login: \(code): \(detail)\(tail)")
    }
}

extension [UInt8] {
    /// A sentence for the hint of this token's refusal, from the token and the configuration; a space precedes it. Empty
    /// if there is none.
    fileprivate func remedy(for refusal: Rejection, _ configuration: ServiceConfiguration, now: NumericDate) -> String {
        let issuer = unprovenClaims?.string("iss")
        let claimed = issuer.map { String($0.prefix(80)).debugDescription }
        let isClaimed = claimed.map { " The token says, unproven, that \($0) issued it." } ?? ""
        func time(_ name: String, _ sentence: (_ text: String, _ moment: NumericDate) -> String) -> String {
            guard let claims = unprovenClaims, let node = claims.members.first(where: { $0.name == name })?.node,
                let seconds = claims.document.double(node, in: claims.bytes.span),
                let moment = NumericDate(secondsSince1970: seconds)
            else { return "" }
            return sentence(LocalTime.describe(moment, now: now), moment)
        }
        switch refusal.code {
        case .unknownKey, .invalidSignature: return configuration.issuers.contains(issuer ?? "") ? "" : isClaimed
        case .unsupportedAlgorithm, .missingKeyID: return isClaimed
        case .invalidIssuer:
            guard let issuer else { return "" }
            return issuer.hasSuffix("/") && configuration.issuers.contains(String(issuer.dropLast()))
                ? " The token's issuer has a slash at its end that the configured one has not."
                : " You trust \(configuration.issuers.joined(separator: ", "))."
        case .invalidAudience: return configuration.appIDs.configuredApps
        case .expired:
            return time("exp") {
                " It expired \($0); judge it as of its own time with --at \(Swift.max(0, $1.wholeSeconds - 1))."
            }
        case .notYetValid:
            let claim = refusal.claim ?? ""
            return time(claim) { text, _ in " Its \(claim) is \(text)." }
        case .tooOld: return time("iat") { text, _ in " It was issued \(text)." }
        default: return ""
        }
    }
}

extension [String] {
    /// The configured app ids as a sentence with a space before it.
    var configuredApps: String { " You configured \(prefix(5).joined(separator: ", "))." }
}
