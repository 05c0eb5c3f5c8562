internal import LLBytes

/// Mistakes in copying a token, for the service's hints and the command line.
package enum PastedToken {
    /// The remedy for a mistake in copying; nil if none is found. It quotes nothing from the text.
    package static func remedy(for token: Span<UInt8>) -> String? {
        guard !token.isEmpty else { return nil }
        var bytes: [UInt8] = []
        bytes.append(token)
        let start = start(of: token)
        if let remedy = remedyForWrapping(start) { return remedy }
        if ["/", "./", "../", "~/"].contains(where: start.hasPrefix) {
            return "Pass the token itself, or name its file with --token-file of the command line."
        }
        if start.hasPrefix("bearer ") || start.hasPrefix("authorization:") || hasTextBefore(bytes.prefix(64)) {
            return "Take away the text before the token: an id token begins with eyJ, an access token with EAA."
        }
        if let remedy = remedyForBlanks(bytes) { return remedy }
        if has("%2E", token) || has("%2e", token) { return "Undo the percent-encoding: %2E stands for a full stop." }
        if bytes.contains(UInt8(ascii: "%")) { return "Undo the percent-encoding: no token has a percent sign." }
        if bytes.contains(where: { $0 == 0x3D || $0 == 0x2B || $0 == 0x2F }) {
            return "Pass the token on unchanged, in base64url without '=': it was encoded anew as plain base64."
        }
        if has("...", token) || has("…", token) { return "Copy the whole token: a display has cut out its middle." }
        return nil
    }

    /// True if the text is a token within quotation marks, a printed Optional or JSON.
    static func isWrapped(_ token: Span<UInt8>) -> Bool { remedyForWrapping(start(of: token)) != nil }

    private static func remedyForWrapping(_ start: String) -> String? {
        if start.hasPrefix("\"") || start.hasPrefix("'") { return "Take away the quotation marks around the token." }
        if start.hasPrefix("optional(") {
            return "Unwrap the app's tokenString before it is sent: the app printed a Swift Optional."
        }
        if start.hasPrefix("{") { return Rejection.jsonSerialization.hint }
        return nil
    }

    private static func start(of token: Span<UInt8>) -> String {
        var bytes: [UInt8] = []
        bytes.append(token.extracting(first: 64))
        return String(decoding: bytes, as: UTF8.self).drop { $0.isWhitespace }.lowercased()
    }

    /// True if a token follows other text, such as a scheme, a name or a sign of a text processor.
    private static func hasTextBefore(_ bytes: ArraySlice<UInt8>) -> Bool {
        let text = bytes.drop(while: isBlank)
        let mark = text.indices.first { start in
            text[start...].starts(with: "eyJ".utf8) || text[start...].starts(with: "EAA".utf8)
        }
        guard let mark, mark > text.startIndex else { return false }
        // After a letter, a digit or a full stop it may be a part of the token itself.
        let last = text[mark - 1]
        return !ASCII.isAlphanumeric(last) && !"-_.+/".utf8.contains(last)
    }

    /// True if the word stands in the text. The search of the standard library takes 13 ms for 32 KiB, and any client can
    /// have it made; this one takes 30 µs.
    private static func has(_ word: StaticString, _ text: Span<UInt8>) -> Bool {
        text.indices.contains { text.equal($0..<$0 + word.utf8CodeUnitCount, word) }
    }

    private static func remedyForBlanks(_ bytes: [UInt8]) -> String? {
        guard bytes.contains(where: isBlank) else { return nil }
        let word = bytes.drop(while: isBlank)
        guard !word.isEmpty else { return "Pass the token: this text is white space alone." }
        guard let end = word.firstIndex(where: isBlank), word[end...].contains(where: { !isBlank($0) }) else {
            return bytes.contains(where: { $0 == 0x0A || $0 == 0x0D })
                ? "Take away the line break at the end of the token, or before it."
                : "Take away the white space around the token."
        }
        return "Join the lines: the token is one word, and this text has white space within."
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte <= 0x20 }
}

extension Rejection {
    package func of(_ token: Span<UInt8>) -> Rejection {
        guard code == .malformedToken, let remedy = PastedToken.remedy(for: token) else { return self }
        return hint(remedy)
    }
}
