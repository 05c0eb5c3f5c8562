import LLHTTP
import Testing

@Suite("The response parser")
struct ResponseParserTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let text: String
        let expected: Expected
        var answersConnect = false
        var testDescription: String { text.debugDescription }

        enum Expected: Sendable, Equatable {
            case head(Int, BodyFraming)
            case needMore
            case reject(HTTPRefusal)
        }

        init(_ text: String, _ expected: Expected, answersConnect: Bool = false) {
            self.text = text
            self.expected = expected
            self.answersConnect = answersConnect
        }
    }

    static let cases: [Case] = [
        .init("HTTP/1.1 200 OK\r\n\r\n", .head(200, .undeclared)),
        .init("HTTP/1.0 200 OK\r\n\r\n", .head(200, .undeclared)),
        .init("HTTP/1.9 200 OK\r\n\r\n", .head(200, .undeclared)),
        .init("HTTP/1.1 200\r\n\r\n", .head(200, .undeclared)),
        .init("HTTP/1.1 200 \r\n\r\n", .head(200, .undeclared)),
        .init("HTTP/1.1 599 \u{e9}\t!\r\nContent-Length: 0\r\n\r\n", .head(599, .length(0))),
        .init("HTTP/1.1 200 OK\r\ncontent-LENGTH:\t 5 \t\r\n\r\nhello", .head(200, .length(5))),
        .init("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", .head(200, .chunked)),
        .init("HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n", .head(204, .length(0))),
        .init("HTTP/1.1 304 No\r\nContent-Length: 900\r\n\r\n", .head(304, .length(0))),
        .init("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", .head(200, .length(0)), answersConnect: true),
        .init("HTTP/1.1 407 No\r\nContent-Length: 9\r\n\r\n", .head(407, .length(9)), answersConnect: true),
        .init(
            "HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 103 Hint\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
            .head(200, .undeclared)
        ),
        .init("HTTP/1.1 200 OK\r\nA: b\r\n", .needMore), .init("", .needMore), .init("HTT", .needMore),
        .init("HTTP/1.1 100 Go\r\n\r\n", .needMore),
        .init("HTTP/1.1 101 Up\r\n\r\n", .reject(.unexpectedUpgrade)),
        .init("HTTP/2.0 200 OK\r\n\r\n", .reject(.unsupportedVersion)),
        .init("http/1.1 200 OK\r\n\r\n", .reject(.malformedStatusLine)),
        .init("<", .reject(.malformedStatusLine)), .init("\r\nHTTP/1.1 200 OK\r\n\r\n", .reject(.malformedStatusLine)),
        .init("HTTP/1.1  200 OK\r\n\r\n", .reject(.malformedStatusLine)),
        .init("HTTP/1.1 20 OK\r\n\r\n", .reject(.malformedStatusLine)),
        .init("HTTP/1.1 2000 OK\r\n\r\n", .reject(.malformedStatusLine)),
        .init("HTTP/1.1 099 OK\r\n\r\n", .reject(.malformedStatusLine)),
        .init("HTTP/1.1 600 OK\r\n\r\n", .reject(.malformedStatusLine)),
        .init("HTTP/1.1 200 O\0K\r\n\r\n", .reject(.malformedStatusLine)),
        .init("HTTP/1.1\r\n\r\n", .reject(.malformedStatusLine)),
        .init("HTTP/11 200 OK\r\n\r\n", .reject(.malformedStatusLine)),
        .init("HTTP/1.1 200 OK\n", .reject(.malformedLineEnd)),
        .init("HTTP/1.1 200 OK\r\nA: b\n", .reject(.malformedLineEnd)),
        .init("HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n", .reject(.malformedLineEnd)),
        .init("HTTP/1.1 200 OK\r\nA\r\n\r\n", .reject(.malformedFieldLine)),
        .init("HTTP/1.1 200 OK\r\n: b\r\n\r\n", .reject(.malformedFieldLine)),
        .init("HTTP/1.1 200 OK\r\nA : b\r\n\r\n", .reject(.malformedFieldLine)),
        .init("HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", .reject(.malformedFieldLine)),
        .init("HTTP/1.1 200 OK\r\nA: \u{7f}\r\n\r\n", .reject(.malformedFieldValue)),
        .init("HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n", .reject(.invalidContentLength)),
        .init("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n", .reject(.invalidContentLength)),
        .init("HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999999\r\n\r\n", .reject(.invalidContentLength)),
        .init("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", .reject(.invalidContentLength)),
        .init("HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n", .reject(.invalidTransferEncoding)),
        .init("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", .reject(.invalidTransferEncoding)),
        .init("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", .reject(.invalidTransferEncoding)),
        .init(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n",
            .reject(.conflictingFraming)
        ),
    ]

    @Test("Every response gets the same verdict, whole and byte by byte", arguments: cases)
    func judged(_ test: Case) {
        let bytes = Array(test.text.utf8)
        var whole = ResponseParser(headLimit: 1024, fieldLimit: 10, answersConnect: test.answersConnect)
        #expect(Self.outcome(&whole, bytes[...]) == test.expected)
        var pieces = ResponseParser(headLimit: 1024, fieldLimit: 10, answersConnect: test.answersConnect)
        var last = Case.Expected.needMore
        for count in 0...bytes.count {
            last = Self.outcome(&pieces, bytes[..<count])
            if last != .needMore { break }
        }
        #expect(last == test.expected)
    }

    @Test("Head and fields are bounded, interim responses included")
    func bounded() {
        var parser = ResponseParser(headLimit: 64, fieldLimit: 2)
        let long = "HTTP/1.1 200 " + String(repeating: "x", count: 60)
        #expect(Self.outcome(&parser, Array(long.utf8)[...]) == .reject(.headerSectionTooLarge))
        parser = ResponseParser(headLimit: 64, fieldLimit: 2)
        let interim = String(repeating: "HTTP/1.1 102 Wait\r\n\r\n", count: 4)
        #expect(Self.outcome(&parser, Array(interim.utf8)[...]) == .reject(.headerSectionTooLarge))
        parser = ResponseParser(headLimit: 64, fieldLimit: 2)
        let fields = "HTTP/1.1 200 OK\r\nA: b\r\nA: b\r\nA: b\r\n\r\n"
        #expect(Self.outcome(&parser, Array(fields.utf8)[...]) == .reject(.tooManyFields))
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

    @Test("Random bytes and random cuts of good responses never trap")
    func random() {
        var generator = SystemRandomNumberGenerator()
        let seeds = Self.cases.map { Array($0.text.utf8) }
        for _ in 0..<20_000 {
            var bytes = seeds.randomElement(using: &generator) ?? []
            for _ in 0..<Int.random(in: 0...4, using: &generator) where !bytes.isEmpty {
                let index = Int.random(in: 0..<bytes.count, using: &generator)
                switch Int.random(in: 0..<3, using: &generator) {
                case 0: bytes[index] = UInt8.random(in: 0...255, using: &generator)
                case 1: bytes.remove(at: index)
                default: bytes.insert([0x0D, 0x0A, 0x20, 0x3A].randomElement(using: &generator) ?? 0, at: index)
                }
            }
            var whole = ResponseParser(headLimit: 128, fieldLimit: 3)
            let outcome = Self.outcome(&whole, bytes[...])
            var pieces = ResponseParser(headLimit: 128, fieldLimit: 3)
            let cut = Int.random(in: 0...bytes.count, using: &generator)
            let early = Self.outcome(&pieces, bytes[..<cut])
            let late = early == .needMore ? Self.outcome(&pieces, bytes[...]) : early
            // A longer piece may run into the size limit first; otherwise the cut changes nothing.
            if outcome != .reject(.headerSectionTooLarge), late != .reject(.headerSectionTooLarge) {
                #expect(late == outcome)
            }
        }
    }

    static func outcome(_ parser: inout ResponseParser, _ bytes: ArraySlice<UInt8>) -> Case.Expected {
        do throws(HTTPRefusal) {
            guard let head = try parser.parse(bytes.span) else { return .needMore }
            return .head(head.status, head.framing)
        } catch {
            return .reject(error)
        }
    }
}
