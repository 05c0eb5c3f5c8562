/// Name and key of `Authorization: Basic` (RFC 7617 section 2): base64 of both with a colon between.
enum BasicCredentials {
    /// Greatest length of the text, in characters: a name of 64, a key of 512, and their form-encoding.
    static let lengthLimit = 2_048

    /// Decodes the text after the scheme; nil where it is no strict base64 or has no colon.
    static func decode(_ bytes: Span<UInt8>, _ range: Range<Int>) -> (name: [UInt8], key: [UInt8])? {
        guard range.count <= lengthLimit, range.count.isMultiple(of: 4), let text = base64(bytes, range) else {
            return nil
        }
        guard let colon = text.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        return (Array(text[..<colon]), Array(text[(colon + 1)...]))
    }

    /// RFC 4648 section 4, with padding and without unused bits.
    private static func base64(_ bytes: Span<UInt8>, _ range: Range<Int>) -> [UInt8]? {
        var decoded: [UInt8] = []
        var bits: UInt32 = 0
        var count = 0
        var padding = 0
        for index in range {
            let byte = bytes[index]
            if byte == UInt8(ascii: "=") {
                padding += 1
                continue
            }
            // Padding is at the end alone.
            guard padding == 0, let value = digit(byte) else { return nil }
            bits = (bits << 6 | value) & 0xFF_FFFF
            count += 1
            if count.isMultiple(of: 4) {
                decoded.append(UInt8(truncatingIfNeeded: bits >> 16))
                decoded.append(UInt8(truncatingIfNeeded: bits >> 8))
                decoded.append(UInt8(truncatingIfNeeded: bits))
            }
        }
        switch (count % 4, padding) {
        case (0, 0): return decoded
        case (2, 2) where bits & 0xF == 0:
            decoded.append(UInt8(truncatingIfNeeded: bits >> 4))
            return decoded
        case (3, 1) where bits & 0x3 == 0:
            decoded.append(UInt8(truncatingIfNeeded: bits >> 10))
            decoded.append(UInt8(truncatingIfNeeded: bits >> 2))
            return decoded
        default: return nil
        }
    }

    private static func digit(_ byte: UInt8) -> UInt32? {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(byte - UInt8(ascii: "A"))
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(byte - UInt8(ascii: "a")) + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(byte - UInt8(ascii: "0")) + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
