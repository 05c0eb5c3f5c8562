internal import LLBytes
internal import LLHTTP1
internal import LLHTTPServer
internal import LLSockets

extension TestHandler {
    /// The answer of `/shared`, more than a socket takes at once.
    package static let sharedBody = [UInt8](repeating: UInt8(ascii: "s"), count: 8_000_000)

    /// The server under test by the contract of Http11Probe: `GET /` answers 200, `POST /` echoes the body, `/echo` shows
    /// the fields that came, `/cookie` the cookies; HEAD and OPTIONS work, other methods are refused with `Allow`.
    package static func probe() -> TestHandler {
        TestHandler(writesFailures: true) { head, _, _, response in
            switch head.method {
            case .get, .head, .post: return .readBody(atMost: .max)
            case .options:
                response.status = 204
                response.addField("Allow: GET, HEAD, POST, OPTIONS")
                return .respond
            case .unrecognized:
                response.status = 501
            default:
                response.status = 405
                response.addField("Allow: GET, HEAD, POST, OPTIONS")
            }
            return .respond
        } request: { head, bytes, body, context, response in
            response.addField("Content-Type: text/plain")
            if bytes.equal(head.path, "/park") {
                switch context.visit {
                case .first: return .park(until: context.now + .seconds(600))
                case .woken: response.body += Array("woken".utf8)
                case .expired:
                    response.status = 503
                    response.body += Array("expired".utf8)
                }
            } else if bytes.equal(head.path, "/echo") {
                for field in head.fields {
                    append(bytes, field.name, to: &response.body)
                    response.body += Array(": ".utf8)
                    append(bytes, field.value, to: &response.body)
                    response.body += Array("\n".utf8)
                }
            } else if bytes.equal(head.path, "/shared") {
                response.share(sharedBody)
            } else if bytes.equal(head.path, "/cookie") {
                for field in head.fields where bytes.equalIgnoringCase(field.name, "cookie") {
                    for pair in Array(bytes, field.value).split(separator: UInt8(ascii: ";")) {
                        response.body += pair.drop { $0 == UInt8(ascii: " ") }
                        response.body.append(UInt8(ascii: "\n"))
                    }
                }
            } else if head.method == .post {
                append(body, 0..<body.count, to: &response.body)
            } else {
                response.body += Array("OK".utf8)
            }
            return .respond
        }
    }

    private static func append(_ bytes: Span<UInt8>, _ range: Range<Int>, to output: inout [UInt8]) {
        output.reserveCapacity(output.count + range.count)
        for index in range { output.append(bytes[index]) }
    }
}

extension Array where Element == UInt8 {
    /// The bytes of a range of a span.
    package init(_ span: Span<UInt8>, _ range: Range<Int>) {
        self = range.map { span[$0] }
    }
}
