/// Eight base64url digits decoded at once, in one machine word: a token is 1.5 KB of them, and one by one they cost as
/// much as a good part of its signature.
enum Base64URLBlock {
    /// The digits of a block.
    static let digitCount = 8
    /// The bytes a block stands for.
    static let byteCount = 6
    /// The bytes a block's store touches: the last two are written in vain.
    static let storedByteCount = 8

    /// Decodes `count` blocks of `text` from `start` on and appends their bytes.
    ///
    /// - Returns: whether every byte was in the alphabet; also false, with nothing appended, where the text is shorter
    ///   than that or the free capacity does not hold all bytes and one store's rest.
    static func decode(
        _ text: Span<UInt8>,
        from start: Int,
        count: Int,
        into output: inout OutputSpan<UInt8>
    ) -> Bool {
        guard start >= 0, start <= text.count, count <= (text.count - start) / digitCount else { return false }
        guard count * byteCount + storedByteCount <= output.freeCapacity else { return false }
        var faults: UInt64 = 0
        unsafe output.withUnsafeMutableBufferPointer { target, initializedCount in
            let memory = UnsafeMutableRawBufferPointer(target)
            for block in 0..<count {
                // count <= (text.count - start) / 8: the eight bytes lie in the text (the span checks it again).
                let digits = values(text.word(at: start + block * digitCount), &faults)
                // The store ends at most at 6 * count + 2 of the free capacity, checked above. It writes two bytes more
                // than it decoded: the next store or the rest writes over them, or they stay uncounted.
                let offset = initializedCount + block * byteCount
                unsafe memory.storeBytes(of: packed(digits), toByteOffset: offset, as: UInt64.self)
            }
            initializedCount += count * byteCount
        }
        return faults == 0
    }

    /// The values of eight digits; a byte outside the alphabet leaves a bit in `faults`.
    ///
    /// Each byte is a lane of its own: no sum below carries from one to the next as long as all are ASCII, and where
    /// one is not, that is a fault already.
    @inline(__always)
    private static func values(_ text: UInt64, _ faults: inout UInt64) -> UInt64 {
        let capital = lanes(text, from: 0x41, to: 0x5A)
        let small = lanes(text, from: 0x61, to: 0x7A)
        let digit = lanes(text, from: 0x30, to: 0x39)
        let hyphen = lanes(text, from: 0x2D, to: 0x2D)
        let underscore = lanes(text, from: 0x5F, to: 0x5F)
        faults |= text & WordOfBytes.highBits
        faults |= (capital | small | digit | hyphen | underscore) ^ WordOfBytes.lowBits
        // A is 0, a is 26, 0 is 52, - is 62, _ is 63.
        let raised = text &+ digit &* 4 &+ hyphen &* 17
        return raised &- capital &* 65 &- small &* 71 &- underscore &* 32
    }

    /// 1 in each lane whose ASCII byte lies between the bounds, both included.
    @inline(__always)
    private static func lanes(_ text: UInt64, from first: UInt64, to last: UInt64) -> UInt64 {
        let ascii = text & ~WordOfBytes.highBits
        let reached = ascii &+ WordOfBytes.lowBits &* (0x80 - first)
        let passed = ascii &+ WordOfBytes.lowBits &* (0x7F - last)
        return (reached & ~passed & WordOfBytes.highBits) >> 7
    }

    /// Eight values of six bits, the first one in the lowest byte, as six bytes to be stored from the lowest on.
    @inline(__always)
    private static func packed(_ values: UInt64) -> UInt64 {
        // Twelve bits in each 16, then 24 in each 32, then 48.
        let word = values.byteSwapped
        let pairs = (word & 0x3F00_3F00_3F00_3F00) >> 2 | word & 0x003F_003F_003F_003F
        let fours = (pairs & 0x0FFF_0000_0FFF_0000) >> 4 | pairs & 0x0000_0FFF_0000_0FFF
        let eight = (fours & 0x00FF_FFFF_0000_0000) >> 8 | fours & 0x0000_0000_00FF_FFFF
        return (eight << 16).bigEndian
    }
}
