extension JSONDocument {
    /// Reads `bytes` as one JSON value with nothing but white space around it.
    ///
    /// Never recurses: nesting costs an entry in `enclosing`. When it throws, the document is empty.
    package mutating func parse(_ bytes: Span<UInt8>) throws(JSONError) {
        nodes.removeAll(keepingCapacity: true)
        if !enclosing.isEmpty { enclosing.removeAll(keepingCapacity: true) }
        // Every offset and every index on the tape fits 32 bits.
        guard bytes.count <= min(limits.byteCount, Int(UInt32.max)) else {
            throw JSONError(.tooLong, at: limits.byteCount)
        }
        var reader = JSONTapeReader(limits: limits, repeatedMembers: repeatedMembers)
        swap(&reader.enclosing, &enclosing)
        defer { swap(&reader.enclosing, &enclosing) }
        do throws(JSONError) {
            // Each node has a byte of its own, so no text has more nodes than bytes.
            try nodes.append(addingCapacity: min(limits.nodeCount, bytes.count)) {
                (tape: inout OutputSpan<Node>) throws(JSONError) in
                let end = try reader.readText(bytes, to: &tape)
                guard end == bytes.count else { throw JSONError(.trailingBytes, at: end) }
            }
        } catch {
            nodes.removeAll(keepingCapacity: true)
            throw error
        }
    }
}
