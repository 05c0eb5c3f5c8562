internal import HTTP1
internal import HTTPServer
internal import LimitedLogin
internal import LoginStores

/// `POST /verify`: reads the request, has the token judged, answers from the verified bytes.
enum VerifyEndpoint {
    /// Greatest body, in bytes: twice the greatest token, with room for its JSON.
    static let bodyLimit = 16_384

    static let answer: Route.Answer = { worker, head, bytes, body, context, response in
        do throws(Problem) {
            try worker.verifyRequest.read(body)
            if let asked = worker.verifyRequest.accessToken {
                return AccessTokenEndpoint.answer(worker, asked, context, trace: TraceParent.passedOn(head, bytes))
            }
            return try judge(worker, worker.verifyRequest, head, bytes, context, &response)
        } catch {
            return .refused(.idToken, error)
        }
    }

    private static func judge(
        _ worker: WorkerParts,
        _ request: borrowing VerifyRequestReader,
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        _ context: RequestContext,
        _ response: inout HTTPResponse
    ) throws(Problem) -> Outcome {
        let settings = worker.settings
        let binding = request.question.binding
        guard binding != .issuedNonce || settings.verifier.nonces != nil else {
            throw Problem(
                .invalidRequest,
                "No nonces are issued here, so none can be recognised: set nonce_secret_file (LIMITED_LOGIN_NONCE_SECRET_FILE)."
            )
        }
        let verdict = try worker.judge.judge(
            request.token.span,
            request.question,
            verifier: settings.verifier,
            context: context,
            trace: TraceParent.passedOn(head, bytes)
        )
        switch verdict {
        case .wait(let moment): return .wait(until: moment)
        case .verified(let claims):
            addFields(to: &response)
            let keyID = worker.judge.workspace.keyID
            VerifyAnswer.write(
                claims,
                payload: worker.judge.workspace.payload.span,
                keyID: keyID.span,
                asked: request.permissions,
                isRefresh: request.question.isRefresh,
                to: &response.body
            )
            // A refreshed token bears the nonce that was used up at its login.
            let usesNonce = binding == .issuedNonce && !request.question.isRefresh
            guard usesNonce || settings.rejectsReplays else { return .accepted(.idToken) }
            let question = ReplayQuestion(
                claims,
                worker.judge.workspace.payload.span,
                nonce: usesNonce ? worker.judge.workspace.recognizedNonce : nil,
                usesToken: settings.rejectsReplays,
                skewSeconds: settings.verifier.policy.clockSkewSeconds
            )
            // An issued nonce that is not among what is used up would be good for ever.
            guard !usesNonce || question?.has(.nonce) == true else { throw FirstUse.unavailable }
            return try FirstUse.use(question, of: .idToken, worker, context, response)
        }
    }

    static func addFields(to response: inout HTTPResponse) {
        response.addField("Content-Type: application/json")
        response.addField("Cache-Control: no-store")
    }
}
