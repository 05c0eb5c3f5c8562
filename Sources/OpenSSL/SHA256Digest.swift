/// The 32 bytes of a SHA-256 digest (FIPS 180-4), held inline.
package struct SHA256Digest: Sendable {
    /// The digest's bytes, in order. `bytes.span` reads them without a copy.
    package var bytes: InlineArray<32, UInt8>

    package init(bytes: InlineArray<32, UInt8>) {
        self.bytes = bytes
    }

    /// The digest as 64 lower-case hexadecimal digits in ASCII.
    package var hexadecimalBytes: InlineArray<64, UInt8> {
        var digits = InlineArray<64, UInt8>(repeating: 0)
        for index in 0..<32 {
            digits[2 * index] = Self.digit(bytes[index] >> 4)
            digits[2 * index + 1] = Self.digit(bytes[index] & 0x0F)
        }
        return digits
    }

    /// The digest as 64 lower-case hexadecimal digits.
    package var hexadecimal: String {
        let digits = hexadecimalBytes
        return String(decoding: digits.indices.map { digits[$0] }, as: UTF8.self)
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") - 10 + value
    }
}

extension SHA256Digest: Equatable {
    package static func == (left: SHA256Digest, right: SHA256Digest) -> Bool {
        ConstantTime.areEqual(left.bytes.span, right.bytes.span)
    }
}
