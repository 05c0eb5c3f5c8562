/// The values of base64url digits (RFC 4648 table 2) at each of the four places of a group, looked up by byte.
///
/// A lookup takes the place of some twenty operations for each digit. Only the entries of the alphabet are touched by
/// text that is good: some twenty cache lines in all.
struct Base64URLDigits {
    /// The mark of a byte outside the alphabet; the 24 bits of a group lie below it.
    static let fault: UInt32 = 1 << 31

    /// The one set of tables.
    static let shared = Base64URLDigits()

    private let first = Self.table(shift: 18)
    private let second = Self.table(shift: 12)
    private let third = Self.table(shift: 6)
    private let fourth = Self.table(shift: 0)

    /// The 24 bits of the four digits in the lowest bytes of `word`, the first digit lowest; or `fault` and any bits.
    @inline(__always)
    func group(_ word: UInt64) -> UInt32 {
        // Each index is one byte, so below 256.
        let front = first[Int(word & 0xFF)] | second[Int(word >> 8 & 0xFF)]
        let back = third[Int(word >> 16 & 0xFF)] | fourth[Int(word >> 24 & 0xFF)]
        return front | back
    }

    private static func table(shift: UInt32) -> InlineArray<256, UInt32> {
        var table = InlineArray<256, UInt32>(repeating: fault)
        for byte in UInt8(ascii: "A")...UInt8(ascii: "Z") { table[Int(byte)] = UInt32(byte - 65) << shift }
        for byte in UInt8(ascii: "a")...UInt8(ascii: "z") { table[Int(byte)] = UInt32(byte - 97 + 26) << shift }
        for byte in UInt8(ascii: "0")...UInt8(ascii: "9") { table[Int(byte)] = UInt32(byte - 48 + 52) << shift }
        table[Int(UInt8(ascii: "-"))] = 62 << shift
        table[Int(UInt8(ascii: "_"))] = 63 << shift
        return table
    }
}
