internal import LLBytes
package import LLHTTP1
package import LLHTTPServer

/// Answers as a test says. Without closures it takes any body and answers 200 without one to everything, so that any
/// other status is the server's own.
package final class TestHandler: HTTPRequestHandler {
    package typealias HeadAnswer =
        (borrowing RequestHead, _ bytes: Span<UInt8>, RequestContext, inout HTTPResponse) -> HeadDecision
    package typealias Answer =
        (borrowing RequestHead, _ bytes: Span<UInt8>, _ body: Span<UInt8>, RequestContext, inout HTTPResponse)
        -> RequestDecision

    private let writesFailures: Bool
    private let answerHead: HeadAnswer
    private let answer: Answer
    /// Called with the means to wake a parked request, before any request.
    package var onAttach: (RequestWaker) -> Void = { _ in }
    /// Called for a parked request whose client has left.
    package var onAbandon: (ParkedRequest) -> Void = { _ in }

    /// - Parameters:
    ///   - writesFailures: False for no body: a reader that does not know that the request was HEAD reads the answer all
    ///     the same.
    ///   - head: The answer to a head.
    ///   - request: The answer to a whole request.
    package init(
        writesFailures: Bool = false,
        head answerHead: @escaping HeadAnswer = { _, _, _, _ in .readBody(atMost: .max) },
        request answer: @escaping Answer = { _, _, _, _, _ in .respond }
    ) {
        self.writesFailures = writesFailures
        self.answerHead = answerHead
        self.answer = answer
    }

    package func attach(_ waker: RequestWaker) { onAttach(waker) }

    package func didAbandon(_ request: ParkedRequest) { onAbandon(request) }

    package func receiveHead(
        _ head: borrowing RequestHead,
        bytes: Span<UInt8>,
        context: RequestContext,
        response: inout HTTPResponse
    ) -> HeadDecision {
        answerHead(head, bytes, context, &response)
    }

    package func receiveRequest(
        _ head: borrowing RequestHead,
        bytes: Span<UInt8>,
        body: Span<UInt8>,
        context: RequestContext,
        response: inout HTTPResponse
    ) -> RequestDecision {
        answer(head, bytes, body, context, &response)
    }

    package func renderFailure(
        _ failure: HTTPFailure,
        _ head: borrowing RequestHead,
        bytes: Span<UInt8>,
        context: RequestContext,
        response: inout HTTPResponse
    ) {
        guard writesFailures else { return }
        response.addField("Content-Type: text/plain")
        response.body += Array("\(failure)\n".utf8)
    }

    package func isExemptFromOverload(_ head: borrowing RequestHead, bytes: Span<UInt8>) -> Bool {
        bytes.equal(head.path, "/livez") || bytes.equal(head.path, "/readyz")
    }
}
