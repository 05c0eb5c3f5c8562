internal import LLBytes

/// A JSON object and the bytes it was read from. A member reads as nil if its type differs from the requested one.
package struct JSONObject: ~Copyable {
    package var bytes: [UInt8] = []
    package private(set) var document: JSONDocument

    /// An object without content until ``read()`` fills it.
    package init(limits: JSONLimits = JSONLimits(), marksRepeatedMembers: Bool = false) {
        document = JSONDocument(limits: limits, marksRepeatedMembers: marksRepeatedMembers)
    }

    /// Reads one JSON object without repeated members; nil for anything else.
    package init?(_ bytes: [UInt8], limits: JSONLimits = JSONLimits()) {
        self.init(limits: limits)
        self.bytes = bytes
        guard (try? read()) == true else { return nil }
    }

    /// Reads a part of a JWS: strict base64url of one JSON object without repeated members (RFC 7515 section 4); nil for
    /// anything else.
    package init?(_ token: Span<UInt8>, _ part: Range<Int>, limits: JSONLimits) {
        self.init(limits: limits)
        guard Base64URL.decode(token, part, into: &bytes), (try? read()) == true else { return nil }
    }

    /// Reads the bytes as JSON; false if the value is not an object.
    package mutating func read() throws(JSONError) -> Bool {
        try document.parse(bytes)
        return document.isObject(document.root)
    }

    /// The outermost object's members in order, each with the node of its value.
    package var members: [(name: String, node: Int)] {
        document.children(of: document.root).map { (string($0), $0 + 1) }
    }

    /// The node of a member's value in the object at `node`, or in the outermost object if `node` is nil.
    package func member(_ name: StaticString, of node: Int? = nil) -> Int? {
        document.member(name, of: node ?? document.root, in: bytes.span)
    }

    package func object(_ name: StaticString, of node: Int? = nil) -> Int? {
        member(name, of: node).flatMap { document.isObject($0) ? $0 : nil }
    }

    package func bool(_ name: StaticString, of node: Int? = nil) -> Bool? {
        guard let node = member(name, of: node) else { return nil }
        return switch document.kind(node) {
        case .true: true
        case .false: false
        default: nil
        }
    }

    package func string(_ name: StaticString, of node: Int? = nil) -> String? {
        member(name, of: node).flatMap { document.isString($0) ? string($0) : nil }
    }

    package func integer(_ name: StaticString, of node: Int? = nil) -> Int64? {
        member(name, of: node).flatMap { document.integer($0, in: bytes.span) }
    }

    /// The value of a string or name; for any other node, its text.
    package func string(_ node: Int) -> String { document.string(node, in: bytes.span) }

    package func appendString(_ node: Int, to buffer: inout [UInt8]) {
        document.appendString(node, in: bytes.span, to: &buffer)
    }

    /// The strings of the array at a node; empty if the node is not an array.
    package func strings(_ node: Int) -> [String] {
        guard document.kind(node) == .array else { return [] }
        return document.children(of: node).filter { document.isString($0) }.map { string($0) }
    }
}

/// The length of a member name with its first and last eight bytes. They identify a name of at most sixteen bytes.
struct JSONName: Equatable {
    var count: Int
    var first: UInt64
    var last: UInt64 = 0

    @inline(__always)
    init(_ bytes: Span<UInt8>, _ range: Range<Int>) {
        count = range.count
        if count >= 8 {
            first = bytes.word(at: range.lowerBound)
            last = bytes.word(at: range.upperBound - 8)
        } else {
            first = bytes.shortWord(range)
        }
    }

    @inline(__always)
    var hash: UInt64 {
        (first ^ last &* 0xC2B2_AE3D_27D4_EB4F ^ UInt64(truncatingIfNeeded: count)) &* 0x9E37_79B9_7F4A_7C15
    }
}

/// The member names that a reader knows.
package struct JSONNameTable: Sendable {
    /// Greatest length of a name in bytes. 16: two words hold it.
    package static let nameByteCount = 16

    private let names: [JSONName]

    /// A table of distinct names of at most 16 bytes of UTF-8. The names must be known when the program is written.
    package init(_ names: [String]) {
        self.names = names.map { text in
            let bytes = Array(text.utf8)
            precondition(bytes.count <= Self.nameByteCount, "a name is too long")
            return JSONName(bytes.span, bytes.indices)
        }
    }

    /// The position in the list of the name that equals the bytes in `range`; nil if no name does. A name of more than
    /// 16 bytes has another length than every name of the table. The names from `start` on come first: most texts have
    /// several in the order of the list.
    @inline(__always)
    func place(of bytes: Span<UInt8>, _ range: Range<Int>, from start: Int) -> Int? {
        let name = JSONName(bytes, range)
        return names[start...].firstIndex(of: name) ?? names[..<start].firstIndex(of: name)
    }
}

extension JSONObject {
    /// Finds the members with the names of the table. It writes the node of each one's value at the name's position in
    /// `nodes` and leaves other positions unchanged. `nodes` must have at least as many positions as the table has
    /// names.
    /// Names are compared after escape decoding. If an accepted object repeats a name, its last member counts. Call it
    /// only after ``read()`` returned true.
    package func findMembers(named table: JSONNameTable, nodes found: inout MutableSpan<UInt32>) {
        let end = document.next(document.root)
        var node = document.firstChild(document.root)
        var start = 0
        while node < end {
            if let place = place(of: node, in: table, from: start) {
                // The value fits 32 bits, as every index on the tape does.
                found[place] = UInt32(truncatingIfNeeded: node + 1)
                start = place + 1
            }
            node = document.next(node + 1)
        }
    }

    @inline(__always)
    private func place(of node: Int, in table: JSONNameTable, from start: Int) -> Int? {
        guard document.isEscaped(node) else { return table.place(of: bytes.span, document.range(node), from: start) }
        var name: [UInt8] = []
        appendString(node, to: &name)
        return table.place(of: name.span, name.indices, from: start)
    }
}
