/// A parsed JSON text as a flat tape of nodes over the caller's bytes.
///
/// One document serves many texts: `parse` forgets the previous text but keeps the memory. Nodes are
/// named by their index; every question takes the same bytes that were parsed.
package struct JSONDocument: ~Copyable {
    /// What kind of value a node is. A member name is a node of its own, directly before its value.
    package enum Kind: UInt8, Sendable {
        case null, `true`, `false`, number, string, array, object, name
    }

    /// One value or member name.
    struct Node {
        /// The text of the value; of a string or name, what stands between the quotes.
        var start: UInt32
        var end: UInt32
        /// The index after this node's last descendant.
        var next: UInt32
        var kind: Kind
        /// Whether a string or name holds at least one escape.
        var isEscaped: Bool
    }

    var nodes: [Node] = []
    let limits: JSONLimits

    package init(limits: JSONLimits = JSONLimits()) {
        self.limits = limits
    }

    /// Reads `bytes` as one JSON value with nothing after it but white space.
    package mutating func parse(_ bytes: Span<UInt8>) throws(JSONError) {
        throw JSONError(.empty, at: 0)
    }

    /// The index of the outermost value.
    package var root: Int { 0 }

    /// The number of nodes.
    package var count: Int { nodes.count }

    /// The kind of a node.
    package func kind(_ node: Int) -> Kind { nodes[node].kind }

    /// Where a node's text stands; of a string or name, without the quotes.
    package func range(_ node: Int) -> Range<Int> { 0..<0 }

    /// Whether a string or name holds an escape, so that its text is not its value.
    package func isEscaped(_ node: Int) -> Bool { nodes[node].isEscaped }

    /// The index after a node and all it contains.
    package func next(_ node: Int) -> Int { Int(nodes[node].next) }

    /// The first name of an object or first element of an array; equal to `next(node)` when there is none.
    /// The value of the name at `n` is the node `n + 1`, and the following name is `next(n + 1)`.
    package func firstChild(_ node: Int) -> Int { node + 1 }

    /// The value of the object's member with this name.
    package func member(_ name: StaticString, of object: Int, in bytes: Span<UInt8>) -> Int? { nil }

    /// Whether a string or name has exactly this value, after escape decoding.
    package func string(_ node: Int, equals value: StaticString, in bytes: Span<UInt8>) -> Bool { false }

    /// Whether a string or name has exactly these UTF-8 bytes as its value, after escape decoding.
    package func string(_ node: Int, equals value: Span<UInt8>, in bytes: Span<UInt8>) -> Bool { false }

    /// Appends the value of a string or name, escapes decoded, as UTF-8.
    package func appendString(_ node: Int, in bytes: Span<UInt8>, to buffer: inout [UInt8]) {}

    /// The value of a string or name.
    package func string(_ node: Int, in bytes: Span<UInt8>) -> String { "" }

    /// The value of a number as a double; nil when the node is no number.
    package func double(_ node: Int, in bytes: Span<UInt8>) -> Double? { nil }

    /// The value of a number spelt as a plain integer that fits 64 bits; else nil.
    package func integer(_ node: Int, in bytes: Span<UInt8>) -> Int64? { nil }
}
