internal import JOSE

/// The service's answer as lines for a person: the authentication token, then the Profile.
enum AnswerLines {
    static func of(_ answer: [UInt8]) -> [String] {
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
                    lines += members(of: name + 1, in: document, answer)
                }
                name = document.next(name + 1)
            }
        }
        return lines
    }

    private static func members(of object: Int, in document: borrowing JSONDocument, _ answer: [UInt8]) -> [String] {
        var lines: [String] = []
        var name = document.firstChild(object)
        while name < document.next(object) {
            let value = name + 1
            let text =
                document.kind(value) == .string
                ? document.string(value, in: answer.span)
                : String(decoding: answer[document.range(value)], as: UTF8.self)
            // A claim may hold anything; a terminal must not obey it.
            let safe = String(text.unicodeScalars.map { isControl($0) ? "\u{fffd}" : Character($0) })
            lines.append("  \(document.string(name, in: answer.span)): \(safe)")
            name = document.next(value)
        }
        return lines
    }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value < 0x20 || (0x7f...0x9f).contains(scalar.value)
    }
}
