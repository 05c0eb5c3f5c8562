internal import LLBytes
package import LLHTTP1
package import LLHTTPServer

/// Answers as a test says. Without closures it accepts any body and answers every request with 200 and no body. Any
/// other status is then the server's own.
package final class TestHandler: HTTPRequestHandler {
    package typealias HeadAnswer = (_ exchange: inout HTTPExchange, _ bytes: Span<UInt8>) -> HeadDecision
    package typealias Answer = (_ exchange: inout HTTPExchange, _ bytes: Span<UInt8>) -> RequestDecision

    private let writesFailures: Bool
    private let answerHead: HeadAnswer
    private let answer: Answer
    /// Called before any request, with the waker for parked requests.
    package var onAttach: (RequestWaker) -> Void = { _ in }
    /// Called for a parked request when its client disconnects.
    package var onAbandon: (ParkedRequest) -> Void = { _ in }

    /// The worker's system calls follow a plan of faults as long as its handler lives.
    var following: FaultPlan.Following?

    /// - Parameters:
    ///   - writesFailures: False leaves failures without a body, for readers that do not know that the request was
    ///     HEAD.
    ///   - head: The answer to a head.
    ///   - request: The answer to a whole request.
    package init(
        writesFailures: Bool = false,
        head answerHead: @escaping HeadAnswer = { _, _ in .readBody(atMost: .max) },
        request answer: @escaping Answer = { _, _ in .respond }
    ) {
        self.writesFailures = writesFailures
        self.answerHead = answerHead
        self.answer = answer
    }

    package func attach(_ waker: RequestWaker) { onAttach(waker) }

    package func didAbandon(_ request: ParkedRequest) { onAbandon(request) }

    package func receiveHead(_ exchange: inout HTTPExchange, bytes: Span<UInt8>) -> HeadDecision {
        answerHead(&exchange, bytes)
    }

    package func receiveRequest(_ exchange: inout HTTPExchange, bytes: Span<UInt8>) -> RequestDecision {
        answer(&exchange, bytes)
    }

    package func renderFailure(_ failure: HTTPFailure, _ exchange: inout HTTPExchange, bytes: Span<UInt8>) {
        guard writesFailures else { return }
        exchange.response.addField("Content-Type: text/plain")
        exchange.response.body += Array("\(failure)\n".utf8)
    }

    package func isExemptFromOverload(_ head: borrowing RequestHead, bytes: Span<UInt8>) -> Bool {
        bytes.equal(head.path, "/livez") || bytes.equal(head.path, "/readyz")
    }
}
