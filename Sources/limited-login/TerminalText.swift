/// Text from outside as a terminal may see it.
enum TerminalText {
    /// The text with each control character (C0, DEL and C1) replaced: a claim may hold anything, and a terminal must
    /// not obey it.
    static func safe(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.map { isControl($0) ? "\u{fffd}" : $0 }))
    }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value < 0x20 || (0x7f...0x9f).contains(scalar.value)
    }
}
