internal import LLBytes

/// Reads a text onto the document's tape by the grammar of RFC 8259 and the document's limits.
extension JSONDocument {
    /// Reads `bytes` as one JSON value with only white space around it. The document is empty if it throws.
    package mutating func parse(_ bytes: Span<UInt8>) throws(JSONError) {
        nodes.removeAll(keepingCapacity: true)
        // The limit makes every offset and every index on the tape fit 32 bits.
        guard bytes.count <= min(limits.byteCount, Int(UInt32.max)) else {
            throw JSONError(.tooLong, at: limits.byteCount)
        }
        do throws(JSONError) {
            // RFC 8259 section 8.1: a byte-order mark may be refused.
            if bytes.count >= 3, bytes[0] == 0xEF, bytes[1] == 0xBB, bytes[2] == 0xBF {
                throw JSONError(.byteOrderMark, at: 0)
            }
            var offset = JSONScanner.skipWhitespace(bytes, from: 0)
            guard offset < bytes.count else { throw JSONError(.empty, at: offset) }
            try readValue(bytes, &offset, depth: 0)
            offset = JSONScanner.skipWhitespace(bytes, from: offset)
            guard offset == bytes.count else { throw JSONError(.trailingBytes, at: offset) }
        } catch {
            nodes.removeAll(keepingCapacity: true)
            throw error
        }
    }

    /// Reads one value; `depth` objects and arrays are around it.
    private mutating func readValue(_ bytes: Span<UInt8>, _ offset: inout Int, depth: Int) throws(JSONError) {
        let start = offset
        guard start < bytes.count else { throw JSONError(.truncated, at: start) }
        switch bytes[start] {
        case UInt8(ascii: "\""):
            let string = try JSONScanner.scanString(bytes, from: start + 1)
            try append(.string, start + 1, string.end, isEscaped: string.isEscaped)
            offset = string.end + 1
        case UInt8(ascii: "{"), UInt8(ascii: "["): try readContainer(bytes, &offset, depth: depth + 1)
        case UInt8(ascii: "n"): offset = try append(.null, "null", bytes, start)
        case UInt8(ascii: "t"): offset = try append(.true, "true", bytes, start)
        case UInt8(ascii: "f"): offset = try append(.false, "false", bytes, start)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            offset = try JSONScanner.scanNumber(bytes, from: start, limit: JSONLimits.numberByteCount)
            try append(.number, start, offset)
        default: throw JSONError(.unexpectedByte, at: start)
        }
    }

    /// Reads an object or array with all it contains. The limit bounds the recursion.
    private mutating func readContainer(_ bytes: Span<UInt8>, _ offset: inout Int, depth: Int) throws(JSONError) {
        let start = offset
        let isObject = bytes[start] == UInt8(ascii: "{")
        let end = isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")
        guard depth <= limits.depth else { throw JSONError(.tooDeep, at: start) }
        let node = count
        try append(isObject ? .object : .array, start, start)
        var names = JSONNameFilter()
        offset = JSONScanner.skipWhitespace(bytes, from: start + 1)
        if offset >= bytes.count || bytes[offset] != end {
            while true {
                if isObject { try readName(bytes, &offset, &names) }
                try readValue(bytes, &offset, depth: depth)
                offset = JSONScanner.skipWhitespace(bytes, from: offset)
                guard offset < bytes.count else { throw JSONError(.truncated, at: offset) }
                if bytes[offset] == end { break }
                guard bytes[offset] == UInt8(ascii: ",") else { throw JSONError(.unexpectedByte, at: offset) }
                offset = JSONScanner.skipWhitespace(bytes, from: offset + 1)
            }
        }
        offset += 1
        nodes[node].end = UInt32(truncatingIfNeeded: offset)
        nodes[node].next = UInt32(truncatingIfNeeded: count)
        if names.mayRepeat, let repeated = repeatedName(of: node, bytes) {
            guard marksRepeatedMembers else { throw JSONError(.repeatedMember, at: range(repeated).lowerBound - 1) }
            nodes[node].isRepeating = true
        }
    }

    /// Reads a member name and its colon, up to the value.
    private mutating func readName(
        _ bytes: Span<UInt8>,
        _ offset: inout Int,
        _ names: inout JSONNameFilter
    ) throws(JSONError) {
        let start = offset
        guard start < bytes.count else { throw JSONError(.truncated, at: start) }
        guard bytes[start] == UInt8(ascii: "\"") else { throw JSONError(.unexpectedByte, at: start) }
        let name = try JSONScanner.scanString(bytes, from: start + 1)
        try append(.name, start + 1, name.end, isEscaped: name.isEscaped)
        // The scanner never moves back, so `start < name.end`.
        names.insert(JSONName(bytes, start + 1..<name.end).hash, isEscaped: name.isEscaped)
        guard names.count <= limits.memberCount else { throw JSONError(.tooManyMembers, at: start) }
        let colon = JSONScanner.skipWhitespace(bytes, from: name.end + 1)
        guard colon < bytes.count else { throw JSONError(.truncated, at: colon) }
        guard bytes[colon] == UInt8(ascii: ":") else { throw JSONError(.unexpectedByte, at: colon) }
        offset = JSONScanner.skipWhitespace(bytes, from: colon + 1)
    }

    /// Reads a literal name, which has lower-case letters only (RFC 8259 section 3).
    private mutating func append(
        _ kind: Kind,
        _ word: StaticString,
        _ bytes: Span<UInt8>,
        _ start: Int
    ) throws(JSONError) -> Int {
        let end = start + word.utf8CodeUnitCount
        guard end <= bytes.count else { throw JSONError(.truncated, at: bytes.count) }
        guard bytes.equal(start..<end, word) else { throw JSONError(.unexpectedByte, at: start) }
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

    /// The first name of an object that an earlier member has too; nil if there is none. Names are compared after
    /// escape decoding: `"\u0061lg"` repeats `"alg"`. A set hashes with a random key, so each name costs the same,
    /// whatever names a client sends.
    private func repeatedName(of object: Int, _ bytes: Span<UInt8>) -> Int? {
        var values: Set<[UInt8]> = []
        var name = object + 1
        while name < count {
            var value: [UInt8] = []
            appendString(name, in: bytes, to: &value)
            guard values.insert(value).inserted else { return name }
            name = next(name + 1)
        }
        return nil
    }
}

/// The names of an object, as far as it is read: their number, and a filter of 256 bits that sets one bit for the hash of
/// each. A clear bit proves that a name is new. Names that a client makes collide in it cost a look at all names, no more.
struct JSONNameFilter {
    private(set) var count = 0
    /// True if a name hit a bit that was set, or is written with escapes, which the filter does not decode.
    private(set) var mayRepeat = false
    private var words = InlineArray<4, UInt64>(repeating: 0)

    @inline(__always)
    mutating func insert(_ hash: UInt64, isEscaped: Bool) {
        count &+= 1
        // The highest two bits choose the word, so its index is below four. The next six choose the bit.
        let word = Int(truncatingIfNeeded: hash >> 62)
        let bit = UInt64(1) << (hash >> 56 & 63)
        if isEscaped || words[word] & bit != 0 { mayRepeat = true }
        words[word] |= bit
    }
}
