internal import LLBytes
internal import LLJOSE

/// A JSON value. A literal stands for its own JSON; a member without a value is left out.
struct JSON: ExpressibleByStringInterpolation, ExpressibleByDictionaryLiteral {
    typealias Member = (name: String, value: JSON?)

    private(set) var bytes: [UInt8] = []

    init(_ write: (inout [UInt8]) -> Void) { write(&bytes) }

    init(_ text: String) { JSONWriter.string(text, to: &bytes) }

    init?(_ text: String?) {
        guard let text else { return nil }
        self.init(text)
    }

    init(_ number: some BinaryInteger) { bytes = Array("\(number)".utf8) }

    init(_ flag: Bool) { bytes.append(flag ? "true" : "false") }

    init(_ list: [JSON]) { JSONWriter.array(list, to: &bytes) { $1 += $0.bytes } }

    init(_ members: [Member]) {
        bytes.append("{")
        for case (let name, let value?) in members {
            if bytes.count > 1 { bytes.append(",") }
            bytes += JSON(name).bytes
            bytes.append(":")
            bytes += value.bytes
        }
        bytes.append("}")
    }

    init(stringLiteral text: String) { self.init(text) }

    init(dictionaryLiteral members: (String, JSON?)...) { self.init(members.map { ($0.0, $0.1) }) }

    var text: String { String(decoding: bytes, as: UTF8.self) }
}
