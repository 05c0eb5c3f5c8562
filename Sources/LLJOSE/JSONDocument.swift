internal import LLBytes

/// A parsed JSON text (RFC 8259) as a flat tape of nodes over the caller's bytes.
/// One document serves many texts: `parse` forgets the previous text but keeps the memory. A node's name is its index
/// in the order of the text. Every question about a value takes the same bytes that were parsed. A member name is a
/// node of its own, directly before the node of its value.
package struct JSONDocument: ~Copyable {
    package enum Kind: UInt8, Sendable {
        case null, `true`, `false`, number, string, array, object, name
    }

    /// One value or member name: 16 bytes.
    @usableFromInline
    struct Node {
        /// The start of the value's text. A string or name starts after the opening quote.
        @usableFromInline var start: UInt32
        /// The end of the value's text. A string or name ends before the closing quote.
        @usableFromInline var end: UInt32
        /// The index after the last node inside this one.
        @usableFromInline var next: UInt32
        @usableFromInline var kind: Kind
        @usableFromInline var isEscaped = false
        var isRepeating = false

        @inlinable @inline(__always)
        var range: Range<Int> {
            // The reader writes `start <= end` into every node.
            Int(start)..<max(Int(start), Int(end))
        }
    }

    @usableFromInline var nodes: [Node] = []
    let limits: JSONLimits
    let marksRepeatedMembers: Bool

    /// - Parameter marksRepeatedMembers: true marks an object that names a member twice, so that one bad JWK need not
    ///   spoil its set (RFC 7517 section 5). False refuses the whole text, as RFC 7515 section 4 and RFC 7519 section 4
    ///   allow for headers and claims. RFC 8259 section 4 leaves it open.
    package init(limits: JSONLimits = JSONLimits(), marksRepeatedMembers: Bool = false) {
        self.limits = limits
        self.marksRepeatedMembers = marksRepeatedMembers
    }

    @inlinable @inline(__always)
    package var root: Int { 0 }

    /// The number of nodes; zero unless the last `parse` succeeded.
    @inlinable @inline(__always)
    package var count: Int { nodes.count }

    @inlinable @inline(__always)
    package func kind(_ node: Int) -> Kind { nodes[node].kind }

    @inlinable @inline(__always)
    package func isString(_ node: Int) -> Bool {
        // A pattern match is inlined into the caller's code; `==` would be a call.
        if case .string = nodes[node].kind { true } else { false }
    }

    @inlinable @inline(__always)
    package func isObject(_ node: Int) -> Bool { if case .object = nodes[node].kind { true } else { false } }

    @inlinable @inline(__always)
    package func isNumber(_ node: Int) -> Bool { if case .number = nodes[node].kind { true } else { false } }

    /// The range of a node's text. A string's or name's range excludes the quotes.
    @inlinable @inline(__always)
    package func range(_ node: Int) -> Range<Int> { nodes[node].range }

    /// The range of a string's text without its quotes; nil if the node is not a string.
    package func stringRange(_ node: Int) -> Range<Int>? {
        let node = nodes[node]
        guard case .string = node.kind else { return nil }
        return node.range
    }

    /// True if a string or name holds an escape, so that its text differs from its value.
    @inlinable @inline(__always)
    package func isEscaped(_ node: Int) -> Bool { nodes[node].isEscaped }

    /// True if an object names a member twice. Only a document that marks repeated members reports it.
    package func isRepeating(_ node: Int) -> Bool { nodes[node].isRepeating }

    /// The index after a node and all it contains.
    @inlinable @inline(__always)
    package func next(_ node: Int) -> Int { Int(nodes[node].next) }

    /// The first name of an object or the first element of an array; equal to `next(node)` if there is none.
    /// The value of the name at `n` is the node `n + 1`, and the following name is `next(n + 1)`.
    @inlinable @inline(__always)
    package func firstChild(_ node: Int) -> Int { node + 1 }

    /// The value of the object's member with this name. Nil if there is no such member, if the node is not an object,
    /// or if the document is empty.
    package func member(_ name: StaticString, of object: Int, in bytes: Span<UInt8>) -> Int? {
        guard object < count, isObject(object) else { return nil }
        let end = next(object)
        var node = firstChild(object)
        while node < end {
            if string(node, equals: name, in: bytes) { return node + 1 }
            node = next(node + 1)
        }
        return nil
    }

    /// All names of an object or all elements of an array in order, starting with ``firstChild(_:)``.
    package func children(of container: Int) -> [Int] {
        let step = kind(container) == .object ? 1 : 0
        var children: [Int] = []
        var node = firstChild(container)
        while node < next(container) {
            children.append(node)
            node = next(node + step)
        }
        return children
    }
}

extension JSONDocument {
    /// Parses an array of bytes. It serves a caller that keeps bytes and document in one value: a span of the bytes
    /// would prevent changes to the document.
    package mutating func parse(_ bytes: [UInt8]) throws(JSONError) { try parse(bytes.span) }

    /// True if a string or name has exactly this value after escape decoding.
    /// It stops at the first difference, so do not compare secrets with it.
    @inline(__always)
    package func string(_ node: Int, equals value: StaticString, in bytes: Span<UInt8>) -> Bool {
        let node = nodes[node]
        switch node.kind {
        case .string, .name: break
        default: return false
        }
        guard node.isEscaped else { return bytes.equal(node.range, value) }
        // An escape takes six bytes for each of its value's at most: a longer text is not decoded at each question.
        guard node.range.count <= 6 * value.utf8CodeUnitCount else { return false }
        var decoded: [UInt8] = []
        JSONText.append(bytes, node.range, to: &decoded)
        return decoded.span.equal(decoded.indices, value)
    }

    /// Appends the value of a string or name as UTF-8 with escapes decoded. For any other node it appends the node's
    /// text.
    package func appendString(_ node: Int, in bytes: Span<UInt8>, to buffer: inout [UInt8]) {
        guard isEscaped(node) else { return buffer.append(bytes, range(node)) }
        JSONText.append(bytes, range(node), to: &buffer)
    }

    /// The value of a string or name; for any other node, its text.
    package func string(_ node: Int, in bytes: Span<UInt8>) -> String { JSONText.value(bytes, range(node)) }

    /// The value of a number as the nearest double, always finite; nil if the node is not a number.
    package func double(_ node: Int, in bytes: Span<UInt8>) -> Double? {
        guard kind(node) == .number else { return nil }
        return JSONScanner.double(bytes, range(node))
    }

    /// The value of a number written as an integer of at most 18 digits; nil for anything else.
    package func integer(_ node: Int, in bytes: Span<UInt8>) -> Int64? {
        guard kind(node) == .number else { return nil }
        let range = range(node)
        let isNegative = bytes[range.lowerBound] == UInt8(ascii: "-")
        guard let magnitude = DecimalNumber.parse(bytes, isNegative ? range.dropFirst() : range) else { return nil }
        return Int64(isNegative ? -magnitude : magnitude)
    }

    /// The value of a whole number; nil for anything else. JSON may write the same number as `21` or `21.0` (RFC 8259
    /// section 6).
    package func wholeNumber(_ node: Int, in bytes: Span<UInt8>) -> Int? {
        if let integer = integer(node, in: bytes) { return Int(integer) }
        return double(node, in: bytes).flatMap { Int(exactly: $0) }
    }
}

/// The bounds of the JSON reader. A text beyond a bound is refused, never shortened.
package struct JSONLimits: Equatable, Sendable {
    /// Greatest length of the whole text in bytes. 64 KiB: the size of the largest JWK Set that is read.
    package var byteCount: Int
    /// Greatest nesting of objects and arrays. 16: real tokens and key sets need 3.
    package var depth: Int
    /// Greatest number of members in one object. 256: it bounds the search for repeated names.
    package var memberCount: Int
    /// Greatest number of values and names in the text. 16,384: it bounds the tape to 256 KiB.
    package var nodeCount: Int
    /// Greatest length of one number in bytes. 64: three times the length that a double needs.
    static let numberByteCount = 64

    package init(byteCount: Int = 65_536, depth: Int = 16, memberCount: Int = 256, nodeCount: Int = 16_384) {
        self.byteCount = byteCount
        self.depth = depth
        self.memberCount = memberCount
        self.nodeCount = nodeCount
    }
}

/// Why this project does not accept a text as JSON (RFC 8259, I-JSON RFC 7493).
package struct JSONError: Error, Equatable, Sendable, CustomStringConvertible {
    package enum Reason: String, Equatable, Sendable {
        case empty = "the text is empty"
        case tooLong = "the text is too long"
        case byteOrderMark = "the text starts with a byte-order mark"
        case unexpectedByte = "a byte stands where no JSON grammar allows it"
        case truncated = "the text ends too early"
        case trailingBytes = "bytes follow the value"
        case tooDeep = "arrays and objects are nested too deeply"
        case tooManyMembers = "an object has too many members"
        case tooManyNodes = "the text holds too many values"
        case repeatedMember = "an object names a member twice"
        case controlCharacter = "a string holds an unescaped control character"
        case invalidEscape = "a string holds an escape that does not exist"
        case loneSurrogate = "a string holds half of a surrogate pair"
        case invalidUTF8 = "a string is not UTF-8"
        case invalidNumber = "a number is not spelt as JSON spells numbers"
        case numberOutOfRange = "a number is too long or too great"
    }

    package let reason: Reason
    package let offset: Int

    package init(_ reason: Reason, at offset: Int) {
        self.reason = reason
        self.offset = offset
    }

    package var description: String { "\(reason.rawValue), at byte \(offset)" }
}
