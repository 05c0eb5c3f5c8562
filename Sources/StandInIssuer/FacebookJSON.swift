/// JSON as Facebook's issuer spells it: `/` as `\/`, `@` as `\u0040`, and everything outside ASCII as `\uXXXX`.
package enum FacebookJSON {
    /// A member of an object: its name, and its value as JSON text.
    package typealias Member = (name: String, json: String)

    /// A string with its quotes.
    package static func string(_ text: String) -> String {
        var json = "\""
        for unit in text.utf16 {
            switch unit {
            case 0x22: json += "\\\""
            case 0x5C: json += "\\\\"
            case 0x2F: json += "\\/"
            case 0x0A: json += "\\n"
            case 0x0D: json += "\\r"
            case 0x09: json += "\\t"
            case 0x20..<0x7F where unit != 0x40: json.unicodeScalars.append(Unicode.Scalar(UInt8(unit)))
            default: json += escape(unit)
            }
        }
        return json + "\""
    }

    /// An object of members whose values are JSON already.
    package static func object(_ members: [Member]) -> String {
        "{" + members.map { string($0.name) + ":" + $0.json }.joined(separator: ",") + "}"
    }

    private static func escape(_ unit: UInt16) -> String {
        let digits = String(unit, radix: 16)
        return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    }
}
