/// The values of base64url digits (RFC 4648 table 2), sixteen at a time and without a table: what is not in the alphabet
/// is noticed once, at the end.
struct Base64URLDigits {
    #if _endian(big)
    #error("the digits are put together in lanes whose lowest byte comes first")
    #endif

    /// All bits of a lane as long as each byte in it was in the alphabet.
    private var good = SIMD16<UInt8>(repeating: 0xFF)

    /// Whether every byte read so far is in the alphabet.
    @inline(__always)
    var areStrict: Bool {
        // The types are 16 bytes of plain bits each.
        let words = unsafe unsafeBitCast(good, to: SIMD2<UInt64>.self)
        return words[0] & words[1] == .max
    }

    /// The bits of sixteen digits: those of each eight as the highest 48 of a word, the first digit's highest.
    @inline(__always)
    mutating func read(_ text: SIMD16<UInt8>) -> SIMD2<UInt64> {
        // With bit 0x20 set, both cases of a letter are one; the lower case counts from 26.
        let letter = (text | 0x20) &- UInt8(ascii: "a")
        let digit = text &- UInt8(ascii: "0")
        let isLetter = (letter .< SIMD16<UInt8>(repeating: 26)).bits
        let isDigit = (digit .< SIMD16<UInt8>(repeating: 10)).bits
        let isLine = (text .== SIMD16<UInt8>(repeating: UInt8(ascii: "_"))).bits
        let isSign = (text .== SIMD16<UInt8>(repeating: UInt8(ascii: "-"))).bits | isLine
        good &= isLetter | isDigit | isSign
        let lower = (text .> SIMD16<UInt8>(repeating: UInt8(ascii: "_"))).bits & 26
        // A mask of ones is -1: taking it away makes 63 of 62.
        let sign = (isSign & 62) &- isLine
        let value = isLetter & (letter &+ lower) | isDigit & (digit &+ 52) | sign
        return Self.joined(value)
    }

    /// Moves the six bits of each lane together: two lanes to twelve bits, those to 24, those to 48.
    @inline(__always)
    private static func joined(_ value: SIMD16<UInt8>) -> SIMD2<UInt64> {
        // The types are 16 bytes of plain bits each.
        let pairs = unsafe unsafeBitCast(value, to: SIMD8<UInt16>.self)
        let twelves = (pairs & 0x3F) &<< 6 | pairs &>> 8
        let groups = unsafe unsafeBitCast(twelves, to: SIMD4<UInt32>.self)
        let bits = (groups & 0xFFFF) &<< 12 | groups &>> 16
        let words = unsafe unsafeBitCast(bits, to: SIMD2<UInt64>.self)
        return words &<< 40 | (words &>> 32) &<< 16
    }
}
