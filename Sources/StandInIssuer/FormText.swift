internal import Bytes

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
        let bytes = Array(text.utf8)
        // A malformed escape stays as it is.
        return String(decoding: PercentEncoding.decode(bytes.span, bytes.indices, isForm: true) ?? bytes, as: UTF8.self)
    }
}
