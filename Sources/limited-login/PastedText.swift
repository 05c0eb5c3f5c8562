/// What people paste along with a token, or in its place.
struct PastedText {
    private let bytes: [UInt8]

    init(_ token: [UInt8]) { bytes = token }

    /// The way out of a mistake in copying; nil where none is seen.
    var cure: String? {
        guard let first = bytes.first else { return nil }
        let text = String(decoding: bytes.prefix(64), as: UTF8.self)
        if text.lowercased().hasPrefix("bearer ") || text.lowercased().hasPrefix("authorization:") {
            return "Leave out what stands before the token: it begins with eyJ."
        }
        if first == UInt8(ascii: "\"") || first == UInt8(ascii: "'") {
            return "Take away the quotation marks around the token."
        }
        if text.lowercased().hasPrefix("optional(") {
            return "The app printed an optional: unwrap AuthenticationToken.current?.tokenString before it is sent."
        }
        if first == UInt8(ascii: "{") { return "Pass the token itself, which begins with eyJ, not the JSON around it." }
        if bytes.contains(where: { $0 <= 0x20 }) {
            return "Join the lines: the token is one word, and this text has white space within."
        }
        if contains("%2E") || contains("%2e") { return "Undo the percent-encoding: %2E stands for a full stop." }
        if bytes.contains(UInt8(ascii: "=")) || bytes.contains(UInt8(ascii: "+")) || bytes.contains(UInt8(ascii: "/")) {
            return "Somebody encoded this anew as plain base64: pass the token on unchanged, in base64url without '='."
        }
        if contains("...") || contains("…") { return "Copy the whole token: what shows it has cut out its middle." }
        return nil
    }

    private func contains(_ text: String) -> Bool {
        let pattern = Array(text.utf8)
        guard bytes.count >= pattern.count else { return false }
        return (0...(bytes.count - pattern.count)).contains { bytes[$0..<$0 + pattern.count].elementsEqual(pattern) }
    }
}
