internal import JOSE
internal import LimitedLogin
internal import Sockets
internal import VerificationService

/// The login that a token should belong to, as the command line names it.
struct ExpectedLogin {
    var binding = BindingKind.unbound
    /// The nonce or the user.
    var value: [UInt8] = []
    /// What else must hold.
    var added = AddedExpectation()

    /// Whether the token prolongs a session rather than begins one.
    var isRefresh: Bool { binding == .subject || !added.subject.isEmpty }

    /// Whether the check was asked for. Only what the caller can leave out may not be.
    func asks(for check: VerificationCheck) -> Bool {
        switch check {
        case .binding: binding != .unbound
        case .device: !added.keyThumbprint.isEmpty
        case .accessToken: !added.accessToken.isEmpty
        default: true
        }
    }

    /// What the check asks, for a person.
    func title(of check: VerificationCheck) -> String {
        guard check == .binding, isRefresh else { return check.title }
        return binding == .subject
            ? "The token belongs to the person of this session"
            : "The token is a refresh of this login and belongs to its person"
    }
}

/// What `verify` prints: every check with its outcome, then the Profile or the reason of the refusal.
struct VerificationReport {
    /// The refusal; nil when the token is accepted.
    let rejection: Refusal?
    /// What to do about the refusal, in one sentence; nil when the token is accepted.
    let cure: String?
    /// What the token was judged by.
    private let login: ExpectedLogin
    /// The service's answer for an accepted token.
    private let answer: [UInt8]
    /// The time the token was judged as of.
    private let moment: NumericDate

    /// Judges the token.
    ///
    /// - Parameter verifier: judges in place of one that is made of the configuration.
    static func make(
        token: [UInt8],
        login: ExpectedLogin,
        keySet: JSONWebKeySet,
        configuration: ServiceConfiguration,
        now: Double?,
        verifier: TokenVerifier? = nil
    ) throws -> VerificationReport {
        let verifier =
            try verifier
            ?? TokenVerifier(
                policy: ServiceParts.policy(configuration),
                nonces: ServiceParts.nonceIssuer(configuration)
            )
        let workspace = VerificationWorkspace()
        let anyApp: [UInt8] = []
        guard let moment = NumericDate(secondsSince1970: now ?? Double(WallClock.unixSeconds())) else {
            throw StartError("this machine's clock stands before 1970")
        }
        do throws(Refusal) {
            let claims = try verifier.judge(
                token.span,
                binding: login.binding,
                value: login.value.span,
                appID: anyApp.span,
                added: login.added,
                keys: VerificationKeys(keySet),
                now: moment,
                workspace: workspace
            )
            var answer: [UInt8] = []
            VerifyAnswer.write(
                claims,
                payload: workspace.payload.span,
                keyID: workspace.keyID.span,
                asked: nil,
                isRefresh: login.isRefresh,
                to: &answer
            )
            return VerificationReport(rejection: nil, cure: nil, login: login, answer: answer, moment: moment)
        } catch {
            let cure = Cure(token: token, configuration: configuration, login: login, now: moment)
            return VerificationReport(
                rejection: error,
                cure: cure.sentence(for: error),
                login: login,
                answer: [],
                moment: moment
            )
        }
    }

    private enum Outcome: String {
        case passed, failed, skipped
        case notAsked = "not_asked"
    }

    private func outcome(_ check: VerificationCheck) -> Outcome {
        guard login.asks(for: check) else { return .notAsked }
        guard let failed = rejection?.check else { return .passed }
        return check < failed ? .passed : check == failed ? .failed : .skipped
    }

    /// What each check asks, in their order.
    var titles: [(check: String, title: String)] {
        VerificationCheck.allCases.map { ("\($0)", login.title(of: $0)) }
    }

    /// The report as one JSON object.
    var json: [UInt8] {
        var bytes: [UInt8] = []
        JSONWriter.raw(rejection == nil ? "{\"accepted\":true" : "{\"accepted\":false", to: &bytes)
        if let rejection {
            JSONWriter.raw(",", to: &bytes)
            JSONWriter.member("code", rejection.code.rawValue, to: &bytes)
            if let claim = rejection.claim {
                JSONWriter.raw(",", to: &bytes)
                JSONWriter.member("claim", claim, to: &bytes)
            }
            JSONWriter.raw(",", to: &bytes)
            JSONWriter.member("detail", rejection.detail, to: &bytes)
            JSONWriter.raw(",", to: &bytes)
            JSONWriter.member("cure", cure ?? "", to: &bytes)
        }
        JSONWriter.raw(",\"checks\":[", to: &bytes)
        for (index, check) in VerificationCheck.allCases.enumerated() {
            JSONWriter.raw(index == 0 ? "{" : ",{", to: &bytes)
            JSONWriter.member("check", "\(check)", to: &bytes)
            JSONWriter.raw(",", to: &bytes)
            JSONWriter.member("outcome", outcome(check).rawValue, to: &bytes)
            JSONWriter.raw("}", to: &bytes)
        }
        JSONWriter.raw("]", to: &bytes)
        if rejection == nil {
            // The answer is an object of its own; its members follow after the ones above.
            JSONWriter.raw(",", to: &bytes)
            bytes += answer.dropFirst()
        } else {
            JSONWriter.raw("}", to: &bytes)
        }
        return bytes
    }

    /// The report as lines for a person.
    func text(isColoured: Bool) -> String {
        var lines: [String] = []
        for check in VerificationCheck.allCases {
            switch outcome(check) {
            case .passed: lines.append("\(Colour.green.paint("ok", isColoured))       \(login.title(of: check))")
            case .failed: lines.append("\(Colour.red.paint("REFUSED", isColoured))  \(login.title(of: check))")
            case .skipped: lines.append(Colour.dim.paint("-        \(login.title(of: check))", isColoured))
            case .notAsked: lines.append(Colour.dim.paint("-        not asked: \(check.title)", isColoured))
            }
        }
        lines.append("")
        if let rejection {
            let claim = rejection.claim.map { " (claim \($0))" } ?? ""
            let heading = Colour.red.paint("refused: \(rejection.code.rawValue)", isColoured)
            lines.append("\(heading)\(claim): \(TerminalText.safe(rejection.detail))")
            lines.append("\(Colour.bold.paint("what to do:", isColoured)) \(TerminalText.safe(cure ?? ""))")
        } else {
            lines.append(Colour.green.paint("accepted", isColoured))
            lines += AnswerLines.of(answer, now: moment)
        }
        return lines.joined(separator: "\n")
    }
}

/// The service's answer as lines for a person: the token, then the Profile.
enum AnswerLines {
    static func of(_ answer: [UInt8], now: NumericDate) -> [String] {
        var limits = JSONLimits()
        limits.byteCount = max(limits.byteCount, answer.count)
        var document = JSONDocument(limits: limits)
        guard (try? document.parse(answer.span)) != nil else { return [] }
        var lines: [String] = []
        for section in ["authentication_token", "access_token", "profile"] {
            var name = document.firstChild(document.root)
            while name < document.next(document.root) {
                if document.string(name, in: answer.span) == section {
                    lines.append("")
                    lines.append("\(section):")
                    lines += members(of: name + 1, in: document, answer, now)
                }
                name = document.next(name + 1)
            }
        }
        return lines
    }

    private static func members(
        of object: Int,
        in document: borrowing JSONDocument,
        _ answer: [UInt8],
        _ now: NumericDate
    ) -> [String] {
        var lines: [String] = []
        var name = document.firstChild(object)
        while name < document.next(object) {
            let value = name + 1
            let text =
                document.kind(value) == .string
                ? document.string(value, in: answer.span)
                : String(decoding: answer[document.range(value)], as: UTF8.self)
            let member = document.string(name, in: answer.span)
            // The two times are shown as dates, not as numbers of seconds.
            let time =
                member.hasSuffix("_at")
                ? document.double(value, in: answer.span).flatMap { NumericDate(secondsSince1970: $0) } : nil
            lines.append(
                "  \(member): \(TerminalText.safe(text))\(time.map { ", \(LocalTime.describe($0, now: now))" } ?? "")"
            )
            name = document.next(value)
        }
        return lines
    }
}
