internal import HTTP1
internal import HTTPServer
internal import JOSE
internal import LimitedLogin

/// `POST /uninstall`: has Limited Login's own endpoint uninstall the app.
enum UninstallEndpoint {
    /// Answers one request, which waits for keys perhaps, and for Graph.
    ///
    /// The token is judged first: one that is not good never leaves the service.
    static func answer(
        _ worker: WorkerParts,
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        _ body: Span<UInt8>,
        _ context: RequestContext,
        _ response: inout HTTPResponse
    ) throws(Problem) -> Outcome {
        let request = try UninstallRequest(body)
        let verdict: TokenJudge.Outcome
        do throws(Problem) {
            verdict = try worker.judge.judge(
                request.token.span,
                TokenQuestion(appID: request.appID),
                verifier: worker.settings.unboundVerifier,
                context: context,
                trace: TraceParent.passedOn(head, bytes)
            )
        } catch {
            return .refused(.idToken, error)
        }
        switch verdict {
        case .wait(let moment): return .wait(until: moment)
        case .verified(let claims):
            let payload = worker.judge.workspace.payload.span
            let call = GraphCall.uninstall(
                idToken: String(decoding: request.token, as: UTF8.self),
                appID: JSONText.value(payload, claims.audience),
                userID: JSONText.value(payload, claims.subject)
            )
            return try GraphWorkers.ask(call, worker, context, trace: TraceParent.passedOn(head, bytes))
        }
    }
}

/// The body of `POST /uninstall`: `id_token`, and perhaps `app_id`, which narrows the configured apps to one.
struct UninstallRequest {
    /// Greatest body, in bytes: as for `POST /verify`.
    static let bodyLimit = VerifyEndpoint.bodyLimit

    let token: [UInt8]
    /// Empty for any configured app.
    let appID: [UInt8]

    init(_ body: Span<UInt8>) throws(Problem) {
        let members = try JSONDocument.texts(body, known: ["id_token", "app_id"])
        token = Array((members["id_token"] ?? "").utf8)
        appID = Array((members["app_id"] ?? "").utf8)
        guard members["app_id"] != "" else { throw Problem(.unknownApp, "The member app_id is empty.") }
        guard !token.isEmpty else { throw Problem(.invalidRequest, "The member id_token is missing or empty.") }
    }
}
