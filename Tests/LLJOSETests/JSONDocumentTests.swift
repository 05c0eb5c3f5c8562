import LLJOSE
import Testing

/// The rule that a text breaks; nil if the reader accepts the text.
func fault(
    of text: [UInt8],
    limits: JSONLimits = JSONLimits(),
    marksRepeatedMembers: Bool = false
) -> JSONError.Reason? {
    var document = JSONDocument(limits: limits, marksRepeatedMembers: marksRepeatedMembers)
    do throws(JSONError) {
        try document.parse(text)
        return nil
    } catch {
        // A refused text must leave an empty document, so that nothing is read by mistake.
        return document.count == 0 ? error.reason : nil
    }
}

func fault(of text: String, limits: JSONLimits = JSONLimits()) -> JSONError.Reason? {
    fault(of: Array(text.utf8), limits: limits)
}

@Suite("The JSON reader")
struct JSONDocumentTests {
    @Test(
        "Every JSON text is read",
        arguments: [
            "null", "true", "false", "0", "-0", "1", "-1.5", "1e3", "1E+3", "1e-400", "123456789012345678901234567890",
            "\"\"", "\"a\"", "[]", "{}", "[[]]", "[1,2]", "{\"a\":1}", " \t\r\n{ \"a\" : [ 1 , { } ] } \n",
            "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\uD83D\\uDE00\"", "\"\u{7F}é€😀\u{10FFFF}\"", "\"\u{FEFF}\"",
            "{\"\":0,\" \":1}", "{\"a\":{\"a\":{\"a\":1}},\"b\":{\"a\":2}}", "\"\\u0000\"",
        ]
    )
    func acceptance(text: String) {
        #expect(fault(of: text) == nil)
    }

    @Test(
        "A text that is not JSON is refused for its reason",
        arguments: [
            ("", .empty), ("  ", .empty), ("\u{FEFF}{}", .byteOrderMark), ("{} x", .trailingBytes),
            ("{}{}", .trailingBytes), ("1 2", .trailingBytes), ("truefalse", .trailingBytes), ("{", .truncated),
            ("[", .truncated), ("[1", .truncated), ("[1,", .truncated), ("{\"a\"", .truncated),
            ("{\"a\":", .truncated), ("{\"a\":1", .truncated), ("{\"a\":1,", .truncated), ("\"a", .truncated),
            ("\"\\", .truncated), ("\"\\u12", .truncated), ("nul", .truncated), ("tru", .truncated),
            ("[1,]", .unexpectedByte), ("{,}", .unexpectedByte), ("{\"a\":1,}", .unexpectedByte),
            ("{a:1}", .unexpectedByte), ("{'a':1}", .unexpectedByte), ("{\"a\" 1}", .unexpectedByte),
            ("{\"a\":}", .unexpectedByte), ("{1:2}", .unexpectedByte), ("[1}", .unexpectedByte),
            ("{\"a\":1]", .unexpectedByte), ("]", .unexpectedByte), ("}", .unexpectedByte), (",", .unexpectedByte),
            ("[,1]", .unexpectedByte), ("[1 2]", .unexpectedByte), ("nulL", .unexpectedByte),
            ("True", .unexpectedByte), ("NaN", .unexpectedByte), ("Infinity", .unexpectedByte),
            ("+1", .unexpectedByte), (".5", .unexpectedByte), ("/* */1", .unexpectedByte), ("\u{A0}1", .unexpectedByte),
            ("-", .invalidNumber), ("01", .invalidNumber), ("-01", .invalidNumber), ("1.", .invalidNumber),
            ("1.e1", .invalidNumber), ("1e", .invalidNumber), ("1e+", .invalidNumber), ("-Infinity", .invalidNumber),
            ("0x1", .trailingBytes), ("1e400", .numberOutOfRange), ("-1e400", .numberOutOfRange),
            ("1e99999999999999999999", .numberOutOfRange), ("\"\n\"", .controlCharacter),
            ("\"\u{0}\"", .controlCharacter), ("\"\u{1F}\"", .controlCharacter), ("\"\t\"", .controlCharacter),
            ("\"\\a\"", .invalidEscape), ("\"\\'\"", .invalidEscape), ("\"\\u12G4\"", .invalidEscape),
            ("\"\\U0041\"", .invalidEscape), ("\"\\x41\"", .invalidEscape), ("\"\\uD800\"", .loneSurrogate),
            ("\"\\uD800x\"", .loneSurrogate), ("\"\\uDC00\"", .loneSurrogate), ("\"\\uD800\\n12345\"", .loneSurrogate),
            ("\"\\uD800\\uD800\"", .loneSurrogate), ("\"\\uD800\\u0041\"", .loneSurrogate),
            ("\"\\uDC00\\uD800\"", .loneSurrogate),
        ] as [(String, JSONError.Reason)]
    )
    func refusal(text: String, reason: JSONError.Reason) {
        #expect(fault(of: text) == reason)
    }

    @Test(
        "A string that is not UTF-8 is refused",
        arguments: [
            [0x80], [0xBF], [0xC0, 0xAF], [0xC1, 0xBF], [0xC2], [0xC2, 0x41], [0xE0, 0x80, 0xAF], [0xE0, 0x9F, 0xBF],
            [0xE2, 0x82], [0xE2, 0x28, 0xA1], [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF], [0xF0, 0x80, 0x80, 0xAF],
            [0xF0, 0x8F, 0xBF, 0xBF], [0xF0, 0x9F, 0x98], [0xF0, 0x9F, 0x28, 0x80], [0xF4, 0x90, 0x80, 0x80],
            [0xF5, 0x80, 0x80, 0x80], [0xFE], [0xFF], [0xE1, 0x80, 0xC0], [0xF1, 0x80, 0x80, 0x00],
        ] as [[UInt8]]
    )
    func invalidUTF8(bytes: [UInt8]) {
        let quote = UInt8(ascii: "\"")
        #expect(fault(of: [quote] + bytes + [quote]) == .invalidUTF8)
        // The reason is the same after eight plain bytes, which are read at once.
        #expect(fault(of: [quote] + Array("12345678".utf8) + bytes + [quote]) == .invalidUTF8)
        #expect(fault(of: [quote] + bytes) == .invalidUTF8)
    }

    @Test(
        "A repeated member is refused, at every depth and in every spelling",
        arguments: [
            "{\"a\":1,\"a\":1}", "{\"a\":1,\"b\":2,\"a\":3}", "{\"\\u0061\":1,\"a\":2}", "{\"a\":1,\"\\u0061\":2}",
            "{\"\\u0061\":1,\"\\u0061\":2}", "{\"x\":{\"a\":1,\"a\":2}}", "[{\"a\":1,\"a\":2}]", "{\"\":1,\"\":2}",
            "{\"é\":1,\"\\u00e9\":2}", "{\"😀\":1,\"\\uD83D\\ude00\":2}", "{\"a\\/b\":1,\"a/b\":2}",
            "{\"a\":{\"b\":1},\"c\":[{\"d\":1}],\"a\":0}", "{\"b\":{\"a\":1},\"a\":1,\"\\u0062\":1}",
        ]
    )
    func repeatedMember(text: String) {
        #expect(fault(of: text) == .repeatedMember)
        #expect(fault(of: Array(text.utf8), marksRepeatedMembers: true) == nil)
    }

    @Test("Names that only look alike are different members")
    func differentNames() {
        // Some have the same length, first and last eight bytes, so the filter cannot tell them apart.
        let names = [
            "12345678a12345678", "12345678b12345678", "axxbyyc", "ayxbyyc", "azxbyyc", "axybyyc", "axxbyzc", "é",
            "e\u{301}", "a", "A", "a ",
        ]
        let text = "{" + names.map { "\"\($0)\":0" }.joined(separator: ",") + "}"
        #expect(fault(of: text) == nil)
    }

    @Test("A repeated name is found at any place and of any length", arguments: 0...20)
    func repeatedNameAtTheEnd(length: Int) {
        let name = String("abcdefghijklmnopqrstu".prefix(length))
        for others in ["", "\"other\":0,", "\"a longer name than others\":0,"] {
            #expect(fault(of: "{\"\(name)\":0,\(others)\"\(name)\":0}") == .repeatedMember)
            #expect(fault(of: "{\"\(name)\":0,\(others)\"\(name)!\":0}") == nil)
        }
    }

    @Test(
        "A repeated name is found among 256, escaped or not, and all alike but for one byte",
        arguments: [false, true]
    )
    func manyLikeNames(isEscaped: Bool) {
        let names = (0..<256).map { number in
            let middle = String(UnicodeScalar(UInt16(0x4E00 + number)) ?? "?")
            let escaped = "\\u" + String(0x4E00 + number, radix: 16)
            return "\"" + String(repeating: "a", count: 50) + (isEscaped ? escaped : middle) + "aaaaaaaa\":0"
        }
        #expect(fault(of: "{" + names.joined(separator: ",") + "}") == nil)
        for index in [0, 1, 127, 254] {
            let members = names.dropLast() + [names[index]]
            #expect(fault(of: "{" + members.joined(separator: ",") + "}") == .repeatedMember)
        }
    }

    @Test("An object that names one member 256 times costs no more than three times one with 256 different names")
    func costOfRepeatedNames() throws {
        func cost(_ name: (Int) -> String) throws -> Duration {
            let members = (0..<256).map { #""\u0061\#(String(repeating: "b", count: 24))\#(name($0))":0"# }
            let text = Array("{\(members.joined(separator: ","))}".utf8)
            var document = JSONDocument()
            let runs = (0..<20).map { _ in ContinuousClock().measure { try? document.parse(text) } }
            return try #require(runs.min())
        }
        #expect(try cost { _ in "999" } <= cost { "\($0 + 100)" } * 3)
    }

    @Test("Bytes that a string may not hold unescaped are found at each place of a long one", arguments: 0...120)
    func specialBytes(place: Int) {
        func text(_ inside: [UInt8]) -> [UInt8] {
            let quote = UInt8(ascii: "\"")
            let plain = UInt8(ascii: "~")
            return [quote] + Array(repeating: plain, count: place) + inside + Array(repeating: plain, count: 60) + [
                quote
            ]
        }
        #expect(fault(of: text([])) == nil)
        #expect(fault(of: text([0x7F])) == nil)
        #expect(fault(of: text([0x00])) == .controlCharacter)
        #expect(fault(of: text([0x1F])) == .controlCharacter)
        #expect(fault(of: text([0x22])) == .trailingBytes)
        #expect(fault(of: text([0x5C])) == .invalidEscape)
        #expect(fault(of: text([0x80])) == .invalidUTF8)
        #expect(fault(of: text([0xFF])) == .invalidUTF8)
        #expect(fault(of: text([0xC3, 0xA9])) == nil)
    }

    @Test("Only the objects with repeated members are marked")
    func marking() throws {
        let bytes = Array("[{\"a\":1},{\"a\":1,\"a\":2},{\"b\":{\"c\":1,\"c\":1}}]".utf8)
        var document = JSONDocument(marksRepeatedMembers: true)
        try document.parse(bytes)
        let marks = (0..<document.count).map { document.isRepeating($0) }
        #expect(marks.filter { $0 }.count == 2)
        let isRootMarked = document.isRepeating(document.root)
        #expect(!isRootMarked)
    }

    @Test("Each limit is exact")
    func limits() {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        #expect(fault(of: nested(16)) == nil)
        #expect(fault(of: nested(17)) == .tooDeep)
        #expect(
            fault(of: String(repeating: "{\"a\":", count: 17) + "1" + String(repeating: "}", count: 17)) == .tooDeep
        )
        #expect(fault(of: String(repeating: "[", count: 60_000)) == .tooDeep)
        func members(_ count: Int) -> String {
            "{" + (0..<count).map { "\"\($0)\":0" }.joined(separator: ",") + "}"
        }
        #expect(fault(of: members(256)) == nil)
        #expect(fault(of: members(257)) == .tooManyMembers)
        func elements(_ count: Int) -> String {
            "[" + Array(repeating: "0", count: count).joined(separator: ",") + "]"
        }
        #expect(fault(of: elements(16_383)) == nil)
        #expect(fault(of: elements(16_384)) == .tooManyNodes)
        #expect(fault(of: "\"" + String(repeating: "a", count: 65_534) + "\"") == nil)
        #expect(fault(of: "\"" + String(repeating: "a", count: 65_535) + "\"") == .tooLong)
        #expect(fault(of: String(repeating: "9", count: 64)) == nil)
        #expect(fault(of: String(repeating: "9", count: 65)) == .numberOutOfRange)
    }

    @Test("Every prefix of a text is refused")
    func prefixes() {
        let text = Array("{\"a\":[1,-2.5e3,\"x\\u00e9\\uD83D\\uDE00é\"],\"b\":{\"c\":null,\"d\":[true,false]}}".utf8)
        #expect(fault(of: text) == nil)
        for count in 0..<text.count { #expect(fault(of: Array(text[..<count])) != nil) }
    }
}
