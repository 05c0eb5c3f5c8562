/// The same questions asked with an array, for callers whose bytes and document are parts of one value: a span
/// of one part would keep the other from being changed.
extension JSONDocument {
    /// Reads `bytes` as one JSON value with nothing but white space around it.
    package mutating func parse(_ bytes: [UInt8]) throws(JSONError) {
        try parse(bytes.span)
    }

    /// Appends the value of a string or name, escapes decoded, as UTF-8; of any other node, its text.
    package func appendString(_ node: Int, in bytes: [UInt8], to buffer: inout [UInt8]) {
        appendString(node, in: bytes.span, to: &buffer)
    }
}
