internal import JOSE
internal import LimitedLogin

/// The service's answer as lines for a person: the authentication token, then the Profile.
enum AnswerLines {
    static func of(_ answer: [UInt8], now: NumericDate) -> [String] {
        var limits = JSONLimits()
        limits.byteCount = max(limits.byteCount, answer.count)
        var document = JSONDocument(limits: limits)
        guard (try? document.parse(answer.span)) != nil else { return [] }
        var lines: [String] = []
        for section in ["authentication_token", "profile"] {
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
            // The two times are numbers of seconds; nobody reads those.
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
