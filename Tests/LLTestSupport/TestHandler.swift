internal import LLBytes
package import LLHTTP

/// Answers as a test says. Without closures it accepts any body and answers every request with 200 and no body. Any
/// other status is then the server's own.
package final class TestHandler: HTTPRequestHandler {
    package typealias HeadAnswer = (_ exchange: inout HTTPExchange, _ bytes: Span<UInt8>) -> HeadDecision
    package typealias Answer = (_ exchange: inout HTTPExchange, _ bytes: Span<UInt8>) -> RequestDecision

    private let writesFailures: Bool
    private let answerHead: HeadAnswer
    private let answer: Answer
    /// Called before any request, with the waker for parked requests.
    package var onAttach: (@escaping RequestWaker) -> Void = { _ in }
    /// Called for a parked request when its client disconnects.
    package var onAbandon: (ParkedRequest) -> Void = { _ in }

    /// - Parameter writesFailures: False leaves failures without a body, for readers that do not know of a HEAD.
    package init(
        writesFailures: Bool = false,
        head answerHead: @escaping HeadAnswer = { _, _ in .readBody(atMost: .max) },
        request answer: @escaping Answer = { _, _ in .respond }
    ) {
        (self.writesFailures, self.answerHead, self.answer) = (writesFailures, answerHead, answer)
    }

    package func attach(_ waker: @escaping RequestWaker) { onAttach(waker) }

    package func didAbandon(_ request: ParkedRequest) { onAbandon(request) }

    package func receiveHead(_ exchange: inout HTTPExchange, bytes: Span<UInt8>) -> HeadDecision {
        answerHead(&exchange, bytes)
    }

    package func receiveRequest(_ exchange: inout HTTPExchange, bytes: Span<UInt8>) -> RequestDecision {
        answer(&exchange, bytes)
    }

    package func renderFailure(_ failure: HTTPRefusal, _ exchange: inout HTTPExchange, bytes: Span<UInt8>) {
        guard writesFailures else { return }
        exchange.response.addField("Content-Type: text/plain")
        exchange.response.body += Array("\(failure)\n".utf8)
    }

    package func isExemptFromOverload(_ head: borrowing RequestHead, bytes: Span<UInt8>) -> Bool {
        bytes.equal(head.path, "/livez") || bytes.equal(head.path, "/readyz")
    }
}

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
            switch String(decoding: Array(bytes, exchange.head.path), as: UTF8.self) {
            case "/park":
                if exchange.context.visit == .first { return .park(until: exchange.context.now + .seconds(600)) }
                let isWoken = exchange.context.visit == .woken
                exchange.response.status = isWoken ? 200 : 503
                exchange.response.body = Array((isWoken ? "woken" : "expired").utf8)
            case "/echo":
                for field in exchange.head.fields {
                    exchange.response.body += Array(bytes, field.name) + Array(": ".utf8)
                    exchange.response.body += Array(bytes, field.value) + Array("\n".utf8)
                }
            case "/shared": exchange.response.share(sharedBody)
            case "/cookie":
                for field in exchange.head.fields where bytes.equalIgnoringCase(field.name, "cookie") {
                    for pair in Array(bytes, field.value).split(separator: UInt8(ascii: ";")) {
                        exchange.response.body += pair.drop { $0 == UInt8(ascii: " ") } + Array("\n".utf8)
                    }
                }
            case _ where exchange.head.method == .post: exchange.response.body = Array(bytes, exchange.body)
            default: exchange.response.body = Array("OK".utf8)
            }
            return .respond
        }
    }
}

extension Array where Element == UInt8 {
    package init(_ span: Span<UInt8>, _ range: Range<Int>) { self = range.map { span[$0] } }
}
