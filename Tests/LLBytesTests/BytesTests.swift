import LLBytes
import Testing

// The test library's macros cannot take spans as arguments.
private func equal(_ bytes: [UInt8], _ range: Range<Int>, _ other: [UInt8]) -> Bool {
    bytes.span.equal(range, other.span)
}
private func equal(_ bytes: [UInt8], _ range: Range<Int>, _ text: StaticString) -> Bool {
    bytes.span.equal(range, text)
}
private func alike(_ bytes: [UInt8], _ range: Range<Int>, _ text: StaticString) -> Bool {
    bytes.span.equalIgnoringCase(range, text)
}
private func first(_ byte: UInt8, in bytes: [UInt8], from start: Int) -> Int {
    bytes.span.firstOffset(of: byte, from: start)
}

@Suite("Bytes")
struct BytesTests {
    @Test("A text equals only itself, for every length, offset and place of a difference")
    func equality() {
        let text = Array("abcdefghijklmnopqrstuvwxyz0123456789".utf8)
        for length in 0...text.count {
            let part = Array(text[..<length])
            for offset in 0...3 {
                let bytes = [UInt8](repeating: 0x2E, count: offset) + part + [0x2E]
                let range = offset..<offset + length
                #expect(equal(bytes, range, part))
                #expect(!equal(bytes, range, part + [0x2E]))
                for place in 0..<length {
                    var other = part
                    other[place] ^= 1
                    #expect(!equal(bytes, range, other))
                }
            }
        }
    }

    @Test(
        "A constant is compared whole, with or without regard to letter case",
        arguments: [
            ("host", "host", true, true), ("HoSt", "host", false, true), ("hosts", "host", false, false),
            ("TRANSFER-encoding", "transfer-encoding", false, true),
            ("transfer-encodinG", "transfer-encoding", false, true),
            ("transfer-encodinh", "transfer-encoding", false, false),
            // These bytes differ from the constant's only in the case bit, and are not letters.
            ("content\u{0D}length", "content-length", false, false), ("@content", "`content", false, false),
            ("[content", "{content", false, false), ("", "", true, true),
        ] as [(String, String, Bool, Bool)]
    )
    func constants(text: String, constant: String, isEqual: Bool, isAlike: Bool) throws {
        let bytes = Array(text.utf8)
        let constants: [String: StaticString] = [
            "host": "host", "transfer-encoding": "transfer-encoding", "content-length": "content-length",
            "`content": "`content", "{content": "{content", "": "",
        ]
        let known = try #require(constants[constant])
        #expect(equal(bytes, bytes.indices, known) == isEqual)
        #expect(alike(bytes, bytes.indices, known) == isAlike)
        #expect(!equal(bytes, 0..<bytes.count + 1, known))
        #expect(!alike(bytes, 0..<bytes.count + 1, known))
    }

    @Test("The first occurrence of a byte is found at any place")
    func search() {
        for count in 0..<70 {
            for place in 0..<count {
                var bytes = [UInt8](repeating: 0x61, count: count)
                bytes[place] = 0x2E
                #expect(first(0x2E, in: bytes, from: 0) == place)
                #expect(first(0x2E, in: bytes, from: place + 1) == count)
            }
        }
    }

    @Test("Hexadecimal digits are decoded in either case")
    func hexadecimal() {
        let all = (0...255).map { UInt8($0) }
        let text = Hexadecimal.encode(all)
        #expect(text.utf8.count == 512 && text == text.lowercased())
        #expect(Hexadecimal.decode(text.utf8) == all)
        #expect(Hexadecimal.decode(text.uppercased().utf8) == all)
        for refused in ["0", "0g", "g0", " 0", "0x", "é0", "000"] { #expect(Hexadecimal.decode(refused.utf8) == nil) }
        for byte in all {
            let digit = Character(Unicode.Scalar(byte)).hexDigitValue.flatMap { byte < 0x80 ? UInt8($0) : nil }
            #expect(Hexadecimal.value(byte) == digit)
        }
    }

    @Test("Percent-encoding survives a round trip, and a broken escape is refused")
    func percent() {
        let text = String(decoding: (1...127).map { UInt8($0) }, as: UTF8.self) + "é漢"
        let encoded = Array(PercentEncoding.encode(text).utf8)
        #expect(PercentEncoding.decode(encoded.span, encoded.indices) == Array(text.utf8))
        #expect(PercentEncoding.encode("aZ0-._~") == "aZ0-._~")
        #expect(PercentEncoding.encode(" +%/é") == "%20%2B%25%2F%C3%A9")
        func decoded(_ text: String, isForm: Bool = false) -> String? {
            let bytes = Array(text.utf8)
            let decoded = PercentEncoding.decode(bytes.span, bytes.indices, isForm: isForm)
            return decoded.map { String(decoding: $0, as: UTF8.self) }
        }
        #expect(decoded("a+b%2b") == "a+b+" && decoded("a+b%2B", isForm: true) == "a b+")
        for broken in ["%", "%4", "a%", "%g0", "%0g", "%%41"] { #expect(decoded(broken) == nil) }
    }

    @Test("Decimal numbers have only digits")
    func decimal() {
        func parsed(_ text: String) -> Int? {
            let bytes = Array(text.utf8)
            return DecimalNumber.parse(bytes.span, bytes.indices)
        }
        #expect(parsed("0") == 0 && parsed("80") == 80 && parsed("999999999999999999") == 999_999_999_999_999_999)
        for refused in ["", "00", "01", "+1", "-1", " 1", "1 ", "1000000000000000000", "x"] {
            #expect(parsed(refused) == nil)
        }
    }

    @Test("Numbers in sentences have a comma before each three digits")
    func grouped() {
        let numbers = [0, 7, 999, 1_000, 32_768, 1_048_576, -999, -1_000, -123_456]
        let words = ["0", "7", "999", "1,000", "32,768", "1,048,576", "-999", "-1,000", "-123,456"]
        #expect(numbers.map { DecimalNumber.grouped($0) } == words)
    }

    @Test("Numbers are appended in the form of the standard library")
    func numbers() {
        for value in [0, 1, -1, 9, 10, 99, 100, -101, 1_234_567, Int.max, Int.min] {
            var bytes: [UInt8] = []
            bytes.append(addingCapacity: 21) { (output: inout OutputSpan<UInt8>) in output.append(decimal: value) }
            #expect(String(decoding: bytes, as: UTF8.self) == String(value))
        }
        for value in [0, 1, 0xF, 0x10, 0xDEAD_BEEF, UInt64.max] {
            var bytes: [UInt8] = []
            bytes.append(addingCapacity: 16) { (output: inout OutputSpan<UInt8>) in output.append(hexadecimal: value) }
            #expect(String(decoding: bytes, as: UTF8.self) == String(value, radix: 16))
        }
    }

    @Test(
        "base64 is strict about padding, alphabet and unused bits (RFC 4648 section 10)",
        arguments: [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("?>~", "Pz5+")]
    )
    func base64(text: String, encoded: String) {
        #expect(Base64.encode(Array(text.utf8)) == encoded)
        func decoded(_ text: String) -> [UInt8]? {
            let bytes = Array(text.utf8)
            return Base64.decode(bytes.span, bytes.indices)
        }
        #expect(decoded(encoded) == Array(text.utf8))
        for broken in ["Zg", "Zg=", "Zh==", "Zm9=", "Z===", "====", "-_-_", "Zm9v\n", "Zg==Zg=="] {
            #expect(decoded(broken) == nil)
        }
    }
}
