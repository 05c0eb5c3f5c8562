internal import LLBytes

/// Reads one JSON text onto a tape by the grammar of RFC 8259 and the document's limits.
///
/// Only the reader holds the tape's memory while it reads, so a node costs a few stores.
struct JSONTapeReader: ~Copyable {
    typealias Tape = OutputSpan<JSONDocument.Node>

    let limits: JSONLimits
    let marksRepeatedMembers: Bool
    var enclosing: [JSONFrame] = []
    /// The names of one object with their hashes.
    var names: [UInt64] = []

    /// Reads one value with the white space around it; returns the offset after both.
    mutating func readText(_ bytes: Span<UInt8>, to tape: inout Tape) throws(JSONError) -> Int {
        // RFC 8259 section 8.1: a byte-order mark may be refused.
        if bytes.count >= 3, bytes[0] == 0xEF, bytes[1] == 0xBB, bytes[2] == 0xBF {
            throw JSONError(.byteOrderMark, at: 0)
        }
        var offset = JSONScanner.skipWhitespace(bytes, from: 0)
        guard offset < bytes.count else { throw JSONError(.empty, at: offset) }
        // The frame of the innermost open object or array. The root value is inside no frame.
        var frame = JSONFrame(node: -1, isObject: false)
        while true {
            let value = try openOrAppendValue(bytes, at: offset, frame: &frame, to: &tape)
            offset = value.end
            guard value.isComplete else { continue }
            guard try closeFinished(bytes, offset: &offset, frame: &frame, to: &tape) else { return offset }
        }
    }

    /// Reads a scalar or an empty container whole, or opens a container and reads up to its first value.
    ///
    /// It returns the offset after the bytes it read, and whether they were a whole value. If they were not, the first
    /// value of the opened container is at that offset.
    @inline(__always)
    private mutating func openOrAppendValue(
        _ bytes: Span<UInt8>,
        at start: Int,
        frame: inout JSONFrame,
        to tape: inout Tape
    ) throws(JSONError) -> (end: Int, isComplete: Bool) {
        guard start < bytes.count else { throw JSONError(.truncated, at: start) }
        let byte = bytes[start]
        if byte == UInt8(ascii: "\"") {
            let string = try JSONScanner.scanString(bytes, from: start + 1)
            try append(.string, from: start + 1, to: string.end, isEscaped: string.isEscaped, on: &tape)
            return (string.end + 1, true)
        }
        guard byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") else {
            return (try appendScalar(bytes, at: start, first: byte, to: &tape), true)
        }
        return try openContainer(bytes, at: start, isObject: byte == UInt8(ascii: "{"), frame: &frame, to: &tape)
    }

    private mutating func openContainer(
        _ bytes: Span<UInt8>,
        at start: Int,
        isObject: Bool,
        frame: inout JSONFrame,
        to tape: inout Tape
    ) throws(JSONError) -> (end: Int, isComplete: Bool) {
        try append(isObject ? .object : .array, from: start, to: start, on: &tape)
        let inside = JSONScanner.skipWhitespace(bytes, from: start + 1)
        guard inside < bytes.count else { throw JSONError(.truncated, at: inside) }
        // Once this container is open, `enclosing` holds one frame less than the depth.
        guard enclosing.count < limits.depth else { throw JSONError(.tooDeep, at: start) }
        if bytes[inside] == (isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) {
            finish(tape.count - 1, at: inside + 1, on: &tape)
            return (inside + 1, true)
        }
        enclosing.append(frame)
        frame = JSONFrame(node: tape.count - 1, isObject: isObject)
        return (isObject ? try appendName(bytes, at: inside, frame: &frame, to: &tape) : inside, false)
    }

    /// Continues after a value: closes every container that ends here and moves to the next value.
    ///
    /// It returns false if the root is complete; `offset` is then after its white space.
    @inline(__always)
    private mutating func closeFinished(
        _ bytes: Span<UInt8>,
        offset: inout Int,
        frame: inout JSONFrame,
        to tape: inout Tape
    ) throws(JSONError) -> Bool {
        while true {
            offset = JSONScanner.skipWhitespace(bytes, from: offset)
            if frame.node < 0 { return false }
            guard offset < bytes.count else { throw JSONError(.truncated, at: offset) }
            let byte = bytes[offset]
            if byte == UInt8(ascii: ",") {
                offset = JSONScanner.skipWhitespace(bytes, from: offset + 1)
                if frame.isObject { offset = try appendName(bytes, at: offset, frame: &frame, to: &tape) }
                return true
            }
            guard byte == (frame.isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) else {
                throw JSONError(.unexpectedByte, at: offset)
            }
            offset += 1
            finish(frame.node, at: offset, on: &tape)
            if frame.mayRepeat, let repeated = repeatedName(of: frame.node, bytes, tape) {
                guard marksRepeatedMembers else {
                    throw JSONError(.repeatedMember, at: tape[repeated].range.lowerBound - 1)
                }
                tape[frame.node].isRepeating = true
            }
            guard let outer = enclosing.popLast() else { throw JSONError(.unexpectedByte, at: offset) }
            frame = outer
        }
    }

    /// Reads a member name and its colon; returns the offset of the value.
    private func appendName(
        _ bytes: Span<UInt8>,
        at start: Int,
        frame: inout JSONFrame,
        to tape: inout Tape
    ) throws(JSONError) -> Int {
        guard start < bytes.count else { throw JSONError(.truncated, at: start) }
        guard bytes[start] == UInt8(ascii: "\"") else { throw JSONError(.unexpectedByte, at: start) }
        let name = try JSONScanner.scanString(bytes, from: start + 1)
        try append(.name, from: start + 1, to: name.end, isEscaped: name.isEscaped, on: &tape)
        frame.memberCount &+= 1
        guard frame.memberCount <= limits.memberCount else { throw JSONError(.tooManyMembers, at: start) }
        // The scanner never moves back, so `start < name.end`.
        let range = start + 1..<name.end
        if name.isEscaped || frame.nameFilter.insert(Self.filterHash(bytes, range)) { frame.mayRepeat = true }
        let colon = JSONScanner.skipWhitespace(bytes, from: name.end + 1)
        guard colon < bytes.count else { throw JSONError(.truncated, at: colon) }
        guard bytes[colon] == UInt8(ascii: ":") else { throw JSONError(.unexpectedByte, at: colon) }
        return JSONScanner.skipWhitespace(bytes, from: colon + 1)
    }

    /// Reads `null`, `true`, `false` or a number; returns the offset after it.
    private func appendScalar(
        _ bytes: Span<UInt8>,
        at start: Int,
        first: UInt8,
        to tape: inout Tape
    ) throws(JSONError) -> Int {
        let kind: JSONDocument.Kind
        let end: Int
        switch first {
        case UInt8(ascii: "n"): (kind, end) = (.null, try JSONScanner.scanWord("null", bytes, from: start))
        case UInt8(ascii: "t"): (kind, end) = (.true, try JSONScanner.scanWord("true", bytes, from: start))
        case UInt8(ascii: "f"): (kind, end) = (.false, try JSONScanner.scanWord("false", bytes, from: start))
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            (kind, end) = (.number, try JSONScanner.scanNumber(bytes, from: start, limit: limits.numberByteCount))
        default: throw JSONError(.unexpectedByte, at: start)
        }
        try append(kind, from: start, to: end, on: &tape)
        return end
    }

    @inline(__always)
    private func append(
        _ kind: JSONDocument.Kind,
        from start: Int,
        to end: Int,
        isEscaped: Bool = false,
        on tape: inout Tape
    ) throws(JSONError) {
        guard tape.count < limits.nodeCount, tape.freeCapacity > 0 else { throw JSONError(.tooManyNodes, at: start) }
        // Offsets and indices fit 32 bits: `parse` checked the length.
        tape.append(
            JSONDocument.Node(
                start: UInt32(truncatingIfNeeded: start),
                end: UInt32(truncatingIfNeeded: end),
                next: UInt32(truncatingIfNeeded: tape.count + 1),
                kind: kind,
                isEscaped: isEscaped
            )
        )
    }

    @inline(__always)
    private func finish(_ node: Int, at end: Int, on tape: inout Tape) {
        tape[node].end = UInt32(truncatingIfNeeded: end)
        tape[node].next = UInt32(truncatingIfNeeded: tape.count)
    }
}

extension JSONTapeReader {
    /// The first name of an object that an earlier member has too; nil if there is none. Names are compared after
    /// escape decoding: `"\u0061lg"` repeats `"alg"`.
    ///
    /// Sorting the names by a hash with a secret takes n log n steps, whatever names a client sends.
    private mutating func repeatedName(of object: Int, _ bytes: Span<UInt8>, _ tape: borrowing Tape) -> Int? {
        names.removeAll(keepingCapacity: true)
        var node = object + 1
        while node < tape.count {
            // The hash in the upper half, the node in the lower one.
            names.append(Self.hash(tape[node], bytes) & ~0xFFFF_FFFF | UInt64(truncatingIfNeeded: node))
            node = Int(tape[node + 1].next)
        }
        names.sort()
        var first: Int?
        for later in names.indices {
            var earlier = later - 1
            while earlier >= 0, names[earlier] >> 32 == names[later] >> 32 {
                let (left, right) = (Int(names[earlier] & 0xFFFF_FFFF), Int(names[later] & 0xFFFF_FFFF))
                if Self.names(tape[left], tape[right], areEqualIn: bytes) { first = min(first ?? right, right) }
                earlier -= 1
            }
        }
        return first
    }

    /// A random odd number of this process, so that no client can choose names with equal hashes.
    private static let secret = UInt64.random(in: .min ... .max) | 1

    /// A hash of the name's value.
    private static func hash(_ name: JSONDocument.Node, _ bytes: Span<UInt8>) -> UInt64 {
        let secret = secret
        var hash = secret
        if name.isEscaped {
            var reader = JSONStringReader(name.range)
            while let byte = reader.next(in: bytes) { hash = (hash ^ UInt64(byte)) &* secret }
        } else {
            for index in name.range { hash = (hash ^ UInt64(bytes[index])) &* secret }
        }
        return hash
    }

    /// A quick hash of the name's length and of its first and last eight bytes. Names that a client makes collide in
    /// the filter cost the sorting, no more.
    @inline(__always)
    private static func filterHash(_ bytes: Span<UInt8>, _ range: Range<Int>) -> UInt64 {
        var mix = UInt64(truncatingIfNeeded: range.count)
        if range.count >= 8 {
            mix ^= bytes.word(at: range.lowerBound)
            mix = mix &* 0x9E37_79B9_7F4A_7C15 ^ bytes.word(at: range.upperBound - 8)
        } else {
            mix ^= bytes.shortWord(range) << 3
        }
        return mix &* 0x9E37_79B9_7F4A_7C15
    }

    private static func names(
        _ left: JSONDocument.Node,
        _ right: JSONDocument.Node,
        areEqualIn bytes: Span<UInt8>
    ) -> Bool {
        var (left, right) = (JSONStringReader(left.range), JSONStringReader(right.range))
        while true {
            let byte = left.next(in: bytes)
            guard byte == right.next(in: bytes) else { return false }
            if byte == nil { return true }
        }
    }
}

/// An object or array that is still being read.
struct JSONFrame {
    /// The index of its node on the tape.
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
