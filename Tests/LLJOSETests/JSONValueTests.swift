import LLJOSE
import Testing

@Suite("The values of a JSON text")
struct JSONValueTests {
    private func values(_ json: String) throws -> (string: String, double: Double?, integer: Int64?) {
        let bytes = Array(json.utf8)
        var document = JSONDocument()
        try document.parse(bytes)
        let span = bytes.span
        return (document.string(0, in: span), document.double(0, in: span), document.integer(0, in: span))
    }

    @Test(
        "A string is decoded with all its escapes",
        arguments: [
            ("\"\"", ""), ("\"abc\"", "abc"), ("\"https:\\/\\/x\"", "https://x"), ("\"a\\u0040b\"", "a@b"),
            ("\"\\b\\f\\n\\r\\t\\\"\\\\\"", "\u{8}\u{C}\n\r\t\"\\"), ("\"\\u00E9\\u20ac\"", "é€"),
            ("\"\\ud83d\\uDE00!\"", "😀!"), ("\"\\uDBFF\\uDFFF\"", "\u{10FFFF}"), ("\"\\u0000\"", "\0"),
            ("\"é€😀\"", "é€😀"), ("\"\\u07FF\\u0800\\uFFFF\"", "\u{7FF}\u{800}\u{FFFF}"),
        ]
    )
    func strings(json: String, value: String) throws {
        #expect(try Array(values(json).string.utf8) == Array(value.utf8))
        let inner = Array(json.utf8)
        #expect(JSONText.value(inner.span, 1..<inner.count - 1) == value)
    }

    @Test(
        "An escape that is cut short reads nothing outside its range",
        arguments: ["\\", "\\u", "\\u00", "\\uD83D", "\\uD83D\\"]
    )
    func truncatedEscapes(text: String) {
        let bytes = Array(text.utf8)
        #expect(JSONText.value(bytes.span, 0..<bytes.count).utf8.count <= 4)
    }

    @Test(
        "A number is read as the nearest double",
        arguments: [
            ("0", 0), ("-0", -0.0), ("1", 1), ("-17", -17), ("1.5", 1.5), ("1e3", 1000), ("1E-2", 0.01),
            ("9007199254740992", 9_007_199_254_740_992), ("9007199254740993", 9_007_199_254_740_992),
            ("123456789012345678901234567890", 123_456_789_012_345_677_877_719_597_056), ("1e308", 1e308),
            ("5e-324", Double.leastNonzeroMagnitude), ("1e-400", 0),
        ]
    )
    func doubles(json: String, value: Double) throws {
        let read = try values(json).double
        #expect(read == value)
        #expect(read?.sign == value.sign)
    }

    @Test(
        "An integer of at most 18 digits is exact, and nothing else is one",
        arguments: [
            ("0", 0), ("-0", 0), ("9007199254740993", 9_007_199_254_740_993), ("-5", -5),
            ("999999999999999999", 999_999_999_999_999_999), ("-999999999999999999", -999_999_999_999_999_999),
            ("1000000000000000000", nil), ("-1000000000000000000", nil), ("1.0", nil), ("1e3", nil), ("\"1\"", nil),
            ("true", nil),
        ] as [(String, Int64?)]
    )
    func integers(json: String, value: Int64?) throws {
        #expect(try values(json).integer == value)
    }

    @Test("A value that is not a number has no numeric value", arguments: ["\"1\"", "true", "null", "[]", "{}"])
    func notNumbers(json: String) throws {
        #expect(try values(json).double == nil)
    }

    @Test("A member is found by its name, in any spelling")
    func members() throws {
        let bytes = Array("{\"iss\":1,\"\\u0061ud\":[2,{\"iss\":3}],\"sub\":{\"x\":4},\"s\":5}".utf8)
        var document = JSONDocument()
        try document.parse(bytes)
        let span = bytes.span
        let values = [
            document.member("iss", of: 0, in: span).flatMap { document.integer($0, in: span) },
            document.member("s", of: 0, in: span).flatMap { document.integer($0, in: span) },
        ]
        #expect(values == [1, 5])
        let audience = document.member("aud", of: 0, in: span)
        let kind = audience.map { document.kind($0) }
        #expect(kind == .array)
        let missing = [
            document.member("x", of: 0, in: span), document.member("is", of: 0, in: span),
            document.member("isss", of: 0, in: span), document.member("aud\\", of: 0, in: span),
            audience.flatMap { document.member("iss", of: $0, in: span) },
        ]
        #expect(missing == [nil, nil, nil, nil, nil])
        let counts = [document.children(of: 0).count, audience.map { document.children(of: $0).count }]
        #expect(counts == [4, 2])
    }

    @Test("A string equals its value and no other, escaped or not")
    func equality() throws {
        let bytes = Array("[\"abc\",\"\\u0061bc\",7,\"\"]".utf8)
        var document = JSONDocument()
        try document.parse(bytes)
        let span = bytes.span
        let texts: [StaticString] = ["abc", "abd", "ab", "abcd", ""]
        var equal: [[String]] = []
        for node in 1...4 {
            equal.append(texts.filter { document.string(node, equals: $0, in: span) }.map(\.description))
        }
        #expect(equal == [["abc"], ["abc"], [], [""]])
    }

    @Test("Exactly the plain bytes of all 256 need no escape, at every place")
    func plainText() {
        for place in 0..<3 {
            for byte in UInt8.min...UInt8.max {
                var text = [UInt8](repeating: UInt8(ascii: "p"), count: 3)
                text[place] = byte
                let isPlain = (0x20...0x7F).contains(byte) && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
                #expect(JSONText.isPlain(text.span) == isPlain)
            }
        }
    }
}
