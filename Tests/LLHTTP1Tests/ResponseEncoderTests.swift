import LLHTTP
import LLTestSupport
import Testing

@Suite("Responses")
struct ResponseEncoderTests {
    private func encode(
        _ status: UInt16,
        _ body: String = "",
        method: HTTPMethod = .get,
        minorVersion: UInt8 = 1,
        keepAlive: Bool = true,
        unixSeconds: Int64 = 784_111_777
    ) -> String {
        var response = HTTPResponse()
        response.status = status
        response.body = Array(body.utf8)
        var encoder = ResponseEncoder()
        var output: [UInt8] = []
        encoder.encode(
            response,
            method: method,
            minorVersion: minorVersion,
            keepAlive: keepAlive,
            unixSeconds: unixSeconds,
            to: &output
        )
        return String(decoding: output, as: UTF8.self)
    }

    static let date = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"

    @Test("Head and content are in one buffer, with exactly these bytes")
    func exact() {
        #expect(encode(200, "hello") == "HTTP/1.1 200 OK\r\n\(Self.date)Content-Length: 5\r\n\r\nhello")
        #expect(encode(200, "hello", method: .head) == "HTTP/1.1 200 OK\r\n\(Self.date)Content-Length: 5\r\n\r\n")
        #expect(encode(204, "no") == "HTTP/1.1 204 No Content\r\n\(Self.date)\r\n")
        #expect(encode(304, "no") == "HTTP/1.1 304 Not Modified\r\n\(Self.date)\r\n")
        #expect(
            encode(400, keepAlive: false)
                == "HTTP/1.1 400 Bad Request\r\n\(Self.date)Content-Length: 0\r\nConnection: close\r\n\r\n"
        )
        #expect(
            encode(200, minorVersion: 0)
                == "HTTP/1.1 200 OK\r\n\(Self.date)Content-Length: 0\r\nConnection: keep-alive\r\n\r\n"
        )
        #expect(encode(299).hasPrefix("HTTP/1.1 299 \r\n"))
    }

    @Test(
        "A value that could split the response is refused",
        arguments: ["a\r\nB: c", "a\nb", "a\rb", "a\0", "\u{7F}"]
    )
    func splitting(value: String) {
        var response = HTTPResponse()
        let added = response.addField("X-Test", value)
        #expect(!added)
        #expect(response.fields.isEmpty)
        let fine = response.addField("X-Test", "ü\ta")
        #expect(fine)
        #expect(String(decoding: response.fields, as: UTF8.self) == "X-Test: ü\ta\r\n")
    }

    @Test(
        "Dates are right at the edges of months and years",
        arguments: [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (951_868_800, "Wed, 01 Mar 2000 00:00:00 GMT"), (1_704_067_199, "Sun, 31 Dec 2023 23:59:59 GMT"),
            (1_709_251_199, "Thu, 29 Feb 2024 23:59:59 GMT"), (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
            (253_402_300_799, "Fri, 31 Dec 9999 23:59:59 GMT"), (-5, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (.max, "Fri, 31 Dec 9999 23:59:59 GMT"),
        ] as [(Int64, String)]
    )
    func dates(seconds: Int64, text: String) {
        #expect(encode(200, unixSeconds: seconds).contains("\r\nDate: \(text)\r\n"))
    }
}
