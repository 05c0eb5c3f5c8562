/// An object or array that is being read.
struct JSONFrame {
    /// Its index on the tape.
    var node: Int
    var isObject: Bool
    var memberCount = 0
    /// The names so far that are spelt without escapes.
    var nameFilter = JSONNameFilter()
    /// Whether one of the names is spelt with escapes, which the filter cannot see through.
    var hasEscapedName = false

    init(node: Int, isObject: Bool) {
        self.node = node
        self.isObject = isObject
    }
}

/// A filter of 256 bits, one for each hash that was inserted: a clear bit proves that a name is new.
struct JSONNameFilter {
    private var words = InlineArray<4, UInt64>(repeating: 0)

    /// Sets the bit of a hash; returns whether it was set before.
    @inline(__always)
    mutating func insert(_ hash: UInt64) -> Bool {
        // The highest eight bits: two choose the word, so below four, and six the bit.
        let word = Int(truncatingIfNeeded: hash >> 62)
        let bit = UInt64(1) << (hash >> 56 & 63)
        let wasSet = words[word] & bit != 0
        words[word] |= bit
        return wasSet
    }
}
