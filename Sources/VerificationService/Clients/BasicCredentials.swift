internal import JOSE

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

    /// RFC 4648 section 4: base64url but for two digits and the padding, which fills up the last four.
    private static func base64(_ bytes: Span<UInt8>, _ range: Range<Int>) -> [UInt8]? {
        let equals = UInt8(ascii: "=")
        var end = range.upperBound
        while end > range.lowerBound, range.upperBound - end < 2, bytes[end - 1] == equals { end -= 1 }
        var digits: [UInt8] = []
        digits.reserveCapacity(end - range.lowerBound)
        for index in range.lowerBound..<end {
            switch bytes[index] {
            case UInt8(ascii: "+"): digits.append(UInt8(ascii: "-"))
            case UInt8(ascii: "/"): digits.append(UInt8(ascii: "_"))
            case UInt8(ascii: "-"), UInt8(ascii: "_"): return nil
            case let digit: digits.append(digit)
            }
        }
        var decoded: [UInt8] = []
        return Base64URL.decode(digits.span, digits.indices, into: &decoded) ? decoded : nil
    }
}
