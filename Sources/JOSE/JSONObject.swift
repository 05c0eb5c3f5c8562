internal import Bytes

/// A JSON object and the bytes it was read from. Of its members, those of another type than the one asked for are nil.
package struct JSONObject: ~Copyable {
    package var bytes: [UInt8] = []
    package private(set) var document: JSONDocument

    /// An object that is still to be read.
    package init(limits: JSONLimits = JSONLimits(), marksRepeatedMembers: Bool = false) {
        document = JSONDocument(limits: limits, marksRepeatedMembers: marksRepeatedMembers)
    }

    /// Reads one JSON object that names no member twice; nil for anything else.
    package init?(_ bytes: [UInt8], limits: JSONLimits = JSONLimits()) {
        self.init(limits: limits)
        self.bytes = bytes
        guard (try? read()) == true else { return nil }
    }

    /// Reads the bytes as JSON; false where it is no object.
    package mutating func read() throws(JSONError) -> Bool {
        try document.parse(bytes)
        return document.isObject(document.root)
    }

    /// The outermost object's members in their order, each with the node of its value.
    package var members: [(name: String, node: Int)] {
        document.children(of: document.root).map { (string($0), $0 + 1) }
    }

    /// The node of a member's value, in the object at `node` or else the outermost.
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

    /// The value of a string or name; of any other node, its text.
    package func string(_ node: Int) -> String { document.string(node, in: bytes.span) }

    /// Appends the same as UTF-8.
    package func appendString(_ node: Int, to buffer: inout [UInt8]) {
        document.appendString(node, in: bytes.span, to: &buffer)
    }

    /// The strings of the array at a node; none where it is no array.
    package func strings(_ node: Int) -> [String] {
        guard document.kind(node) == .array else { return [] }
        return document.children(of: node).filter { document.isString($0) }.map { string($0) }
    }
}

/// The names of members that a reader knows, found by their bytes: two words looked at and one slot, however many there
/// are.
package struct JSONNameTable: Sendable {
    /// The bytes of a name, told apart by its length and its first and last eight: with at most sixteen, that is all.
    private struct Name: Equatable {
        var count = 0
        var first: UInt64 = 0
        var last: UInt64 = 0

        /// The name in `range`; nil when it is longer than any that is known.
        @inline(__always)
        init?(_ bytes: Span<UInt8>, _ range: Range<Int>) {
            guard range.count <= JSONNameTable.nameByteCount else { return nil }
            count = range.count
            if count >= 8 {
                first = bytes.word(at: range.lowerBound)
                last = bytes.word(at: range.upperBound - 8)
            } else {
                first = bytes.shortWord(range)
            }
        }

        init() {}

        /// The slot that is its first choice, of 64.
        @inline(__always)
        var slot: Int {
            let mix = first ^ last &* 0xC2B2_AE3D_27D4_EB4F ^ UInt64(truncatingIfNeeded: count)
            return Int(truncatingIfNeeded: (mix &* 0x9E37_79B9_7F4A_7C15) >> 58)
        }
    }

    /// Greatest length of a name in bytes. 16: two words hold it.
    package static let nameByteCount = 16
    /// Greatest number of names. 32: half of the slots stay free, so that a search ends soon.
    package static let nameCount = 32

    /// For each slot its name and the name's place in the list; a count of zero marks a free slot.
    private var slots: [(name: Name, place: Int)]

    /// A table of different names, each of 1 to 16 bytes of UTF-8, at most 32 of them: known when the program is written.
    package init(_ names: [String]) {
        precondition(names.count <= Self.nameCount, "too many names")
        slots = Array(repeating: (Name(), 0), count: 64)
        for (place, text) in names.enumerated() {
            let bytes = Array(text.utf8)
            guard let name = Name(bytes.span, 0..<bytes.count), name.count > 0 else {
                preconditionFailure("a name is empty or too long")
            }
            var slot = name.slot
            while slots[slot].name.count > 0 { slot = (slot + 1) % 64 }
            slots[slot] = (name, place)
        }
    }

    /// The place of the name that is exactly the bytes in `range`; nil when it is none of the list.
    @inline(__always)
    func place(of bytes: Span<UInt8>, _ range: Range<Int>) -> Int? {
        guard let name = Name(bytes, range) else { return nil }
        var slot = name.slot
        // Ends: at least half of the slots are free.
        while slots[slot].name.count > 0 {
            if slots[slot].name == name { return slots[slot].place }
            slot = (slot + 1) % 64
        }
        return nil
    }
}

extension JSONObject {
    /// Notes for each member whose name is in the table the node of its value, at the name's place; other places are left as
    /// they are. `nodes` has at least as many places as the table has names.
    ///
    /// Names are compared after escape decoding. Of a member that is named twice, where that is not refused, the last
    /// counts. The bytes were read and are an object: ``read()`` was true.
    package func findMembers(named table: JSONNameTable, nodes found: inout MutableSpan<UInt32>) {
        let bytes = bytes.span
        let end = document.next(document.root)
        var node = document.firstChild(document.root)
        while node < end {
            let name = document.nodes[node]
            let place =
                name.isEscaped ? decodedPlace(of: name.range, in: table) : table.place(of: bytes, name.range)
            // Fits 32 bits, as every index on the tape.
            if let place { found[place] = UInt32(truncatingIfNeeded: node + 1) }
            node = document.next(node + 1)
        }
    }

    private func decodedPlace(of range: Range<Int>, in table: JSONNameTable) -> Int? {
        var name: [UInt8] = []
        var reader = JSONStringReader(range)
        while let byte = reader.next(in: bytes.span) {
            guard name.count < JSONNameTable.nameByteCount else { return nil }
            name.append(byte)
        }
        return table.place(of: name.span, 0..<name.count)
    }
}
