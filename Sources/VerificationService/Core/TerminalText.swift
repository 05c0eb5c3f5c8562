/// Text from outside as a terminal may see it: a claim, a key ID or an argument may hold anything, and a terminal must
/// neither obey it nor show its letters in another order.
///
/// A Swift string is valid UTF-8: invalid bytes were replaced by U+FFFD.
package enum TerminalText {
    /// The text as one line, with U+FFFD in place of each control.
    package static func safe(_ text: String) -> String { replacing(text) { _ in "\u{fffd}" } }

    /// The same for text of several lines.
    package static func safe(lines text: String) -> String { replacing(text) { $0 == "\n" ? "\n" : "\u{fffd}" } }

    /// The same for JSON on one line, which loses nothing: controls stand in its strings alone, and are escaped there.
    package static func safe(json text: String) -> String {
        replacing(text) { control in
            // All are below U+10000: four digits (RFC 8259, 7).
            let digits = String(control.value, radix: 16)
            return "\\u" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits
        }
    }

    private static func replacing(_ text: String, _ replacement: (Unicode.Scalar) -> String) -> String {
        guard text.unicodeScalars.contains(where: isControl) else { return text }
        var safe = ""
        for scalar in text.unicodeScalars {
            if isControl(scalar) {
                safe += replacement(scalar)
            } else {
                safe.unicodeScalars.append(scalar)
            }
        }
        return safe
    }

    /// C0, DEL and C1, the line and paragraph separators, and the marks, embeddings, overrides and isolates of
    /// bidirectional text (UAX #9, 2).
    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7F..<0xA0, 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }
}
