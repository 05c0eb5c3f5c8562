extension JSONDocument {
    /// Whether the name at `node`, the newest of `frame`, was there before; notes it in the filter.
    ///
    /// Names are compared after escape decoding: `"\u0061lg"` repeats `"alg"`.
    func isRepeated(_ node: Int, in frame: inout JSONFrame, _ bytes: Span<UInt8>) -> Bool {
        let isEscaped = nodes[node].isEscaped
        if isEscaped { frame.hasEscapedName = true }
        let bit = isEscaped ? UInt64.max : filterBit(of: node, bytes)
        // While no name is escaped, a clear bit proves the name new and spares the search.
        let mayRepeat = frame.hasEscapedName || frame.nameFilter & bit != 0
        frame.nameFilter |= bit
        guard mayRepeat else { return false }
        var earlier = frame.node + 1
        while earlier < node {
            if names(earlier, node, areEqualIn: bytes) { return true }
            earlier = Int(nodes[earlier + 1].next)
        }
        return false
    }

    private func filterBit(of node: Int, _ bytes: Span<UInt8>) -> UInt64 {
        let range = range(node)
        guard !range.isEmpty else { return 1 }
        let first = UInt64(bytes[range.lowerBound])
        let last = UInt64(bytes[range.upperBound - 1])
        let middle = UInt64(bytes[range.lowerBound + range.count / 2])
        return 1 << ((first &* 7 &+ middle &* 5 &+ last &* 3 &+ UInt64(range.count)) & 63)
    }

    private func names(_ left: Int, _ right: Int, areEqualIn bytes: Span<UInt8>) -> Bool {
        let (leftRange, rightRange) = (range(left), range(right))
        if !nodes[left].isEscaped && !nodes[right].isEscaped {
            guard leftRange.count == rightRange.count else { return false }
            for distance in 0..<leftRange.count
            where bytes[leftRange.lowerBound + distance] != bytes[rightRange.lowerBound + distance] {
                return false
            }
            return true
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
