/// An object or array that is being read.
struct JSONFrame {
    /// Its index on the tape.
    var node: Int
    var isObject: Bool
    var memberCount = 0
    /// A 64-bit filter of the names so far: a clear bit proves that a name is new.
    var nameFilter: UInt64 = 0
    /// Whether one of the names is spelt with escapes, which the filter cannot see through.
    var hasEscapedName = false
}
