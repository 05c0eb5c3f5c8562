internal import LLBytes
internal import LLHTTP1
internal import LLHTTPServer
internal import LLSockets

extension TestHandler {
    /// The answer of `/shared`, larger than a socket takes at once.
    package static let sharedBody = [UInt8](repeating: UInt8(ascii: "s"), count: 8_000_000)

    /// The server under test by the contract of Http11Probe: `GET /` answers 200, `POST /` echoes the body, `/echo`
    /// shows the request's fields and `/cookie` its cookies. HEAD and OPTIONS work; other methods are refused with
    /// `Allow`.
    package static func probe() -> TestHandler {
        TestHandler(writesFailures: true) { exchange, _ in
            switch exchange.head.method {
            case .get, .head, .post: return .readBody(atMost: .max)
            case .options:
                exchange.response.status = 204
                exchange.response.addField("Allow: GET, HEAD, POST, OPTIONS")
                return .respond
            case .unrecognized:
                exchange.response.status = 501
            default:
                exchange.response.status = 405
                exchange.response.addField("Allow: GET, HEAD, POST, OPTIONS")
            }
            return .respond
        } request: { exchange, bytes in
            exchange.response.addField("Content-Type: text/plain")
            if bytes.equal(exchange.head.path, "/park") {
                switch exchange.context.visit {
                case .first: return .park(until: exchange.context.now + .seconds(600))
                case .woken: exchange.response.body += Array("woken".utf8)
                case .expired:
                    exchange.response.status = 503
                    exchange.response.body += Array("expired".utf8)
                }
            } else if bytes.equal(exchange.head.path, "/echo") {
                for field in exchange.head.fields {
                    append(bytes, field.name, to: &exchange.response.body)
                    exchange.response.body += Array(": ".utf8)
                    append(bytes, field.value, to: &exchange.response.body)
                    exchange.response.body += Array("\n".utf8)
                }
            } else if bytes.equal(exchange.head.path, "/shared") {
                exchange.response.share(sharedBody)
            } else if bytes.equal(exchange.head.path, "/cookie") {
                for field in exchange.head.fields where bytes.equalIgnoringCase(field.name, "cookie") {
                    for pair in Array(bytes, field.value).split(separator: UInt8(ascii: ";")) {
                        exchange.response.body += pair.drop { $0 == UInt8(ascii: " ") }
                        exchange.response.body.append(UInt8(ascii: "\n"))
                    }
                }
            } else if exchange.head.method == .post {
                append(bytes, exchange.body, to: &exchange.response.body)
            } else {
                exchange.response.body += Array("OK".utf8)
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
