internal import JOSE
internal import LimitedLogin
internal import VerificationService

/// What `verify` and the page tell of a credential: every check with its outcome, then the Profile or the reason of the
/// refusal.
struct CheckReport {
    /// A check, and how it ended.
    struct Row {
        let check: String
        /// What it asks, for a person.
        let title: String
        let outcome: Outcome
    }

    enum Outcome: String {
        case passed, failed, skipped
        case notAsked = "not_asked"
    }

    /// Why a credential is refused, and what to do about it.
    struct Refusal {
        let code: String
        var claim: String?
        let detail: String
        let cure: String
    }

    /// In the order of the checks.
    let rows: [Row]
    /// Nil when the credential is accepted.
    let refusal: Refusal?
    /// The service's answer for an accepted credential.
    private let answer: [UInt8]
    /// The time the credential was judged as of.
    private let moment: NumericDate

    /// - Parameters:
    ///   - failed: the check that refused the credential; those after it were skipped.
    ///   - describe: a check's name and title, and whether it was asked for.
    init<Check: CaseIterable & Equatable>(
        failed: Check?,
        refusal: Refusal?,
        answer: [UInt8] = [],
        moment: NumericDate,
        describe: (Check) -> (name: String, title: String, isAsked: Bool)
    ) {
        var rows: [Row] = []
        var isOver = false
        for check in Check.allCases {
            let (name, title, isAsked) = describe(check)
            let outcome: Outcome = !isAsked ? .notAsked : isOver ? .skipped : check == failed ? .failed : .passed
            rows.append(Row(check: name, title: title, outcome: outcome))
            if check == failed { isOver = true }
        }
        self.rows = rows
        self.refusal = refusal
        self.answer = answer
        self.moment = moment
    }

    /// The report as one JSON object.
    var json: [UInt8] {
        var bytes: [UInt8] = []
        JSONWriter.raw(refusal == nil ? "{\"accepted\":true" : "{\"accepted\":false", to: &bytes)
        if let refusal {
            JSONWriter.member("code", refusal.code, to: &bytes)
            JSONWriter.member("claim", refusal.claim, to: &bytes)
            JSONWriter.member("detail", refusal.detail, to: &bytes)
            JSONWriter.member("cure", refusal.cure, to: &bytes)
        }
        JSONWriter.name("checks", to: &bytes)
        bytes += PageJSON.array(rows) { row in
            PageJSON.object([("check", row.check), ("outcome", row.outcome.rawValue)])
        }
        // The answer is an object of its own; its members follow after the ones above.
        JSONWriter.raw(answer.isEmpty ? "}" : ",", to: &bytes)
        bytes += answer.dropFirst()
        return bytes
    }

    /// The report as lines for a person.
    func text(isColoured: Bool) -> String {
        var lines = rows.map { row in
            switch row.outcome {
            case .passed: "\(Colour.green.paint("ok", isColoured))       \(row.title)"
            case .failed: "\(Colour.red.paint("REFUSED", isColoured))  \(row.title)"
            case .skipped: Colour.dim.paint("-        \(row.title)", isColoured)
            case .notAsked: Colour.dim.paint("-        not asked: \(row.title)", isColoured)
            }
        }
        lines.append("")
        if let refusal {
            let claim = refusal.claim.map { " (claim \($0))" } ?? ""
            let heading = Colour.red.paint("refused: \(refusal.code)", isColoured)
            lines.append("\(heading)\(claim): \(TerminalText.safe(refusal.detail))")
            lines.append("\(Colour.bold.paint("what to do:", isColoured)) \(TerminalText.safe(refusal.cure))")
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
            for name in document.children(of: document.root) {
                if document.string(name, in: answer.span) == section {
                    lines.append("")
                    lines.append("\(section):")
                    lines += members(of: name + 1, in: document, answer, now)
                }
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
        for name in document.children(of: object) {
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
        }
        return lines
    }
}
