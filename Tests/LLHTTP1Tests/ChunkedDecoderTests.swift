import LLHTTP
import Testing

@Suite("Chunked coding")
struct ChunkedDecoderTests {
    private func decode(
        _ text: String,
        limits: HTTPLimits = HTTPLimits(),
        bodyLimit: Int = 1_000,
        inSingleBytes: Bool = false
    ) -> (content: String, end: End, used: Int) {
        let bytes = text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
        var decoder = ChunkedDecoder(limits: limits, bodyLimit: bodyLimit)
        var content: [UInt8] = []
        var position = 0
        var visible = inSingleBytes ? 0 : bytes.count
        while true {
            let end: End
            do throws(HTTPRefusal) {
                switch try decoder.next(in: bytes.span.extracting(0..<visible), from: &position) {
                case .data(let range):
                    content += bytes[range]
                    continue
                case .needMore where visible < bytes.count:
                    visible += 1
                    continue
                case .needMore: end = .needMore
                case .complete: end = .complete
                }
            } catch {
                end = .reject(error)
            }
            return (String(decoding: content, as: UTF8.self), end, position)
        }
    }

    private enum End: Equatable { case complete, needMore, reject(HTTPRefusal) }

    @Test(
        "Content is decoded from any pieces, and the next message is left alone",
        arguments: [
            ("0\r\n\r\n", ""), ("5\r\nhello\r\n0\r\n\r\n", "hello"), ("5;a\r\nhello\r\n00\r\n\r\n", "hello"),
            ("A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", "01234567890123456789"),
            ("1 ; a=\"b;\\\" c\" ;d\r\nx\r\n0\r\nTrailer: v\r\nOther:\r\n\r\n", "x"),
            ("2\r\n\r\n\r\n0\r\n\r\n", "\r\n"),
            // The names only begin like those that are refused.
            ("0\r\nHosts: a\r\nHos: b\r\nContent-Lengt: 1\r\nContent-Lengths: 1\r\n\r\n", ""),
        ]
    )
    func content(text: String, wanted: String) {
        for inSingleBytes in [false, true] {
            let result = decode(text + "GET", inSingleBytes: inSingleBytes)
            #expect(result.content == wanted)
            #expect(result.end == .complete)
            #expect(result.used == text.utf8.count)
        }
    }

    @Test(
        "A malformed coding is refused",
        arguments: [
            ("\r\n", .malformedChunk), ("g\r\n", .malformedChunk), ("+5\r\n", .malformedChunk),
            ("0x5\r\n", .malformedChunk), (" 5\r\n", .malformedChunk), ("5 \r\n", .malformedChunk),
            ("5\n", .malformedChunk), ("5\r\r", .malformedLineEnd), ("-1\r\n", .malformedChunk),
            ("11111111111111111\r\n", .malformedChunk), ("ffffffffffffffff\r\n", .malformedChunk),
            ("1\r\nxx", .malformedChunk), ("1\r\nx\n", .malformedChunk), ("1\r\nx\rx", .malformedChunk),
            ("1;\r\n", .malformedChunk), ("1;=a\r\n", .malformedChunk), ("1;a =b\r\n", .malformedChunk),
            ("1;a=\"b\r\n", .malformedChunk), ("1;a=b c\r\n", .malformedChunk), ("1;a\n", .malformedChunk),
            ("1;a\0\r\n", .malformedChunk), ("1;a=\"\n\"\r\n", .malformedChunk), ("1;a\r\r", .malformedLineEnd),
            ("0\r\nX : a\r\n", .malformedTrailer), ("0\r\n X: a\r\n", .malformedTrailer),
            ("0\r\nX: a\r\n b\r\n", .malformedTrailer), ("0\r\nX: a\n", .malformedLineEnd),
            ("0\r\nX\r\n", .malformedTrailer), ("0\r\nX: \0\r\n", .malformedTrailer), ("0\r\n\rx", .malformedLineEnd),
            ("0\r\ncontent-LENGTH: 5\r\n", .malformedTrailer), ("0\r\nHost: a\r\n", .malformedTrailer),
            ("0\r\nTransfer-Encoding: a\r\n", .malformedTrailer),
        ] as [(String, HTTPRefusal)]
    )
    func refusals(text: String, refusal: HTTPRefusal) {
        #expect(decode(text).end == .reject(refusal))
        #expect(decode(text, inSingleBytes: true).end == .reject(refusal))
    }

    @Test("Each limit is kept to the byte")
    func limits() {
        #expect(decode("3\r\nabc\r\n0\r\n\r\n", bodyLimit: 3).end == .complete)
        #expect(decode("4\r\n", bodyLimit: 3).end == .reject(.bodyTooLarge))
        #expect(decode("2\r\nab\r\n2\r\n", bodyLimit: 3).end == .reject(.bodyTooLarge))
        var limits = HTTPLimits()
        limits.chunkCount = 2
        #expect(decode("1\r\na\r\n0\r\n\r\n", limits: limits).end == .complete)
        #expect(decode("1\r\na\r\n1\r\na\r\n0", limits: limits).end == .reject(.tooManyChunks))
        limits.chunkExtensionBytes = 4
        #expect(decode("1;a\r\na\r\n0\r\n\r\n", limits: limits).end == .complete)
        #expect(decode("1;abc\r\n", limits: limits).end == .reject(.chunkExtensionsTooLong))
        limits.trailerSectionBytes = 6
        #expect(decode("0\r\nA: b\r\n\r\n", limits: limits).end == .complete)
        #expect(decode("0\r\nA: bcd\r\n\r\n", limits: limits).end == .reject(.trailersTooLarge))
    }
}
