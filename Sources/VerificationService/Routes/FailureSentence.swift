internal import HTTP1
internal import Networking

/// What the problem body says about a refusal by the HTTP server itself.
enum FailureSentence {
    static func of(_ failure: HTTPFailure) -> String {
        switch failure {
        case .refused(let refusal): "\(refusal.sentence)"
        case .bodyTooLarge: "The body is larger than this path takes."
        case .timedOut: "The request did not arrive whole in time."
        case .overloaded: "Too many requests are waiting; try again shortly."
        case .handlerFailed: "The service failed to answer."
        }
    }
}
