internal import HTTP1
internal import KeySets
internal import LimitedLogin
internal import Networking

/// `POST /verify`: reads the request, has the token judged, answers from the verified bytes.
final class VerifyEndpoint {
    /// Greatest body, in bytes: twice the greatest token, with room for its JSON.
    static let bodyLimit = 16_384

    private let keyWait: KeyWait
    private let workerKeys: WorkerKeys
    private let workerSettings: WorkerSettings
    private let workspace = VerificationWorkspace()
    private var request = VerifyRequestReader()

    init(core: ServiceCore, workerSettings: WorkerSettings, workerKeys: WorkerKeys) {
        self.workerSettings = workerSettings
        self.workerKeys = workerKeys
        keyWait = KeyWait(cache: core.cache, workerKeys: workerKeys)
    }

    /// The body must be declared as uncompressed JSON (RFC 9110 sections 8.3, 8.4, 15.5.16).
    static func requireJSON(
        _ head: borrowing RequestHead,
        bytes: Span<UInt8>,
        response: inout HTTPResponse
    ) throws(Problem) {
        if let coding = head.value(of: "content-encoding", in: bytes),
            !bytes.equalIgnoringCase(coding, "identity")
        {
            response.addField("Accept-Encoding: identity")
            throw Problem(.unsupportedMediaType, "The body must not be compressed.")
        }
        guard let type = head.value(of: "content-type", in: bytes), MediaType.isJSON(bytes, type) else {
            response.addField("Accept: application/json")
            throw Problem(.unsupportedMediaType, "The body must be application/json in UTF-8.")
        }
    }

    /// Answers one request, or says until when it must wait for keys.
    ///
    /// - Returns: nil when `response` is the answer; else the moment until which to park the request.
    func answer(
        _ body: Span<UInt8>,
        visit: RequestVisit,
        context: RequestContext,
        response: inout HTTPResponse
    ) throws(Problem) -> MonotonicInstant? {
        try request.read(body)
        // A second and third look are for a key set that is published between the look and the question to the cache.
        for _ in 0..<3 {
            workerKeys.refresh()
            let outcome = try judge(request, visit, context, &response)
            switch outcome {
            case .answered: return nil
            case .wait(.until(let moment)): return moment
            case .wait(.lookAgain): continue
            }
        }
        throw KeyWait.restless
    }

    private enum Outcome {
        case answered
        case wait(KeyWait.Outcome)
    }

    private func judge(
        _ request: borrowing VerifyRequestReader,
        _ visit: RequestVisit,
        _ context: RequestContext,
        _ response: inout HTTPResponse
    ) throws(Problem) -> Outcome {
        guard workerKeys.isUsable(at: context.now) else { return .wait(try keyWait.forAnyKey(visit, context)) }
        let now = try ServiceClock.now()
        do throws(TokenRejection) {
            let claims = try workerSettings.settings.verifier.judge(
                request.token.span,
                binding: request.binding,
                value: request.bindingValue.span,
                appID: request.appID.span,
                keys: workerKeys.keys,
                now: now,
                workspace: workspace
            )
            response.addField("Content-Type: application/json")
            response.addField("Cache-Control: no-store")
            VerifyAnswer.write(
                claims,
                payload: workspace.payload.span,
                keyID: workspace.keyID.span,
                asked: request.permissions,
                to: &response.body
            )
            return .answered
        } catch {
            guard error.code == .unknownKey else { throw Problem(error) }
            return .wait(try keyWait.forKey(workspace.keyID.span, Problem(error), visit, context))
        }
    }
}
