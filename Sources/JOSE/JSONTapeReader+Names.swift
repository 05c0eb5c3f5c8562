extension JSONTapeReader {
    /// Whether the newest name of `frame`, the last node on the tape, was there before; notes it in the filter.
    ///
    /// Names are compared after escape decoding: `"\u0061lg"` repeats `"alg"`.
    @inline(__always)
    static func isRepeated(
        _ name: Range<Int>,
        isEscaped: Bool,
        in frame: inout JSONFrame,
        _ bytes: Span<UInt8>,
        _ tape: borrowing Tape
    ) -> Bool {
        let mayRepeat: Bool
        if isEscaped {
            frame.hasEscapedName = true
            mayRepeat = true
        } else {
            // While no name is escaped, a clear bit proves the name new and spares the search.
            mayRepeat = frame.nameFilter.insert(hash(bytes, name)) || frame.hasEscapedName
        }
        return mayRepeat && isAmong(tape.count - 1, from: frame.node + 1, bytes, tape)
    }

    /// Whether the name at `node` equals one of those before it, of which the first stands at `first`.
    private static func isAmong(
        _ node: Int,
        from first: Int,
        _ bytes: Span<UInt8>,
        _ tape: borrowing Tape
    ) -> Bool {
        var earlier = first
        while earlier < node {
            if names(tape[earlier], tape[node], areEqualIn: bytes) { return true }
            earlier = Int(tape[earlier + 1].next)
        }
        return false
    }

    /// A hash of the name's length and of its first and last eight bytes. Names that an attacker makes collide cost
    /// him their search: at most the limit of members each.
    @inline(__always)
    private static func hash(_ bytes: Span<UInt8>, _ range: Range<Int>) -> UInt64 {
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
        let (leftRange, rightRange) = (left.range, right.range)
        if !left.isEscaped && !right.isEscaped {
            return bytes.areEqual(leftRange, to: bytes.extracting(rightRange))
        }
        var leftReader = JSONStringReader(leftRange)
        var rightReader = JSONStringReader(rightRange)
        while true {
            let byte = leftReader.next(in: bytes)
            guard byte == rightReader.next(in: bytes) else { return false }
            if byte == nil { return true }
        }
    }
}
