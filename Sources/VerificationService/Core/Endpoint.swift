internal import HTTP1
internal import HTTPServer
internal import Sockets

/// Answers the requests of a route. There is one for each worker and route, only ever called on its worker's thread.
protocol Endpoint: AnyObject {
    /// Answers one request whose path, method, caller and media type are good, or says what it waits for.
    ///
    /// Called again on the same bytes after a wait.
    /// - Parameter response: empty; filled in where the outcome says so.
    /// - Throws: why the request is refused where that is no verdict on a token.
    func answer(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        body: Span<UInt8>,
        context: RequestContext,
        response: inout HTTPResponse
    ) throws(Problem) -> Outcome
}

/// What a token is that was judged; the label of the metrics.
enum Credential: String {
    case idToken = "id_token"
    case accessToken = "access_token"
}

/// What became of a request; the handler counts and logs it.
enum Outcome {
    /// A token was judged and is good; the response says so.
    case accepted
    /// A token was judged and is refused, or could not be judged; the problem is the response.
    case refused(Problem)
    /// The same two of an access token: nil where it is good.
    case accessToken(Problem?)
    /// A token was judged and is refused for this code; the response says so in its own way.
    case inactive(ProblemCode)
    /// What was asked for, no verdict, is done; the response says so.
    case done
    /// Nothing yet: ask again when the request is woken, and at this moment at the latest.
    case wait(until: MonotonicInstant)
}

/// Answers with a page that is the same for every request of its moment.
final class PageEndpoint: Endpoint {
    private let write: (inout HTTPResponse) -> Void

    init(_ write: @escaping (inout HTTPResponse) -> Void) { self.write = write }

    func answer(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        body: Span<UInt8>,
        context: RequestContext,
        response: inout HTTPResponse
    ) -> Outcome {
        write(&response)
        return .done
    }
}
