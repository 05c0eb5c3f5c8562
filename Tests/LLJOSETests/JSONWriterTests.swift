import LLJOSE
import Testing

@Suite("JSON output")
struct JSONWriterTests {
    @Test(
        "A string is escaped so that it stays on one line",
        arguments: [
            ("", #""""#), ("plain", #""plain""#), ("q\"b\\", #""q\"b\\""#), ("a\nb\r\tc", #""a\nb\r\tc""#),
            ("\u{0}\u{1f}\u{7f}", "\"\\u0000\\u001f\u{7f}\""), ("é😀", "\"é😀\""),
        ]
    )
    func strings(text: String, json: String) {
        var bytes: [UInt8] = []
        JSONWriter.string(text, to: &bytes)
        #expect(String(decoding: bytes, as: UTF8.self) == json)
        var fromSpan: [UInt8] = []
        JSONWriter.string(Array(text.utf8).span, to: &fromSpan)
        #expect(fromSpan == bytes)
    }

    @Test("Whole numbers of every size are written in decimal", arguments: [0, 7, -7, 10, 1_700_003_600, .max, .min])
    func integers(value: Int) {
        var bytes: [UInt8] = []
        JSONWriter.integer(value, to: &bytes)
        #expect(String(decoding: bytes, as: UTF8.self) == String(value))
    }
}
