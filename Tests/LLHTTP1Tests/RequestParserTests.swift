import LLBytes
import LLHTTP
import LLTestSupport
import Testing

@Suite("The grammar of request heads")
struct RequestParserTests {
    /// Compares values read from noncopyable types, which the macro cannot capture.
    private func check<Value: Equatable>(
        _ actual: Value,
        _ wanted: Value,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(actual == wanted, sourceLocation: sourceLocation)
    }

    /// Parses the bytes whole and one by one; both outcomes must be equal.
    private func parse(_ text: String, limits: HTTPLimits = HTTPLimits()) -> HeadReader.Outcome {
        let bytes = text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
        var whole = HeadReader(limits: limits)
        let outcome = whole.parse(bytes.span)
        var single = HeadReader(limits: limits)
        var last = HeadReader.Outcome.needMore
        for end in 1..<(bytes.count + 1) where last == .needMore { last = single.parse(bytes.span.extracting(0..<end)) }
        #expect(last == outcome)
        return outcome
    }

    @Test(
        "A malformed request line is refused",
        arguments: [
            .malformedTarget: [
                "GET  / HTTP/1.1\r\n", "GET /\r\n", "GET /\u{7F} HTTP/1.1\r\n", "GET /\u{80} HTTP/1.1\r\n",
                "GET /a#b HTTP/1.1\r\n", "GET /a\\b HTTP/1.1\r\n", "GET /a%2 HTTP/1.1\r\n", "GET /a%zz HTTP/1.1\r\n",
                "GET /a%00 HTTP/1.1\r\n", "GET /a%0d%0ab HTTP/1.1\r\n", "GET /[a] HTTP/1.1\r\n", "GET a HTTP/1.1\r\n",
                "GET * HTTP/1.1\r\n", "GET ftp://a/ HTTP/1.1\r\n", "GET http:///a HTTP/1.1\r\n",
                "GET http://u@h/ HTTP/1.1\r\n", "GET http://h:1a/ HTTP/1.1\r\n", "GET h:443 HTTP/1.1\r\n",
            ],
            .malformedRequestLine: [
                " GET / HTTP/1.1\r\n", "\tGET / HTTP/1.1\r\n", "\0", "\u{16}\u{3}\u{1}", "G@T / HTTP/1.1\r\n",
                "GET / http/1.1\r\n", "GET / HTTP/1.1 \r\n", "GET / HTTP/1\r\n", "GET / HTTP/1.10\r\n",
                "GET / HTTP/+1.1\r\n", "GET / HTTP/1.1\n", "GET\t/ HTTP/1.1\r\n", "\r\n\r\n\r\n\r\n\r\n", "\n",
            ],
            .malformedLineEnd: ["GET / HTTP/1.1\r\r", "\rG"],
            .connectUnsupported: ["CONNECT h:443 HTTP/1.1\r\n", "CONNECT h HTTP/1.1\r\n", "CONNECT / HTTP/1.1\r\n"],
            .unsupportedVersion: ["PRI * HTTP/2.0\r\n", "GET / HTTP/0.9\r\n"],
            .invalidTransferEncoding: ["POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"],
        ] as [HTTPRefusal: [String]]
    )
    func requestLine(refusal: HTTPRefusal, texts: [String]) {
        for text in texts { #expect(parse(text) == .reject(refusal), "\(text.debugDescription)") }
    }

    @Test(
        "A malformed or ambiguous header section is refused",
        arguments: [
            ("Host : a\r\n", .malformedFieldLine), (" Host: a\r\n", .malformedFieldLine),
            ("Host: a\r\n b\r\n", .malformedFieldLine), ("Host\r\n", .malformedFieldLine),
            (": a\r\n", .malformedFieldLine), ("Ho st: a\r\n", .malformedFieldLine),
            ("X: a\u{0}b\r\n", .malformedFieldValue), ("X: a\u{7F}b\r\n", .malformedFieldValue),
            ("X: a\u{1}\r\n", .malformedFieldValue), ("X: a\rb\r\n", .malformedLineEnd),
            ("X: a\n", .malformedLineEnd), ("\n", .malformedFieldLine), ("\r\r", .malformedLineEnd),
            ("\r\n", .invalidHost), ("Host: a\r\nHost: a\r\n\r\n", .invalidHost), ("Host:\r\n\r\n", .invalidHost),
            ("Host: a b\r\n\r\n", .invalidHost), ("Host: u@a\r\n\r\n", .invalidHost),
            ("Host: a/b\r\n\r\n", .invalidHost), ("Host: a,b\r\n\r\n", .invalidHost),
            ("Host: a:65536\r\n\r\n", .invalidHost), ("Host: a:+1\r\n\r\n", .invalidHost),
            ("Host: ::1\r\n\r\n", .invalidHost), ("Host: [::1\r\n\r\n", .invalidHost),
            ("Host: [1::2::3]\r\n\r\n", .invalidHost), ("Host: [:1]\r\n\r\n", .invalidHost),
            ("Host: [1:2:3:4:5:6:7:8:9]\r\n\r\n", .invalidHost), ("Host: [::1.2.3.256]\r\n\r\n", .invalidHost),
            ("Host: a\r\nContent-Length: +5\r\n\r\n", .invalidContentLength),
            ("Host: a\r\nContent-Length: -1\r\n\r\n", .invalidContentLength),
            ("Host: a\r\nContent-Length: 0x5\r\n\r\n", .invalidContentLength),
            ("Host: a\r\nContent-Length: 5, 5\r\n\r\n", .invalidContentLength),
            ("Host: a\r\nContent-Length: 5 5\r\n\r\n", .invalidContentLength),
            ("Host: a\r\nContent-Length: 05\r\n\r\n", .invalidContentLength),
            ("Host: a\r\nContent-Length:\r\n\r\n", .invalidContentLength),
            ("Host: a\r\nContent-Length: 99999999999999999999\r\n\r\n", .invalidContentLength),
            ("Host: a\r\nContent-Length: 5\r\ncontent-length: 5\r\n\r\n", .invalidContentLength),
            ("Host: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", .conflictingFraming),
            ("Host: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", .conflictingFraming),
            ("Host: a\r\nTransfer-Encoding: identity\r\n\r\n", .invalidTransferEncoding),
            ("Host: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", .invalidTransferEncoding),
            ("Host: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", .invalidTransferEncoding),
            ("Host: a\r\nTransfer-Encoding: chunked;q=1\r\n\r\n", .invalidTransferEncoding),
            ("Host: a\r\nTransfer-Encoding: ,chunked\r\n\r\n", .unsupportedTransferCoding),
            ("Host: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n", .invalidTransferEncoding),
            ("Host: a\r\nTransfer-Encoding:\r\n\r\n", .invalidTransferEncoding),
            ("Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", .invalidTransferEncoding),
            ("Host: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", .unsupportedTransferCoding),
            ("Host: a\r\nExpect: 200-ok\r\n\r\n", .expectationFailed),
            ("Host: a\r\nContent-Type: a/b\r\nContent-Type: a/b\r\n\r\n", .duplicateField),
        ] as [(String, HTTPRefusal)]
    )
    func headerSection(text: String, refusal: HTTPRefusal) {
        #expect(parse("POST / HTTP/1.1\r\n" + text) == .reject(refusal))
    }

    @Test("Each limit is kept to the byte")
    func limits() {
        var limits = HTTPLimits()
        limits.requestLineBytes = 20
        #expect(parse("GET /23456 HTTP/1.1\r\nHost: a\r\n\r\n", limits: limits) == .complete)
        #expect(parse("GET /234567 HTTP/1.1\r\nHost: a\r\n\r\n", limits: limits) == .complete)
        #expect(parse("GET /2345678 HTTP/1.1\r\nHost: a\r\n\r\n", limits: limits) == .reject(.targetTooLong))
        #expect(parse("GET /" + String(repeating: "a", count: 15), limits: limits) == .reject(.targetTooLong))
        #expect(parse(String(repeating: "G", count: 20), limits: limits) == .reject(.targetTooLong))
        limits = HTTPLimits()
        limits.fieldCount = 2
        #expect(parse("GET / HTTP/1.1\r\nHost: a\r\nB: b\r\n\r\n", limits: limits) == .complete)
        #expect(parse("GET / HTTP/1.1\r\nHost: a\r\nB_: b\r\nC", limits: limits) == .reject(.tooManyFields))
        limits = HTTPLimits()
        limits.headerSectionBytes = 12
        #expect(parse("GET / HTTP/1.1\r\nHost: a\r\n\r\n", limits: limits) == .complete)
        #expect(parse("GET / HTTP/1.1\r\nHost: abcde\r\n\r\n", limits: limits) == .reject(.headerSectionTooLarge))
        #expect(parse("GET / HTTP/1.1\r\nHost:          ", limits: limits) == .reject(.headerSectionTooLarge))
        #expect(parse("GET / HTTP/1.1\r\nHostHostHost", limits: limits) == .reject(.headerSectionTooLarge))
        let name = String(repeating: "n", count: 1_023)
        #expect(parse("GET / HTTP/1.1\r\nHost: a\r\n\(name):\r\n\r\n") == .complete)
        #expect(parse("GET / HTTP/1.1\r\nHost: a\r\n\(name)n:\r\n\r\n") == .reject(.headerSectionTooLarge))
    }

    @Test("A complete head gives its parts")
    func parts() {
        let text =
            "\r\nPOST /a/b?c=d&e HTTP/1.1\r\nHost: h:1\r\nX-A:  one two \t\r\nx-a:\r\nX_A: no\r\nContent-Length: 7\r\n\r\nrest"
        let bytes = Array(text.utf8)
        var parser = HeadReader()
        check(parser.parse(bytes.span), .complete)
        func string(_ range: Range<Int>?) -> String? { range.map { String(decoding: bytes[$0], as: UTF8.self) } }
        check(parser.head.method, .post)
        check(string(parser.head.path), "/a/b")
        check(string(parser.head.query), "c=d&e")
        check(string(parser.head.authority), "h:1")
        check(string(parser.head.value(of: "x-a", in: bytes.span)), "one two")
        check(parser.head.count(of: "x-a", in: bytes.span), 2)
        check(parser.head.count(of: "x_a", in: bytes.span), 0)
        check(parser.head.contentLength, 7)
        check(parser.head.byteCount, bytes.count - 4)
        check(parser.head.keepAlive, true)
        parser.reset()
        check(parser.head.fields.isEmpty, true)
        #expect(
            parser.parse(Array("OPTIONS * HTTP/1.3\r\nHost: a\r\nConnection: ,Close ,\r\n\r\n".utf8).span) == .complete
        )
        check(parser.head.method, .options)
        check(parser.head.minorVersion, 1)
        check(parser.head.keepAlive, false)
        for options in ["close, keep-alive", "keep-alive, close", "close\r\nConnection: keep-alive"] {
            parser.reset()
            let text = "GET / HTTP/1.1\r\nHost: a\r\nConnection: \(options)\r\n\r\n"
            #expect(parser.parse(Array(text.utf8).span) == .complete)
            check(parser.head.keepAlive, false)
        }
    }

    @Test(
        "An absolute target gives the authority and overrides Host",
        arguments: [
            ("http://t", "t", "", nil), ("http://t:80/p?q", "t:80", "/p", "q"),
            ("HTTPS://[::1]:8/", "[::1]:8", "/", nil), ("http://t?q", "t", "", "q"), ("http://t:/", "t:", "/", nil),
            ("/p", "h", "/p", nil), ("//x@y/p", "h", "//x@y/p", nil),
        ] as [(String, String, String, String?)]
    )
    func targets(target: String, authority: String, path: String, query: String?) {
        let bytes = Array("GET \(target) HTTP/1.1\r\nHost: h\r\n\r\n".utf8)
        var parser = HeadReader()
        check(parser.parse(bytes.span), .complete)
        check(parser.head.authority.map { String(decoding: bytes[$0], as: UTF8.self) }, authority)
        check(String(decoding: bytes[parser.head.path], as: UTF8.self), path)
        check(parser.head.query.map { String(decoding: bytes[$0], as: UTF8.self) }, query)
    }

    @Test("Exactly the tchar, value bytes and URI bytes of all 256 count as such")
    func byteClasses() {
        let alphanumeric = Set("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8)
        for byte in UInt8.min...UInt8.max {
            let isAlphanumeric = alphanumeric.contains(byte)
            #expect(FieldGrammar.isTokenByte(byte) == (isAlphanumeric || "!#$%&'*+-.^_`|~".utf8.contains(byte)))
            #expect(FieldGrammar.isValueByte(byte) == (byte == 9 || (byte >= 32 && byte != 127)))
            #expect(URIGrammar.isTargetByte(byte) == (isAlphanumeric || "-._~!$&'()*+,;=:@/?%[]".utf8.contains(byte)))
        }
    }

    @Test("Exactly the tchar are accepted at every place of a field name")
    func names() {
        let count = 4
        for place in 0..<count {
            // A CR at the first place would begin the end of the section.
            for byte in UInt8.min...UInt8.max where place > 0 || byte != ASCII.carriageReturn {
                var name = [UInt8](repeating: UInt8(ascii: "n"), count: count)
                name[place] = byte
                let head = Array("GET / HTTP/1.1\r\nHost: a\r\n".utf8) + name + Array(": v\r\n\r\n".utf8)
                var parser = HeadReader()
                // A colon ends the name earlier, and the rest belongs to the value; a name cannot begin with it.
                let isTaken = FieldGrammar.isTokenByte(byte) || byte == UInt8(ascii: ":") && place > 0
                check(parser.parse(head.span), isTaken ? .complete : .reject(.malformedFieldLine))
                // A field with an underscore in its name is not kept.
                if isTaken { check(parser.head.fields.count, byte == UInt8(ascii: "_") ? 1 : 2) }
            }
        }
    }

    @Test("Exactly the value bytes are accepted at every place of a long field value", arguments: [15, 16, 40])
    func longValues(count: Int) {
        for place in 0..<count {
            for byte in UInt8.min...UInt8.max where byte != ASCII.carriageReturn {
                var value = [UInt8](repeating: UInt8(ascii: "v"), count: count)
                value[place] = byte
                let head = Array("GET / HTTP/1.1\r\nHost: a\r\nx: ".utf8) + value + Array("\r\n\r\n".utf8)
                var parser = HeadReader()
                let refusal: HTTPRefusal =
                    byte == ASCII.lineFeed ? .malformedLineEnd : .malformedFieldValue
                check(parser.parse(head.span), FieldGrammar.isValueByte(byte) ? .complete : .reject(refusal))
            }
        }
    }
}
