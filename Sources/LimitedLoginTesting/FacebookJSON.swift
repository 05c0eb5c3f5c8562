internal import LLBytes
package import LLJOSE

/// JSON in the spelling of Facebook's issuer: `/` as `\/`, `@` as `\u0040`, and every character outside ASCII as
/// `\uXXXX`.
package enum FacebookJSON {
    /// A member of an object: its name, and its value as JSON text.
    package typealias Member = (name: String, json: String)

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
            default:
                let digits = String(unit, radix: 16)
                json += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            }
        }
        return json + "\""
    }

    /// An object of members with values that are JSON already.
    package static func object(_ members: [Member]) -> String {
        "{" + members.map { string($0.name) + ":" + $0.json }.joined(separator: ",") + "}"
    }

    package static func list(_ texts: [String]) -> String { "[" + texts.map(string).joined(separator: ",") + "]" }
}

package struct StandInRefusal: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}

extension JSONObject {
    /// The value as JSON, all strings in Facebook's spelling. The reader bounds the depth.
    package func respelled(_ node: Int) -> String {
        switch document.kind(node) {
        case .array: "[" + document.children(of: node).map { respelled($0) }.joined(separator: ",") + "]"
        case .object: FacebookJSON.object(document.children(of: node).map { (string($0), respelled($0 + 1)) })
        case .string: FacebookJSON.string(string(node))
        default: string(node)
        }
    }
}

extension Span<UInt8> {
    package func text(_ range: Range<Int>) -> String { String(decoding: range.map { self[$0] }, as: UTF8.self) }
}

extension String {
    package static func random(_ count: Int, of alphabet: String = "0123456789abcdef") -> String {
        let characters = Array(alphabet)
        return String((0..<count).map { _ in characters[Int(Chance.next() % UInt64(characters.count))] })
    }
}

/// The numbers behind made-up keys and texts: random ones, or after ``repeats(from:)`` a sequence that repeats.
package enum Chance {
    /// The state of SplitMix64; nil for random numbers.
    private static let state = Locked<UInt64?>(nil)

    /// Makes the process's sequence the one of a seed: the same calls then give the same numbers.
    package static func repeats(from seed: UInt64) { state.withLock { $0 = seed } }

    /// A new key, or the sequence's next one.
    package static func key(_ kind: PrivateKey.Kind) throws(OpenSSLError) -> PrivateKey {
        state.withLock { $0 != nil } ? try PrivateKey(kind, seed: next()) : try PrivateKey(kind)
    }

    package static func next() -> UInt64 {
        state.withLock { state in
            guard let last = state else { return .random(in: .min ... .max) }
            let current = last &+ 0x9E37_79B9_7F4A_7C15
            state = current
            var mixed = (current ^ current >> 30) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
            return mixed ^ mixed >> 31
        }
    }
}
