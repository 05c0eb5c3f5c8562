extension JSONDocument {
    /// Whether a string or name has exactly this value, after escape decoding.
    package func string(_ node: Int, equals value: StaticString, in bytes: Span<UInt8>) -> Bool {
        let node = nodes[node]
        guard node.kind == .string || node.kind == .name else { return false }
        if !node.isEscaped { return value.matches(bytes, node.range) }
        var reader = JSONStringReader(node.range)
        for index in 0..<value.utf8CodeUnitCount where reader.next(in: bytes) != value.byte(at: index) {
            return false
        }
        return reader.next(in: bytes) == nil
    }

    /// Whether a string or name has exactly these UTF-8 bytes as its value, after escape decoding.
    ///
    /// Stops at the first difference: secrets are compared elsewhere.
    package func string(_ node: Int, equals value: Span<UInt8>, in bytes: Span<UInt8>) -> Bool {
        guard kind(node) == .string || kind(node) == .name else { return false }
        let range = range(node)
        if !isEscaped(node) { return bytes.areEqual(range, to: value) }
        var reader = JSONStringReader(range)
        for index in 0..<value.count where reader.next(in: bytes) != value[index] { return false }
        return reader.next(in: bytes) == nil
    }

    /// Appends the value of a string or name, escapes decoded, as UTF-8; of any other node, its text.
    package func appendString(_ node: Int, in bytes: Span<UInt8>, to buffer: inout [UInt8]) {
        let range = range(node)
        guard isEscaped(node) else {
            buffer.append(addingCapacity: range.count) { (output: inout OutputSpan<UInt8>) in
                output.append(bytes, range)
            }
            return
        }
        // No escape is shorter than what it stands for: `\u0080` is two bytes of UTF-8, a pair of twelve is four.
        buffer.append(addingCapacity: range.count) { (output: inout OutputSpan<UInt8>) in
            var reader = JSONStringReader(range)
            while let byte = reader.next(in: bytes) { output.append(byte) }
        }
    }

    /// The value of a string or name; of any other node, its text.
    package func string(_ node: Int, in bytes: Span<UInt8>) -> String {
        var buffer: [UInt8] = []
        appendString(node, in: bytes, to: &buffer)
        return String(decoding: buffer, as: UTF8.self)
    }

    /// The value of a number as the nearest double, always finite; nil when the node is no number.
    package func double(_ node: Int, in bytes: Span<UInt8>) -> Double? {
        guard kind(node) == .number else { return nil }
        // Up to 2⁵³ every integer is a double exactly, so the common case needs no decimal conversion.
        if let integer = JSONScanner.integer(bytes, range(node)), integer.magnitude <= 1 << 53, integer != 0 {
            return Double(integer)
        }
        return JSONScanner.double(bytes, range(node))
    }

    /// The value of a number spelt as a plain integer of 64 bits; else nil.
    package func integer(_ node: Int, in bytes: Span<UInt8>) -> Int64? {
        guard kind(node) == .number else { return nil }
        return JSONScanner.integer(bytes, range(node))
    }
}
