/// A response as a test reads it. The parser is lenient and not fast.
package struct TestResponse: Equatable, Sendable {
    package var status: Int
    /// Field lines, names in lower case.
    package var fields: [(name: String, value: String)]
    package var body: [UInt8]
    package var head: String

    package init(status: Int, fields: [(name: String, value: String)], body: [UInt8], head: String) {
        (self.status, self.fields, self.body, self.head) = (status, fields, body, head)
    }

    package static func == (left: TestResponse, right: TestResponse) -> Bool {
        left.head == right.head && left.body == right.body
    }

    /// The first value of a field (lower-case name).
    package subscript(name: String) -> String? { fields.first { $0.name == name }?.value }

    package var text: String { String(decoding: body, as: UTF8.self) }

    /// Every whole response at the front of `bytes`. Without Content-Length a response has no body.
    package static func parseAll(_ bytes: [UInt8]) -> [TestResponse] {
        var responses: [TestResponse] = []
        var rest = bytes[...]
        while let response = parse(&rest) { responses.append(response) }
        return responses
    }

    private static func parse(_ bytes: inout ArraySlice<UInt8>) -> TestResponse? {
        guard let end = bytes.firstRange(of: Array("\r\n\r\n".utf8))?.upperBound else { return nil }
        let head = String(decoding: bytes[bytes.startIndex..<end], as: UTF8.self)
        let lines = head.split(separator: "\r\n")
        let parts = lines.first?.split(separator: " ", maxSplits: 2) ?? []
        guard parts.count >= 2, parts[0] == "HTTP/1.1", let status = Int(parts[1]) else { return nil }
        var fields: [(name: String, value: String)] = []
        for line in lines.dropFirst() {
            let pair = line.split(separator: ":", maxSplits: 1)
            guard pair.count == 2 else { return nil }
            fields.append((pair[0].lowercased(), String(pair[1].drop { $0 == " " })))
        }
        let length = fields.first { $0.name == "content-length" }.flatMap { Int($0.value) } ?? 0
        guard bytes.endIndex - end >= length else { return nil }
        let body = Array(bytes[end..<end + length])
        bytes = bytes[(end + length)...]
        return TestResponse(status: status, fields: fields, body: body, head: head)
    }
}
