internal import Bytes
internal import JOSE

/// A JSON object and the bytes it was read from, whose members are read by their type: nil is a member that is not there, or
/// of another type.
struct JSONObject: ~Copyable {
    let bytes: [UInt8]
    var document: JSONDocument

    /// Reads one JSON object that names no member twice; nil for anything else.
    init?(_ bytes: [UInt8], limits: JSONLimits) {
        self.bytes = bytes
        document = JSONDocument(limits: limits)
        guard (try? document.parse(bytes)) != nil, document.isObject(document.root) else { return nil }
    }

    /// The node of a member's value, in the object at `node` or else the outermost.
    func member(_ name: StaticString, of node: Int? = nil) -> Int? {
        document.member(name, of: node ?? document.root, in: bytes.span)
    }

    func object(_ name: StaticString, of node: Int? = nil) -> Int? {
        member(name, of: node).flatMap { document.isObject($0) ? $0 : nil }
    }

    func bool(_ name: StaticString, of node: Int? = nil) -> Bool? {
        guard let node = member(name, of: node) else { return nil }
        return switch document.kind(node) {
        case .true: true
        case .false: false
        default: nil
        }
    }

    func string(_ name: StaticString, of node: Int? = nil) -> String? {
        text(name, of: node).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The value of a string, as UTF-8.
    func text(_ name: StaticString, of node: Int? = nil) -> [UInt8]? {
        guard let node = member(name, of: node), document.isString(node) else { return nil }
        var text: [UInt8] = []
        document.appendString(node, in: bytes, to: &text)
        return text
    }

    func integer(_ name: StaticString, of node: Int? = nil) -> Int64? {
        member(name, of: node).flatMap { document.integer($0, in: bytes.span) }
    }

    func date(_ name: StaticString, of node: Int? = nil) -> NumericDate? {
        member(name, of: node).flatMap { NumericDate(document, $0, in: bytes.span) }
    }

    /// One of Facebook's IDs: 1 to 20 digits, those of a 64-bit number, as a string or a number.
    func identifier(_ name: StaticString, of node: Int? = nil) -> String? {
        guard let node = member(name, of: node), document.isString(node) || document.isNumber(node) else { return nil }
        // Of a number this is its text: a sign, a fraction or an exponent is no digit.
        let text = document.string(node, in: bytes.span)
        let isID = (1...20).contains(text.utf8.count) && text.utf8.allSatisfy { ASCII.digit($0) != nil }
        return isID ? text : nil
    }

    /// The strings of an array; none where it is no array.
    func strings(_ name: StaticString, of node: Int? = nil) -> [String] {
        guard let list = member(name, of: node), document.kind(list) == .array else { return [] }
        var strings: [String] = []
        for element in document.children(of: list) where document.isString(element) {
            strings.append(document.string(element, in: bytes.span))
        }
        return strings
    }
}
