import LLBytes
import Testing

/// The decoded bytes; nil if the text is refused.
func decoded(_ text: String) -> [UInt8]? {
    let bytes = Array(text.utf8)
    var buffer: [UInt8] = [1, 2, 3]
    guard Base64URL.decode(bytes.span, 0..<bytes.count, into: &buffer) else {
        return buffer.isEmpty ? nil : [0xBA, 0xD0]
    }
    return buffer
}

@Suite("base64url")
struct Base64URLTests {
    @Test(
        "The vectors of RFC 4648 section 10, without padding, go both ways",
        arguments: [
            ("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"), ("fooba", "Zm9vYmE"),
            ("foobar", "Zm9vYmFy"),
        ]
    )
    func vectors(plain: String, text: String) {
        #expect(decoded(text) == Array(plain.utf8))
        #expect(Base64URL.encode(plain.utf8) == text)
    }

    @Test("Every length and every byte survives a round trip")
    func roundTrip() {
        for count in 0...70 {
            for start in stride(from: 0, to: 256, by: 37) {
                let bytes = (0..<count).map { UInt8(truncatingIfNeeded: start + $0 * 7) }
                #expect(decoded(Base64URL.encode(bytes)) == bytes)
            }
        }
        let all = (0...255).map { UInt8($0) }
        #expect(decoded(Base64URL.encode(all)) == all)
    }

    @Test(
        "Each of the 64 digits has its value, and every other byte is refused, at every place",
        arguments: [12, 16, 44]
    )
    func alphabet(count: Int) {
        let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        for place in 0..<count {
            for byte in UInt8.min...UInt8.max {
                var text = [UInt8](repeating: UInt8(ascii: "A"), count: count)
                text[place] = byte
                var buffer: [UInt8] = []
                let isAccepted = Base64URL.decode(text.span, 0..<count, into: &buffer)
                guard let value = digits.firstIndex(of: byte) else {
                    #expect(!isAccepted && buffer.isEmpty)
                    continue
                }
                var expected = [UInt8](repeating: 0, count: count / 4 * 3)
                let bits = UInt32(value) << UInt32(18 - 6 * (place % 4))
                for index in 0..<3 { expected[place / 4 * 3 + index] = UInt8(bits >> UInt32(16 - 8 * index) & 0xFF) }
                #expect(isAccepted && buffer == expected)
            }
        }
    }

    @Test("Unused bits must be zero at every length, and a single extra digit is refused")
    func unusedBits() {
        let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        for count in 1...70 {
            for (value, digit) in digits.enumerated() {
                // The bytes before the range are not digits and must not be read.
                let text = [UInt8](repeating: 0xFF, count: 3) + [UInt8](repeating: 0x5F, count: count - 1) + [digit]
                var buffer: [UInt8] = []
                let isAccepted = Base64URL.decode(text.span, 3..<3 + count, into: &buffer)
                let isWhole = count % 4 == 0 || count % 4 == 2 && value % 16 == 0 || count % 4 == 3 && value % 4 == 0
                #expect(isAccepted == isWhole && buffer.count == (isWhole ? count * 6 / 8 : 0))
            }
        }
    }

    @Test(
        "A second spelling of a value is refused",
        arguments: [
            "Zg==", "Zg=", "Zm8=", "=", "Z", "Zm9vY", "Zm9vYmFyZ", "Zh", "Zv", "Zm9", "Zm-", "Zm9vYh", "Zm9vYmF",
            "Zm9v Yg", "Zm9v\nYg", "\nZm9v", "Zm9v\n", "Zm9v?", "Zm+v", "Zm/v", "Zm9vYmFyZm9vYmF", "Zm9vYmFyZm9vYh",
            "Zm9v\u{0}mFy", "é", "Ｚｍ９ｖ",
        ]
    )
    func strictness(text: String) {
        #expect(decoded(text) == nil)
    }
}
