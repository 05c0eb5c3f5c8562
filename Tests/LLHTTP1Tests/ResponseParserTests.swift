import LLHTTP
import Testing

@Suite("The response parser")
struct ResponseParserTests {
    enum Outcome: Sendable, Equatable {
        case head(Int, BodyFraming)
        case needMore
        case reject(HTTPRefusal)
    }

    static let cases: [(String, Outcome)] = [
        ("HTTP/1.1 200 OK\r\n\r\n", .head(200, .undeclared)), ("HTTP/1.0 200 OK\r\n\r\n", .head(200, .undeclared)),
        ("HTTP/1.9 200 OK\r\n\r\n", .head(200, .undeclared)), ("HTTP/1.1 200\r\n\r\n", .head(200, .undeclared)),
        ("HTTP/1.1 200 \r\n\r\n", .head(200, .undeclared)),
        ("HTTP/1.1 599 \u{e9}\t!\r\nContent-Length: 0\r\n\r\n", .head(599, .length(0))),
        ("HTTP/1.1 200 OK\r\ncontent-LENGTH:\t 5 \t\r\n\r\nhello", .head(200, .length(5))),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", .head(200, .chunked)),
        ("HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n", .head(204, .length(0))),
        ("HTTP/1.1 304 No\r\nContent-Length: 900\r\n\r\n", .head(304, .length(0))),
        ("HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 103 Hint\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", .head(200, .undeclared)),
        ("HTTP/1.1 200 OK\r\nA: b\r\n", .needMore), ("", .needMore), ("HTT", .needMore),
        ("HTTP/1.1 100 Go\r\n\r\n", .needMore), ("HTTP/1.1 101 Up\r\n\r\n", .reject(.unexpectedUpgrade)),
        ("HTTP/2.0 200 OK\r\n\r\n", .reject(.unsupportedVersion)),
        ("http/1.1 200 OK\r\n\r\n", .reject(.malformedStatusLine)), ("<", .reject(.malformedStatusLine)),
        ("\r\nHTTP/1.1 200 OK\r\n\r\n", .reject(.malformedStatusLine)),
        ("HTTP/1.1  200 OK\r\n\r\n", .reject(.malformedStatusLine)),
        ("HTTP/1.1 20 OK\r\n\r\n", .reject(.malformedStatusLine)),
        ("HTTP/1.1 2000 OK\r\n\r\n", .reject(.malformedStatusLine)),
        ("HTTP/1.1 099 OK\r\n\r\n", .reject(.malformedStatusLine)),
        ("HTTP/1.1 600 OK\r\n\r\n", .reject(.malformedStatusLine)),
        ("HTTP/1.1 200 O\0K\r\n\r\n", .reject(.malformedStatusLine)),
        ("HTTP/1.1\r\n\r\n", .reject(.malformedStatusLine)), ("HTTP/11 200 OK\r\n\r\n", .reject(.malformedStatusLine)),
        ("HTTP/1.1 200 OK\n", .reject(.malformedLineEnd)), ("HTTP/1.1 200 OK\r\nA: b\n", .reject(.malformedLineEnd)),
        ("HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n", .reject(.malformedLineEnd)),
        ("HTTP/1.1 200 OK\r\nA\r\n\r\n", .reject(.malformedFieldLine)),
        ("HTTP/1.1 200 OK\r\n: b\r\n\r\n", .reject(.malformedFieldLine)),
        ("HTTP/1.1 200 OK\r\nA : b\r\n\r\n", .reject(.malformedFieldLine)),
        ("HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", .reject(.malformedFieldLine)),
        ("HTTP/1.1 200 OK\r\nA: \u{7f}\r\n\r\n", .reject(.malformedFieldValue)),
        ("HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n", .reject(.invalidContentLength)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n", .reject(.invalidContentLength)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999999\r\n\r\n", .reject(.invalidContentLength)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", .reject(.invalidContentLength)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n", .reject(.invalidTransferEncoding)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", .reject(.invalidTransferEncoding)),
        ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", .reject(.invalidTransferEncoding)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n", .reject(.conflictingFraming)),
    ]

    static let answersToConnect: [(String, Outcome)] = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", .head(200, .length(0))),
        ("HTTP/1.1 407 No\r\nContent-Length: 9\r\n\r\n", .head(407, .length(9))),
    ]

    @Test("Every response gets the same verdict, whole and byte by byte")
    func judged() {
        let cases = Self.cases.map { ($0.0, $0.1, false) } + Self.answersToConnect.map { ($0.0, $0.1, true) }
        for (text, expected, answersConnect) in cases {
            let bytes = Array(text.utf8)
            var whole = ResponseParser(headLimit: 1024, fieldLimit: 10, answersConnect: answersConnect)
            #expect(Self.outcome(&whole, bytes[...]) == expected, "\(text.debugDescription)")
            var pieces = ResponseParser(headLimit: 1024, fieldLimit: 10, answersConnect: answersConnect)
            var last = Outcome.needMore
            for count in 0...bytes.count where last == .needMore { last = Self.outcome(&pieces, bytes[..<count]) }
            #expect(last == expected, "\(text.debugDescription), byte by byte")
        }
    }

    @Test("Head and fields are bounded, interim responses included")
    func bounded() {
        for (text, refusal) in [
            ("HTTP/1.1 200 " + String(repeating: "x", count: 60), HTTPRefusal.headerSectionTooLarge),
            (String(repeating: "HTTP/1.1 102 Wait\r\n\r\n", count: 4), .headerSectionTooLarge),
            ("HTTP/1.1 200 OK\r\nA: b\r\nA: b\r\nA: b\r\n\r\n", .tooManyFields),
        ] {
            var parser = ResponseParser(headLimit: 64, fieldLimit: 2)
            #expect(Self.outcome(&parser, Array(text.utf8)[...]) == .reject(refusal))
        }
    }

    @Test("The body begins after the final head, and fields are ranges of the bytes")
    func ranges() throws {
        let text = "HTTP/1.1 103 Hint\r\nA: 1\r\n\r\nHTTP/1.1 200 OK\r\nB:  2 \r\nC:\r\n\r\nbody"
        let bytes = Array(text.utf8)
        var parser = ResponseParser(headLimit: 1024, fieldLimit: 10)
        let head = try #require(try parser.parse(bytes.span))
        #expect(String(decoding: bytes[head.byteCount...], as: UTF8.self) == "body")
        let fields = head.fields.map { field in
            String(decoding: bytes[field.name] + [0x3D] + bytes[field.value], as: UTF8.self)
        }
        #expect(fields == ["B=2", "C="])
    }

    static func outcome(_ parser: inout ResponseParser, _ bytes: ArraySlice<UInt8>) -> Outcome {
        do throws(HTTPRefusal) {
            guard let head = try parser.parse(bytes.span) else { return .needMore }
            return .head(head.status, head.framing)
        } catch {
            return .reject(error)
        }
    }
}
