package import LLHTTP1
package import LLHTTPServer

/// What the handler of a test does where it says nothing else: it takes any body, and answers 200 without one.
extension HTTPRequestHandler {
    package func receiveHead(
        _ head: borrowing RequestHead,
        bytes: Span<UInt8>,
        context: RequestContext,
        response: inout HTTPResponse
    ) -> HeadDecision {
        .readBody(atMost: .max)
    }

    package func receiveRequest(
        _ head: borrowing RequestHead,
        bytes: Span<UInt8>,
        body: Span<UInt8>,
        context: RequestContext,
        response: inout HTTPResponse
    ) -> RequestDecision {
        .respond
    }
}

/// Answers 200 without a body to everything, so that any other status is the server's own.
package final class AgreeableHandler: HTTPRequestHandler {
    package init() {}

    /// No body: a reader that does not know that the request was HEAD reads the answer all the same.
    package func renderFailure(
        _ failure: HTTPFailure,
        _ head: borrowing RequestHead,
        bytes: Span<UInt8>,
        context: RequestContext,
        response: inout HTTPResponse
    ) {}
}
