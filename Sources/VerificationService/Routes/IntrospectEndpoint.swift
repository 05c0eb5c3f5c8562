internal import HTTP1
internal import LimitedLogin
internal import Networking

/// `POST /introspect`: OAuth 2.0 Token Introspection (RFC 7662) of an id token.
///
/// Only for callers with a key: an endpoint anybody may ask would tell the good tokens from the bad (section 4).
final class IntrospectEndpoint {
    /// Greatest body, in bytes: the greatest token with every byte escaped would be 24 KiB, but none needs an escape.
    static let bodyLimit = 16_384

    private let judge: TokenJudge
    /// Why the token of the last answer is not active; nil where it is.
    private(set) var refusal: ProblemCode?

    init(judge: TokenJudge) { self.judge = judge }

    /// Section 2.1: the parameters come as a form.
    static func requireForm(
        _ head: borrowing RequestHead,
        bytes: Span<UInt8>,
        response: inout HTTPResponse
    ) throws(Problem) {
        let type = head.value(of: "content-type", in: bytes)
        guard let type, MediaType.isForm(bytes, type), head.value(of: "content-encoding", in: bytes) == nil else {
            response.addField("Accept: application/x-www-form-urlencoded")
            throw Problem(.unsupportedMediaType, "The body must be application/x-www-form-urlencoded.")
        }
    }

    /// Answers one request, or says until when it must wait for keys.
    func answer(
        _ body: Span<UInt8>,
        _ verifier: TokenVerifier,
        visit: RequestVisit,
        context: RequestContext,
        response: inout HTTPResponse
    ) throws(Problem) -> MonotonicInstant? {
        let request = try IntrospectRequest(body)
        let claims: VerifiedClaims?
        var refused: ProblemCode?
        do throws(Problem) {
            let outcome = try judge.judge(
                request.token.span,
                request.question,
                verifier: verifier,
                visit: visit,
                context: context
            )
            switch outcome {
            case .wait(let moment): return moment
            case .verified(let verified): claims = verified
            }
        } catch {
            // Section 2.2: whatever is wrong with the token, the caller is told no more than that it is not active. An
            // outage is no fault of the token.
            guard error.code.isTokenFault else { throw error }
            claims = nil
            refused = error.code
        }
        refusal = refused
        response.addField("Content-Type: application/json")
        response.addField("Cache-Control: no-store")
        IntrospectAnswer.write(claims, payload: judge.workspace.payload, to: &response.body)
        return nil
    }
}

extension ProblemCode {
    /// Whether the token, or what it should be bound to, is at fault; not the request's form and not the service.
    fileprivate var isTokenFault: Bool {
        switch self {
        case .rejectedToken, .invalidNonce, .unknownApp: true
        default: false
        }
    }
}
