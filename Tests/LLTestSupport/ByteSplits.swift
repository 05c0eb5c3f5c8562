/// Ways to cut a run of bytes into pieces.
package enum ByteSplits {
    /// The ends of the pieces, in rising order; the last is `count`. A failure can be repeated with the same seed.
    package static func random(_ count: Int, seed: UInt64) -> [Int] {
        var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
        var ends: [Int] = []
        var end = 0
        while end < count {
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            end = min(count, end + 1 + Int(state % 40))
            ends.append(end)
        }
        return ends
    }

    /// One byte in each piece.
    package static func single(_ count: Int) -> [Int] { Array(1..<(count + 1)) }
}
