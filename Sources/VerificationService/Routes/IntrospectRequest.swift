internal import LimitedLogin

/// The form of `POST /introspect`: `token`, perhaps `token_type_hint` (RFC 7662 section 2.1), and as further context
/// what `/verify` takes: one of `nonce`, `raw_nonce` and `subject`, and `app_id`.
struct IntrospectRequest {
    /// The token as it came; perhaps empty, which is not active.
    let token: [UInt8]
    /// What it is judged by.
    let question: TokenJudge.Question

    init(_ body: Span<UInt8>) throws(Problem) {
        guard let form = FormParameters(body, 0..<body.count) else {
            throw Problem(.invalidRequest, "The form has a broken escape or too many parameters.")
        }
        // RFC 6749 section 3.1: no parameter more than once.
        for name in ["token", "token_type_hint", "nonce", "raw_nonce", "subject", "app_id"] as [StaticString]
        where form.count(of: name) > 1 {
            throw Problem(.invalidRequest, "The form has the parameter \(name) more than once.")
        }
        guard let token = form.first("token"), !token.isEmpty else {
            throw Problem(.invalidRequest, "The form has no parameter token.")
        }
        self.token = token
        var question = TokenJudge.Question()
        let bindings: [(StaticString, BindingKind)] = [
            ("nonce", .nonce), ("raw_nonce", .rawNonce), ("subject", .subject),
        ]
        for (name, kind) in bindings {
            guard let value = form.first(name) else { continue }
            guard question.binding == .unbound else {
                throw Problem(.invalidRequest, "Only one of nonce, raw_nonce and subject may be given.")
            }
            guard !value.isEmpty else { throw Problem(.invalidRequest, "The parameter \(name) is empty.") }
            question.binding = kind
            question.bindingValue = value
        }
        if let appID = form.first("app_id") {
            guard !appID.isEmpty else { throw Problem(.invalidRequest, "The parameter app_id is empty.") }
            question.appID = appID
        }
        self.question = question
    }
}
