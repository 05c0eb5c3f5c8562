extension JSONDocument {
    /// Reads `bytes` as one JSON value with nothing but white space around it.
    ///
    /// Never recurses: nesting costs an entry in `enclosing`. When it throws, the document is empty.
    package mutating func parse(_ bytes: Span<UInt8>) throws(JSONError) {
        nodes.removeAll(keepingCapacity: true)
        enclosing.removeAll(keepingCapacity: true)
        do throws(JSONError) {
            let end = try parseText(bytes)
            guard end == bytes.count else { throw JSONError(.trailingBytes, at: end) }
        } catch {
            nodes.removeAll(keepingCapacity: true)
            throw error
        }
    }

    /// Reads one value with the white space around it; returns the offset behind both.
    private mutating func parseText(_ bytes: Span<UInt8>) throws(JSONError) -> Int {
        guard bytes.count <= limits.byteCount else { throw JSONError(.tooLong, at: limits.byteCount) }
        // RFC 8259 section 8.1: a byte-order mark may be refused.
        if bytes.count >= 3, bytes[0] == 0xEF, bytes[1] == 0xBB, bytes[2] == 0xBF {
            throw JSONError(.byteOrderMark, at: 0)
        }
        var offset = JSONScanner.skipWhitespace(bytes, from: 0)
        guard offset < bytes.count else { throw JSONError(.empty, at: offset) }
        // The frame of the innermost open object or array; the root stands in none.
        var frame = JSONFrame(node: -1, isObject: false)
        while true {
            let value = try openOrAppendValue(bytes, at: offset, frame: &frame)
            offset = value.end
            guard value.isComplete else { continue }
            guard try closeFinished(bytes, offset: &offset, frame: &frame) else { return offset }
        }
    }

    /// Reads a scalar or an empty container whole, or opens a container up to its first value.
    ///
    /// Returns the offset behind what was read, and whether that was a whole value; if not, the first value of
    /// the container that was opened is at the offset.
    private mutating func openOrAppendValue(
        _ bytes: Span<UInt8>,
        at start: Int,
        frame: inout JSONFrame
    ) throws(JSONError) -> (end: Int, isComplete: Bool) {
        guard start < bytes.count else { throw JSONError(.truncated, at: start) }
        let byte = bytes[start]
        if byte == UInt8(ascii: "\"") {
            return (try appendString(bytes, at: start, kind: .string), true)
        }
        guard byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") else {
            return (try appendScalar(bytes, at: start, first: byte), true)
        }
        let isObject = byte == UInt8(ascii: "{")
        try append(Node(start: 0, end: 0, next: 0, kind: isObject ? .object : .array), from: start, to: start)
        let inside = JSONScanner.skipWhitespace(bytes, from: start + 1)
        guard inside < bytes.count else { throw JSONError(.truncated, at: inside) }
        // `enclosing` holds one frame less than the depth once this container is open.
        guard enclosing.count < limits.depth else { throw JSONError(.tooDeep, at: start) }
        if bytes[inside] == (isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) {
            finish(nodes.count - 1, at: inside + 1)
            return (inside + 1, true)
        }
        enclosing.append(frame)
        frame = JSONFrame(node: nodes.count - 1, isObject: isObject)
        return (isObject ? try appendName(bytes, at: inside, frame: &frame) : inside, false)
    }

    /// After a value: closes every container that ends here and moves to the next value.
    ///
    /// Returns false when the root is complete; `offset` is then behind its white space.
    private mutating func closeFinished(
        _ bytes: Span<UInt8>,
        offset: inout Int,
        frame: inout JSONFrame
    ) throws(JSONError) -> Bool {
        while true {
            offset = JSONScanner.skipWhitespace(bytes, from: offset)
            if frame.node < 0 { return false }
            guard offset < bytes.count else { throw JSONError(.truncated, at: offset) }
            let byte = bytes[offset]
            if byte == UInt8(ascii: ",") {
                offset = JSONScanner.skipWhitespace(bytes, from: offset + 1)
                if frame.isObject { offset = try appendName(bytes, at: offset, frame: &frame) }
                return true
            }
            guard byte == (frame.isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) else {
                throw JSONError(.unexpectedByte, at: offset)
            }
            offset += 1
            finish(frame.node, at: offset)
            guard let outer = enclosing.popLast() else { throw JSONError(.unexpectedByte, at: offset) }
            frame = outer
        }
    }

    /// Reads a member name and its colon; returns the offset of the value.
    private mutating func appendName(
        _ bytes: Span<UInt8>,
        at start: Int,
        frame: inout JSONFrame
    ) throws(JSONError) -> Int {
        guard start < bytes.count else { throw JSONError(.truncated, at: start) }
        guard bytes[start] == UInt8(ascii: "\"") else { throw JSONError(.unexpectedByte, at: start) }
        let end = try appendString(bytes, at: start, kind: .name)
        frame.memberCount += 1
        guard frame.memberCount <= limits.memberCount else { throw JSONError(.tooManyMembers, at: start) }
        if isRepeated(nodes.count - 1, in: &frame, bytes) {
            guard repeatedMembers == .marked else { throw JSONError(.repeatedMember, at: start) }
            nodes[frame.node].isRepeating = true
        }
        let colon = JSONScanner.skipWhitespace(bytes, from: end)
        guard colon < bytes.count else { throw JSONError(.truncated, at: colon) }
        guard bytes[colon] == UInt8(ascii: ":") else { throw JSONError(.unexpectedByte, at: colon) }
        return JSONScanner.skipWhitespace(bytes, from: colon + 1)
    }

    /// Reads a string or name; returns the offset behind its closing quote.
    private mutating func appendString(
        _ bytes: Span<UInt8>,
        at start: Int,
        kind: Kind
    ) throws(JSONError) -> Int {
        let string = try JSONScanner.scanString(bytes, from: start + 1)
        try append(
            Node(start: 0, end: 0, next: 0, kind: kind, isEscaped: string.isEscaped),
            from: start + 1,
            to: string.end
        )
        return string.end + 1
    }

    /// Reads `null`, `true`, `false` or a number; returns the offset behind it.
    private mutating func appendScalar(_ bytes: Span<UInt8>, at start: Int, first: UInt8) throws(JSONError) -> Int {
        let kind: Kind
        let end: Int
        switch first {
        case UInt8(ascii: "n"): (kind, end) = (.null, try JSONScanner.scanWord("null", bytes, from: start))
        case UInt8(ascii: "t"): (kind, end) = (.true, try JSONScanner.scanWord("true", bytes, from: start))
        case UInt8(ascii: "f"): (kind, end) = (.false, try JSONScanner.scanWord("false", bytes, from: start))
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            (kind, end) = (.number, try JSONScanner.scanNumber(bytes, from: start, limit: limits.numberByteCount))
        default: throw JSONError(.unexpectedByte, at: start)
        }
        try append(Node(start: 0, end: 0, next: 0, kind: kind), from: start, to: end)
        return end
    }

    private mutating func append(_ node: Node, from start: Int, to end: Int) throws(JSONError) {
        guard nodes.count < limits.nodeCount else { throw JSONError(.tooManyNodes, at: start) }
        var node = node
        // The text is at most `limits.byteCount` long and the tape `limits.nodeCount`; both fit 32 bits,
        // and a caller's larger limits would clamp rather than trap.
        node.start = UInt32(clamping: start)
        node.end = UInt32(clamping: end)
        node.next = UInt32(clamping: nodes.count + 1)
        nodes.append(node)
    }

    private mutating func finish(_ node: Int, at end: Int) {
        nodes[node].end = UInt32(clamping: end)
        nodes[node].next = UInt32(clamping: nodes.count)
    }
}
