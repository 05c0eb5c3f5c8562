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
        return children(of: object).first { name in
            var value: [UInt8] = []
            appendString(name, in: bytes, to: &value)
            return !values.insert(value).inserted
        }
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

/// The lexical grammar of JSON: pure functions that take an offset and return the offset after the bytes they read.
/// Every function returns an offset from its argument up to `bytes.count`, and reads no byte outside the span.
enum JSONScanner {
    /// RFC 8259 section 2: space, tab, line feed, carriage return.
    @inline(__always)
    static func skipWhitespace(_ bytes: Span<UInt8>, from start: Int) -> Int {
        var offset = start
        while offset < bytes.count {
            let byte = bytes[offset]
            guard byte <= 0x20, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 else { return offset }
            offset += 1
        }
        return offset
    }

    /// RFC 8259 section 7: the inside of a string, starting after its opening quote.
    /// It returns the offset of the closing quote and whether there was an escape. Most strings end within sixteen
    /// bytes and are read without a call: 4 % of `POST /verify`.
    @inline(__always)
    static func scanString(_ bytes: Span<UInt8>, from start: Int) throws(JSONError) -> (end: Int, isEscaped: Bool) {
        var offset = start
        // The offset is from 0 to `bytes.count`, so no difference or sum below overflows.
        if bytes.count &- start >= 16 {
            offset &+= bytes.vector16(at: start).specialBytes.unmarkedCount
            if offset < bytes.count, bytes[offset] == UInt8(ascii: "\"") { return (offset, false) }
        }
        return try scanRest(bytes, from: offset)
    }

    /// Reads the rest of a string from any offset that is not within an escape or a character.
    private static func scanRest(
        _ bytes: Span<UInt8>,
        from start: Int
    ) throws(JSONError) -> (end: Int, isEscaped: Bool) {
        var offset = start
        var isEscaped = false
        while true {
            offset = bytes.skipUnmarked(from: offset) { $0.specialBytes }
            guard offset < bytes.count else { throw JSONError(.truncated, at: offset) }
            let byte = bytes[offset]
            switch byte {
            case UInt8(ascii: "\""):
                return (offset, isEscaped)
            case UInt8(ascii: "\\"):
                isEscaped = true
                offset = try scanEscape(bytes, from: offset)
            case 0x80...:
                offset = try scanMultibyte(bytes, from: offset, first: byte)
            case ..<0x20:
                throw JSONError(.controlCharacter, at: offset)
            default:
                offset += 1
            }
        }
    }

    /// Reads an escape from its reverse solidus on. It returns the offset after the escape, or after the whole
    /// surrogate pair.
    @inline(__always)
    private static func scanEscape(_ bytes: Span<UInt8>, from start: Int) throws(JSONError) -> Int {
        guard start + 1 < bytes.count else { throw JSONError(.truncated, at: bytes.count) }
        switch bytes[start + 1] {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            return start + 2
        case UInt8(ascii: "u"):
            let unit = try scanFourDigits(bytes, from: start + 2)
            // RFC 8259 section 8.2 and RFC 7493 section 2.1: half a surrogate pair is not a character.
            if unit & 0xF800 != 0xD800 { return start + 6 }
            guard unit < 0xDC00, start + 7 < bytes.count, bytes[start + 6] == UInt8(ascii: "\\"),
                bytes[start + 7] == UInt8(ascii: "u"), try scanFourDigits(bytes, from: start + 8) & 0xFC00 == 0xDC00
            else { throw JSONError(.loneSurrogate, at: start) }
            return start + 12
        default:
            throw JSONError(.invalidEscape, at: start)
        }
    }

    /// Reads the four hexadecimal digits of a `\u`.
    static func scanFourDigits(_ bytes: Span<UInt8>, from start: Int) throws(JSONError) -> UInt32 {
        guard start + 4 <= bytes.count else { throw JSONError(.truncated, at: bytes.count) }
        var value: UInt32 = 0
        for offset in start..<start + 4 {
            guard let digit = Hexadecimal.value(bytes[offset]) else { throw JSONError(.invalidEscape, at: offset) }
            value = value << 4 | UInt32(digit)
        }
        return value
    }

    /// Reads one character of two to four bytes as RFC 3629 section 4 defines them. It refuses overlong forms,
    /// surrogates and values above U+10FFFF.
    private static func scanMultibyte(_ bytes: Span<UInt8>, from start: Int, first: UInt8) throws(JSONError) -> Int {
        let count: Int
        var second: ClosedRange<UInt8> = 0x80...0xBF
        switch first {
        case 0xC2...0xDF: count = 2
        case 0xE0: (count, second) = (3, 0xA0...0xBF)
        case 0xED: (count, second) = (3, 0x80...0x9F)
        case 0xE1...0xEF: count = 3
        case 0xF0: (count, second) = (4, 0x90...0xBF)
        case 0xF4: (count, second) = (4, 0x80...0x8F)
        case 0xF1...0xF3: count = 4
        default: throw JSONError(.invalidUTF8, at: start)
        }
        guard start + count <= bytes.count else { throw JSONError(.invalidUTF8, at: start) }
        guard second.contains(bytes[start + 1]) else { throw JSONError(.invalidUTF8, at: start + 1) }
        for offset in start + 2..<start + count where bytes[offset] & 0xC0 != 0x80 {
            throw JSONError(.invalidUTF8, at: offset)
        }
        return start + count
    }

    /// RFC 8259 section 6: `-`? digits fraction? exponent?, without a leading zero. Numbers beyond a double are
    /// refused.
    static func scanNumber(_ bytes: Span<UInt8>, from start: Int, limit: Int) throws(JSONError) -> Int {
        var offset = start
        if bytes[offset] == UInt8(ascii: "-") { offset += 1 }
        let whole = offset
        offset = try scanDigits(bytes, from: offset)
        guard bytes[whole] != UInt8(ascii: "0") || offset == whole + 1 else {
            throw JSONError(.invalidNumber, at: whole)
        }
        if offset < bytes.count, bytes[offset] == UInt8(ascii: ".") {
            offset = try scanDigits(bytes, from: offset + 1)
        }
        var hasExponent = false
        if offset < bytes.count, bytes[offset] | 0x20 == UInt8(ascii: "e") {
            hasExponent = true
            offset += 1
            if offset < bytes.count, bytes[offset] == UInt8(ascii: "+") || bytes[offset] == UInt8(ascii: "-") {
                offset += 1
            }
            offset = try scanDigits(bytes, from: offset)
        }
        guard offset - start <= limit else { throw JSONError(.numberOutOfRange, at: start) }
        // 64 digits without an exponent are far within a double's 10³⁰⁸.
        if hasExponent, !(double(bytes, start..<offset)?.isFinite ?? false) {
            throw JSONError(.numberOutOfRange, at: start)
        }
        return offset
    }

    /// Reads at least one decimal digit.
    private static func scanDigits(_ bytes: Span<UInt8>, from start: Int) throws(JSONError) -> Int {
        var offset = start
        while offset < bytes.count, ASCII.digit(bytes[offset]) != nil { offset += 1 }
        guard offset > start else { throw JSONError(.invalidNumber, at: offset) }
        return offset
    }

    static func double(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Double? {
        Double(String(decoding: range.map { bytes[$0] }, as: UTF8.self))
    }
}

extension SIMD16<UInt8> {
    /// Marks, with all ones, each byte that does not represent itself in a JSON string: below 0x20, a quote, a reverse
    /// solidus, or from 0x80 on.
    @inline(__always)
    var specialBytes: SIMD2<UInt64> {
        // The bytes from 0x80 on are negative as signed numbers, and so below 0x20 too. Both types are 16 bytes of
        // plain bits.
        let isLow = unsafe unsafeBitCast(self, to: SIMD16<Int8>.self) .< SIMD16<Int8>(repeating: 0x20)
        let isQuote = self .== SIMD16<UInt8>(repeating: UInt8(ascii: "\""))
        let isSolidus = self .== SIMD16<UInt8>(repeating: UInt8(ascii: "\\"))
        return isLow.words | isQuote.words | isSolidus.words
    }
}
