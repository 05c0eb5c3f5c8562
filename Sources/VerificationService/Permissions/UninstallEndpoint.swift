internal import HTTP1
internal import HTTPServer
internal import JOSE
internal import LimitedLogin

/// `POST /uninstall`: has Limited Login's own endpoint uninstall the app.
final class UninstallEndpoint: Endpoint {
    private let graph: GraphRequests
    private let judge: TokenJudge
    private let workerSettings: WorkerSettings

    init(_ parts: WorkerParts) {
        graph = parts.graph
        judge = parts.judge
        workerSettings = parts.settings
    }

    /// Answers one request, which waits for keys perhaps, and for Graph.
    ///
    /// The token is judged first: one that is not good never leaves the service.
    func answer(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        body: Span<UInt8>,
        context: RequestContext,
        response: inout HTTPResponse
    ) throws(Problem) -> Outcome {
        if let outcome = try graph.revisit(context, &response) { return outcome }
        let request = try UninstallRequest(body)
        let verdict: TokenJudge.Outcome
        do throws(Problem) {
            verdict = try judge.judge(
                request.token.span,
                TokenJudge.Question(appID: request.appID),
                verifier: workerSettings.settings.unboundVerifier,
                context: context,
                trace: TraceParent.passedOn(head, bytes)
            )
        } catch {
            return .refused(error)
        }
        switch verdict {
        case .wait(let moment): return .wait(until: moment)
        case .verified(let claims):
            let audience = Self.text(judge.workspace.payload[claims.audience])
            let person = Self.text(judge.workspace.payload[claims.subject])
            let token = String(decoding: request.token, as: UTF8.self)
            return try graph.begin(
                .uninstall(idToken: token, appID: audience, userID: person),
                context,
                trace: TraceParent.passedOn(head, bytes)
            )
        }
    }

    /// The value of a JSON string whose text, escapes and all, stands between its quotes.
    private static func text(_ escaped: ArraySlice<UInt8>) -> String {
        let quoted = [UInt8(ascii: "\"")] + escaped + [UInt8(ascii: "\"")]
        var document = JSONDocument()
        // It was parsed as part of the payload already.
        guard (try? document.parse(quoted.span)) != nil else { return "" }
        return document.string(document.root, in: quoted.span)
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
        var limits = JSONLimits()
        limits.byteCount = Self.bodyLimit
        limits.depth = 4
        limits.memberCount = 16
        var document = JSONDocument(limits: limits)
        try document.parseObject(body)
        var token: [UInt8] = []
        var appID: [UInt8] = []
        for name in document.children(of: document.root) {
            guard document.isString(name + 1) else {
                throw Problem(.invalidRequest, "Every member of the body must be a string.")
            }
            if document.string(name, equals: "id_token", in: body) {
                document.appendString(name + 1, in: body, to: &token)
            } else if document.string(name, equals: "app_id", in: body) {
                document.appendString(name + 1, in: body, to: &appID)
                guard !appID.isEmpty else { throw Problem(.unknownApp, "The member app_id is empty.") }
            } else {
                throw Problem(.invalidRequest, "The body has an unknown member; known are id_token and app_id.")
            }
        }
        guard !token.isEmpty else { throw Problem(.invalidRequest, "The member id_token is missing or empty.") }
        self.token = token
        self.appID = appID
    }
}
