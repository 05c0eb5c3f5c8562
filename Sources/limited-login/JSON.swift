internal import Bytes
internal import JOSE
internal import VerificationService

/// A JSON value. A literal stands for its own JSON; a member without a value is left out.
struct JSON: ExpressibleByStringInterpolation, ExpressibleByDictionaryLiteral {
    typealias Member = (name: String, value: JSON?)

    private(set) var bytes: [UInt8] = []

    /// - Parameter write: appends JSON.
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

    /// The members of an object that are texts, and those that are arrays of texts; nil where it is no object of these.
    static func members(_ body: [UInt8]) -> (texts: [String: String], lists: [String: [String]])? {
        var document = JSONDocument()
        guard (try? document.parse(body)) != nil, document.isObject(document.root) else { return nil }
        var texts: [String: String] = [:]
        var lists: [String: [String]] = [:]
        for name in document.children(of: document.root) {
            let member = document.string(name, in: body.span)
            if document.isString(name + 1) {
                texts[member] = document.string(name + 1, in: body.span)
            } else {
                let elements = document.kind(name + 1) == .array ? document.children(of: name + 1) : nil
                guard let elements, elements.allSatisfy({ document.isString($0) }) else { return nil }
                lists[member] = elements.map { document.string($0, in: body.span) }
            }
        }
        return (texts, lists)
    }
}
