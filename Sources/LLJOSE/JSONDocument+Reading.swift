internal import LLBytes

/// Reads a text onto the document's tape by the grammar of RFC 8259 and the document's limits.
extension JSONDocument {
    /// Reads `bytes` as one JSON value with only white space around it.
    /// It never recurses: each level of nesting costs one entry in `enclosing`. The document is empty if it throws.
    package mutating func parse(_ bytes: Span<UInt8>) throws(JSONError) {
        nodes.removeAll(keepingCapacity: true)
        if !enclosing.isEmpty { enclosing.removeAll(keepingCapacity: true) }
        // The limit makes every offset and every index on the tape fit 32 bits.
        guard bytes.count <= min(limits.byteCount, Int(UInt32.max)) else {
            throw JSONError(.tooLong, at: limits.byteCount)
        }
        do throws(JSONError) {
            let end = try readText(bytes)
            guard end == bytes.count else { throw JSONError(.trailingBytes, at: end) }
        } catch {
            nodes.removeAll(keepingCapacity: true)
            throw error
        }
    }

    /// Reads one value with the white space around it; returns the offset after both.
    private mutating func readText(_ bytes: Span<UInt8>) throws(JSONError) -> Int {
        // RFC 8259 section 8.1: a byte-order mark may be refused.
        if bytes.count >= 3, bytes[0] == 0xEF, bytes[1] == 0xBB, bytes[2] == 0xBF {
            throw JSONError(.byteOrderMark, at: 0)
        }
        var offset = JSONScanner.skipWhitespace(bytes, from: 0)
        guard offset < bytes.count else { throw JSONError(.empty, at: offset) }
        // The frame of the innermost open object or array. The root value is inside no frame.
        var frame = JSONFrame(node: -1, isObject: false)
        repeat {
            while try !openOrAppendValue(bytes, &offset, &frame) {}
        } while try closeFinished(bytes, &offset, &frame)
        return offset
    }

    /// Reads a scalar or an empty container whole (true), or opens a container and reads up to its first value (false).
    private mutating func openOrAppendValue(
        _ bytes: Span<UInt8>,
        _ offset: inout Int,
        _ frame: inout JSONFrame
    ) throws(JSONError) -> Bool {
        let start = offset
        guard start < bytes.count else { throw JSONError(.truncated, at: start) }
        switch bytes[start] {
        case UInt8(ascii: "\""):
            let string = try JSONScanner.scanString(bytes, from: start + 1)
            try append(.string, start + 1, string.end, isEscaped: string.isEscaped)
            offset = string.end + 1
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            let isObject = bytes[start] == UInt8(ascii: "{")
            try append(isObject ? .object : .array, start, start)
            offset = JSONScanner.skipWhitespace(bytes, from: start + 1)
            guard offset < bytes.count else { throw JSONError(.truncated, at: offset) }
            // Once this container is open, `enclosing` holds one frame less than the depth.
            guard enclosing.count < limits.depth else { throw JSONError(.tooDeep, at: start) }
            guard bytes[offset] == (isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) else {
                enclosing.append(frame)
                frame = JSONFrame(node: count - 1, isObject: isObject)
                if isObject { try readName(bytes, &offset, &frame) }
                return false
            }
            offset += 1
            finish(count - 1, at: offset)
        case UInt8(ascii: "n"): offset = try append(.null, "null", bytes, start)
        case UInt8(ascii: "t"): offset = try append(.true, "true", bytes, start)
        case UInt8(ascii: "f"): offset = try append(.false, "false", bytes, start)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            offset = try JSONScanner.scanNumber(bytes, from: start, limit: JSONLimits.numberByteCount)
            try append(.number, start, offset)
        default: throw JSONError(.unexpectedByte, at: start)
        }
        return true
    }

    /// Continues after a value: closes every container that ends here and moves to the next value.
    /// - Returns: False if the root is complete; `offset` is then after its white space.
    private mutating func closeFinished(
        _ bytes: Span<UInt8>,
        _ offset: inout Int,
        _ frame: inout JSONFrame
    ) throws(JSONError) -> Bool {
        while true {
            offset = JSONScanner.skipWhitespace(bytes, from: offset)
            if frame.node < 0 { return false }
            guard offset < bytes.count else { throw JSONError(.truncated, at: offset) }
            let byte = bytes[offset]
            if byte == UInt8(ascii: ",") {
                offset = JSONScanner.skipWhitespace(bytes, from: offset + 1)
                if frame.isObject { try readName(bytes, &offset, &frame) }
                return true
            }
            guard byte == (frame.isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) else {
                throw JSONError(.unexpectedByte, at: offset)
            }
            offset += 1
            finish(frame.node, at: offset)
            if frame.mayRepeat, let repeated = repeatedName(of: frame.node, bytes) {
                guard marksRepeatedMembers else {
                    throw JSONError(.repeatedMember, at: nodes[repeated].range.lowerBound - 1)
                }
                nodes[frame.node].isRepeating = true
            }
            guard let outer = enclosing.popLast() else { throw JSONError(.unexpectedByte, at: offset) }
            frame = outer
        }
    }

    /// Reads a member name and its colon, up to the value.
    private mutating func readName(
        _ bytes: Span<UInt8>,
        _ offset: inout Int,
        _ frame: inout JSONFrame
    ) throws(JSONError) {
        let start = offset
        guard start < bytes.count else { throw JSONError(.truncated, at: start) }
        guard bytes[start] == UInt8(ascii: "\"") else { throw JSONError(.unexpectedByte, at: start) }
        let name = try JSONScanner.scanString(bytes, from: start + 1)
        try append(.name, start + 1, name.end, isEscaped: name.isEscaped)
        frame.memberCount &+= 1
        guard frame.memberCount <= limits.memberCount else { throw JSONError(.tooManyMembers, at: start) }
        // The scanner never moves back, so `start < name.end`. Names that a client makes collide in the filter cost a
        // look at all names, no more.
        if name.isEscaped || frame.nameFilter.insert(JSONName(bytes, start + 1..<name.end).hash) {
            frame.mayRepeat = true
        }
        let colon = JSONScanner.skipWhitespace(bytes, from: name.end + 1)
        guard colon < bytes.count else { throw JSONError(.truncated, at: colon) }
        guard bytes[colon] == UInt8(ascii: ":") else { throw JSONError(.unexpectedByte, at: colon) }
        offset = JSONScanner.skipWhitespace(bytes, from: colon + 1)
    }

    private mutating func append(
        _ kind: Kind,
        _ word: StaticString,
        _ bytes: Span<UInt8>,
        _ start: Int
    ) throws(JSONError) -> Int {
        let end = try JSONScanner.scanWord(word, bytes, from: start)
        try append(kind, start, end)
        return end
    }

    @inline(__always)
    private mutating func append(_ kind: Kind, _ start: Int, _ end: Int, isEscaped: Bool = false) throws(JSONError) {
        guard count < limits.nodeCount else { throw JSONError(.tooManyNodes, at: start) }
        // Offsets and indices fit 32 bits: `parse` checked the length.
        nodes.append(
            Node(
                start: UInt32(truncatingIfNeeded: start),
                end: UInt32(truncatingIfNeeded: end),
                next: UInt32(truncatingIfNeeded: count + 1),
                kind: kind,
                isEscaped: isEscaped
            )
        )
    }

    private mutating func finish(_ node: Int, at end: Int) {
        nodes[node].end = UInt32(truncatingIfNeeded: end)
        nodes[node].next = UInt32(truncatingIfNeeded: count)
    }

    /// The first name of an object that an earlier member has too; nil if there is none. Names are compared after
    /// escape decoding, by a hash with a random key: `"\u0061lg"` repeats `"alg"`. Two honest names have equal hashes in
    /// one of 2⁶⁴ processes, and whatever names a client sends, each costs the same.
    private func repeatedName(of object: Int, _ bytes: Span<UInt8>) -> Int? {
        var hashes: Set<Int> = []
        var name = object + 1
        while name < count {
            var hasher = Hasher()
            var reader = JSONStringReader(range(name))
            while let byte = reader.next(in: bytes) { hasher.combine(byte) }
            guard hashes.insert(hasher.finalize()).inserted else { return name }
            name = next(name + 1)
        }
        return nil
    }
}

/// An object or array that is still being read.
struct JSONFrame {
    var node: Int
    var isObject: Bool
    var memberCount = 0
    /// The names so far, as written.
    var nameFilter = JSONNameFilter()
    /// True if a name hit a bit of the filter that was set, or is written with escapes, which the filter does not
    /// decode.
    var mayRepeat = false
}

/// A filter of 256 bits that sets one bit for each inserted hash. A clear bit proves that a name is new.
struct JSONNameFilter {
    private var words = InlineArray<4, UInt64>(repeating: 0)

    /// Sets the bit of a hash; returns whether it was set before.
    @inline(__always)
    mutating func insert(_ hash: UInt64) -> Bool {
        // The highest two bits choose the word, so its index is below four. The next six choose the bit.
        let word = Int(truncatingIfNeeded: hash >> 62)
        let bit = UInt64(1) << (hash >> 56 & 63)
        let wasSet = words[word] & bit != 0
        words[word] |= bit
        return wasSet
    }
}
