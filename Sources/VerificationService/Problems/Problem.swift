package import LimitedLogin

/// One refusal: what `application/problem+json` says about it (RFC 9457).
package struct Problem: Error, Sendable, Equatable {
    /// The stable code.
    package let code: ProblemCode
    /// One sentence on this occurrence; never a token, a nonce or a claim's value before the signature is good.
    package let detail: String
    /// The claim at fault, if it is one.
    package let claim: String?
    /// Seconds after which another try makes sense (RFC 9110 section 10.2.3); nil where none does.
    package let retryAfterSeconds: Int?
    /// The scope that would be enough (RFC 6750 section 3), separated by spaces; nil where that is not the matter.
    package let scope: String?
    /// What Graph told, where its error is the problem.
    package let graph: GraphReport?

    /// - Parameter retryAfter: seconds; by default what the code suggests.
    package init(
        _ code: ProblemCode,
        _ detail: String,
        claim: String? = nil,
        retryAfter: Int? = nil,
        scope: String? = nil,
        graph: GraphReport? = nil
    ) {
        self.code = code
        self.detail = detail
        self.claim = claim
        retryAfterSeconds = retryAfter ?? code.retryAfterSeconds
        self.scope = scope
        self.graph = graph
    }

    /// The problem of a refused token.
    package init(_ rejection: TokenRejection) {
        self.init(ProblemCode(rejection.code), rejection.detail, claim: rejection.claim)
    }
}
