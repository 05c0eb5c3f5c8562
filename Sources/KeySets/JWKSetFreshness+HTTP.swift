internal import HTTPClient

extension JWKSetFreshness {
    /// What `Cache-Control` and `Age` say (RFC 9111, 4.2.1 and 4.2.3); `Expires` is not read.
    init(of response: HTTPSResponse) {
        guard let text = response.value(of: "cache-control"), let life = Self.lifetime(in: text) else {
            self.init()
            return
        }
        let age = response.value(of: "age").flatMap(DeltaSeconds.parse) ?? 0
        // Both are at least 0, so the difference cannot overflow.
        self.init(remainingSeconds: life - age)
    }

    /// The least `max-age`; 0 for `no-store` and `no-cache`, and for a `max-age` that is no number: an answer whose
    /// freshness cannot be read counts as stale (RFC 9111, 4.2.1).
    private static func lifetime(in text: String) -> Int? {
        var life: Int?
        for directive in directives(in: text) {
            let parts = directive.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = parts.first.map({ trimmed($0).lowercased() }) else { continue }
            switch name {
            case "no-store", "no-cache":
                life = 0
            case "max-age":
                // RFC 9111, 5.2: the argument may come as a token or as a quoted string.
                let argument = parts.count == 2 ? trimmed(parts[1]).filter { $0 != "\"" } : ""
                life = min(life ?? .max, DeltaSeconds.parse(argument) ?? 0)
            default:
                continue
            }
        }
        return life
    }

    /// Splits at commas outside of quoted strings.
    private static func directives(in text: String) -> [Substring] {
        var isQuoted = false
        return text.split { character in
            if character == "\"" { isQuoted.toggle() }
            return character == "," && !isQuoted
        }
    }

    private static func trimmed(_ text: Substring) -> String {
        var text = text
        while let first = text.first, first == " " || first == "\t" { text.removeFirst() }
        while let last = text.last, last == " " || last == "\t" { text.removeLast() }
        return String(text)
    }
}

/// RFC 9111, 1.2.2: seconds in decimal digits; what is too large counts as very large, never as an error.
enum DeltaSeconds {
    static func parse(_ text: String) -> Int? {
        guard !text.isEmpty, text.utf8.allSatisfy({ $0 &- 0x30 < 10 }) else { return nil }
        return Int(text) ?? .max
    }
}

/// RFC 9110, 8.8.3: an entity tag, weak or strong.
enum EntityTag {
    /// The tag if it is one, and short enough to be sent with every request.
    static func validated(_ text: String) -> String? {
        let opaque = text.hasPrefix("W/") ? text.dropFirst(2) : text[...]
        let bytes = Array(opaque.utf8)
        guard (2...256).contains(bytes.count), bytes.first == 0x22, bytes.last == 0x22 else { return nil }
        let isWellFormed = bytes.dropFirst().dropLast().allSatisfy { $0 == 0x21 || $0 >= 0x23 && $0 != 0x7F }
        return isWellFormed ? text : nil
    }
}
