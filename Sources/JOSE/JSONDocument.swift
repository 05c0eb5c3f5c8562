/// A parsed JSON text (RFC 8259) as a flat tape of nodes over the caller's bytes.
///
/// One document serves many texts: `parse` forgets the previous text but keeps the memory. Nodes are
/// named by their index in the order of the text; every question about a value takes the same bytes that
/// were parsed. A member name is a node of its own, directly before the node of its value.
package struct JSONDocument: ~Copyable {
    /// What a node is.
    package enum Kind: UInt8, Sendable {
        case null, `true`, `false`, number, string, array, object, name
    }

    /// What becomes of an object that names a member twice (RFC 8259 section 4 leaves it open).
    package enum RepeatedMembers: Sendable {
        /// The whole text is refused: what RFC 7515 section 4 and RFC 7519 section 4 allow for headers and claims.
        case refused
        /// The object is marked, so that one bad JWK need not spoil its set (RFC 7517 section 5).
        case marked
    }

    /// One value or member name: 16 bytes.
    @usableFromInline
    struct Node {
        /// Where the text of the value starts; of a string or name, after the opening quote.
        @usableFromInline var start: UInt32
        /// Where it ends; of a string or name, before the closing quote.
        @usableFromInline var end: UInt32
        /// The index after the last node inside this one.
        @usableFromInline var next: UInt32
        @usableFromInline var kind: Kind
        /// Whether a string or name holds at least one escape.
        @usableFromInline var isEscaped = false
        /// Whether an object names a member twice.
        var isRepeating = false

        /// From `start` to `end`.
        @inlinable @inline(__always)
        var range: Range<Int> {
            // The reader writes `start <= end` into every node.
            Int(start)..<max(Int(start), Int(end))
        }
    }

    @usableFromInline var nodes: [Node] = []
    /// The objects and arrays that enclose the innermost open one; empty between calls of `parse`.
    var enclosing: [JSONFrame] = []
    let limits: JSONLimits
    let repeatedMembers: RepeatedMembers

    /// A document that holds nothing yet.
    package init(limits: JSONLimits = JSONLimits(), repeatedMembers: RepeatedMembers = .refused) {
        self.limits = limits
        self.repeatedMembers = repeatedMembers
    }

    /// The index of the outermost value.
    @inlinable @inline(__always)
    package var root: Int { 0 }

    /// The number of nodes; zero unless the last `parse` succeeded.
    @inlinable @inline(__always)
    package var count: Int { nodes.count }

    /// The kind of a node.
    @inlinable @inline(__always)
    package func kind(_ node: Int) -> Kind { nodes[node].kind }

    /// Whether a node is a string value.
    @inlinable @inline(__always)
    package func isString(_ node: Int) -> Bool {
        // A pattern is compared in the caller's own code; `==` would be called.
        if case .string = nodes[node].kind { true } else { false }
    }

    /// Whether a node is an object.
    @inlinable @inline(__always)
    package func isObject(_ node: Int) -> Bool {
        if case .object = nodes[node].kind { true } else { false }
    }

    /// Whether a node is a number.
    @inlinable @inline(__always)
    package func isNumber(_ node: Int) -> Bool {
        if case .number = nodes[node].kind { true } else { false }
    }

    /// Where a node's text stands; of a string or name, without the quotes.
    @inlinable @inline(__always)
    package func range(_ node: Int) -> Range<Int> { nodes[node].range }

    /// Whether a string or name holds an escape, so that its text is not its value.
    @inlinable @inline(__always)
    package func isEscaped(_ node: Int) -> Bool { nodes[node].isEscaped }

    /// Whether an object names a member twice; possible only where repeated members are marked.
    package func isRepeating(_ node: Int) -> Bool { nodes[node].isRepeating }

    /// The index after a node and all it contains.
    @inlinable @inline(__always)
    package func next(_ node: Int) -> Int { Int(nodes[node].next) }

    /// The first name of an object or first element of an array; equal to `next(node)` when there is none.
    ///
    /// The value of the name at `n` is the node `n + 1`, and the following name is `next(n + 1)`.
    @inlinable @inline(__always)
    package func firstChild(_ node: Int) -> Int { node + 1 }

    /// The value of the object's member with this name; nil when there is none or the node is no object.
    package func member(_ name: StaticString, of object: Int, in bytes: Span<UInt8>) -> Int? {
        guard kind(object) == .object else { return nil }
        let end = next(object)
        var node = firstChild(object)
        while node < end {
            if string(node, equals: name, in: bytes) { return node + 1 }
            node = next(node + 1)
        }
        return nil
    }

    /// The number of elements in an array or members in an object.
    package func childCount(_ container: Int) -> Int {
        let step = kind(container) == .object ? 1 : 0
        var count = 0
        var node = firstChild(container)
        while node < next(container) {
            count += 1
            node = next(node + step)
        }
        return count
    }
}
