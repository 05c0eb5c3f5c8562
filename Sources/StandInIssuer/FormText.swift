/// Reads `application/x-www-form-urlencoded` text: a query, or a form.
enum FormText {
    /// The parameters by name; of one that repeats itself, the last.
    static func parameters(of text: String) -> [String: String] {
        var parameters: [String: String] = [:]
        for part in text.split(separator: "&") {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = pair.first else { continue }
            parameters[decoded(name)] = pair.count > 1 ? decoded(pair[1]) : ""
        }
        return parameters
    }

    private static func decoded(_ text: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
            {
                bytes.append(value)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
