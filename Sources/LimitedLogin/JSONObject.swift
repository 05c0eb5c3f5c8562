internal import Bytes
internal import JOSE

/// A JSON object and the bytes it was read from. Of its members, those of another type than the one asked for are nil.
struct JSONObject: ~Copyable {
    var bytes: [UInt8] = []
    private(set) var document: JSONDocument

    /// An object that is still to be read.
    init(limits: JSONLimits) { document = JSONDocument(limits: limits) }

    /// Reads one JSON object that names no member twice; nil for anything else.
    init?(_ bytes: [UInt8], limits: JSONLimits) {
        self.init(limits: limits)
        self.bytes = bytes
        guard (try? read()) == true else { return nil }
    }

    /// Reads the bytes as JSON that names no member twice; false where it is no object.
    mutating func read() throws(JSONError) -> Bool {
        try document.parse(bytes)
        return document.isObject(document.root)
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
        let text = string(node)
        let isID = (1...20).contains(text.utf8.count) && text.utf8.allSatisfy { ASCII.digit($0) != nil }
        return isID ? text : nil
    }

    func string(_ node: Int) -> String { document.string(node, in: bytes.span) }

    /// The strings of the array at a node; none where it is no array.
    func strings(_ node: Int) -> [String] {
        guard document.kind(node) == .array else { return [] }
        return document.children(of: node).filter { document.isString($0) }.map { string($0) }
    }

    /// `{"min": number, "max": number}`; a member of the wrong type drops the whole.
    func ageRange(_ node: Int) -> AgeRange? {
        guard let minimum = bound("min", of: node), let maximum = bound("max", of: node) else { return nil }
        return AgeRange(minimum: minimum, maximum: maximum)
    }

    /// A whole number, or nothing; nil for any other value.
    private func bound(_ name: StaticString, of node: Int) -> Int?? {
        guard let bound = member(name, of: node) else { return .some(nil) }
        return document.wholeNumber(bound, in: bytes.span).map { .some($0) }
    }
}
