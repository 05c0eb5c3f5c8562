internal import HTTP1
internal import HTTPServer
internal import LimitedLogin

/// `POST /callbacks/deauthorize` and `POST /callbacks/data-deletion`: what Facebook tells of a person, verified, remembered
/// and passed on to the app's backend.
final class CallbackEndpoint: Endpoint {
    /// Greatest body in bytes: that of the signed request itself.
    static let bodyLimit = SignedRequest.byteLimit

    private let kind: CallbackKind
    private let requests: CallbackRequests
    private let workerSettings: WorkerSettings
    private let metrics: CallbackMetrics

    init(_ parts: WorkerParts, of kind: CallbackKind) {
        self.kind = kind
        requests = parts.callbacks
        workerSettings = parts.settings
        metrics = parts.core.metrics.callbacks
    }

    func answer(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        body: Span<UInt8>,
        context: RequestContext,
        response: inout HTTPResponse
    ) throws(Problem) -> Outcome {
        do throws(Problem) {
            let outcome: Outcome
            if let known = try requests.revisit(context, &response) {
                outcome = known
            } else {
                let settings = workerSettings.settings
                let event = try read(body, settings)
                let trace = TraceParent.passedOn(head, bytes)
                outcome = try requests.begin(event, settings.webhook, trace: trace, context, &response)
            }
            if case .done = outcome { metrics.count(kind, nil) }
            return outcome
        } catch {
            metrics.count(kind, error.code)
            throw error
        }
    }

    /// Verifies the signed request. Nothing has happened yet when it is refused.
    private func read(_ body: Span<UInt8>, _ settings: RuntimeSettings) throws(Problem) -> CallbackEvent {
        // They were there when the head came; a reload in between may have taken them away.
        guard let secrets = settings.appSecrets else { throw Problem(.notFound, Requirement.callbacks.sentence) }
        guard let form = FormParameters(body, 0..<body.count), form.count(of: "signed_request") == 1,
            let text = form.first("signed_request")
        else { throw Problem(.invalidRequest, "The form must have signed_request exactly once.") }
        let now = try ServiceClock.now()
        do throws(SignedRequestRejection) {
            let request = try SignedRequest(
                verifying: text.span,
                secrets: secrets.signers,
                clockSkewSeconds: settings.verifier.policy.clockSkewSeconds,
                now: now
            )
            guard let event = try? CallbackEvent(kind, request, text: text.span) else { throw .cannotVerify }
            return event
        } catch {
            guard error != .cannotVerify else { throw Problem(.internalError, error.description) }
            throw Problem(.invalidSignedRequest, error.description)
        }
    }
}
