/// Eight base64url digits at once, the first in the lowest byte of a word.
///
/// All sums stay inside their byte: each lane is first cut to seven bits, so that adding at most 0x80 cannot
/// carry into the next.
struct Base64URLDigits {
    /// The 48 bits the digits stand for, the first digit's highest.
    let bits: UInt64
    /// Not zero when a byte is outside the alphabet; `bits` then means nothing.
    let faults: UInt64

    @inline(__always)
    init(_ word: UInt64) {
        let ascii = word & ~WordOfBytes.highBits
        let upper = Self.lanes(ascii, from: 0x41, to: 0x5A)
        let lower = Self.lanes(ascii, from: 0x61, to: 0x7A)
        let digit = Self.lanes(ascii, from: 0x30, to: 0x39)
        let hyphen = Self.lanes(ascii, from: 0x2D, to: 0x2D)
        let underscore = Self.lanes(ascii, from: 0x5F, to: 0x5F)
        faults = (~(upper | lower | digit | hyphen | underscore) | word) & WordOfBytes.highBits
        // RFC 4648 table 2: A-Z 0…25, a-z 26…51, 0-9 52…61, hyphen 62, underscore 63. Each lane gets one of the
        // constants, and every result is from 0 to 63, so neither sum nor difference leaves its lane.
        let values =
            ascii &+ (digit >> 7) &* 4 &+ (hyphen >> 7) &* 17 &- (upper >> 7) &* 65 &- (lower >> 7) &* 71
            &- (underscore >> 7) &* 32
        // Six bits in each of eight lanes become 12 in four, 24 in two, 48 in one.
        let twelves = (values & 0x00FF_00FF_00FF_00FF) << 6 | (values >> 8) & 0x00FF_00FF_00FF_00FF
        let twentyFours = (twelves & 0x0000_FFFF_0000_FFFF) << 12 | (twelves >> 16) & 0x0000_FFFF_0000_FFFF
        bits = (twentyFours & 0xFFFF_FFFF) << 24 | twentyFours >> 32
    }

    /// Marks, in the highest bit, each byte from `first` to `last`: the bytes at least `first` without those at
    /// least `last + 1`. Both are below 0x7F and the bytes below 0x80.
    @inline(__always)
    private static func lanes(_ ascii: UInt64, from first: UInt64, to last: UInt64) -> UInt64 {
        let atLeastFirst = ascii &+ WordOfBytes.lowBits &* (0x80 - first)
        let beyondLast = ascii &+ WordOfBytes.lowBits &* (0x7F - last)
        return (atLeastFirst ^ beyondLast) & WordOfBytes.highBits
    }
}
