internal import HTTP1
internal import HTTPServer
internal import LimitedLogin
internal import LoginStores
internal import Sockets

/// `POST /callbacks/deauthorize` and `POST /callbacks/data-deletion`: what Facebook tells of a person, verified, remembered
/// and passed on to the app's backend.
struct CallbackEndpoint {
    /// Greatest body in bytes: that of the signed request itself.
    static let bodyLimit = SignedRequest.byteLimit

    let worker: WorkerParts
    let kind: CallbackKind

    func answer(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        _ body: Span<UInt8>,
        _ context: RequestContext,
        _ response: inout HTTPResponse
    ) throws(Problem) -> Outcome {
        let (requests, metrics) = (worker.callbacks, worker.core.metrics.callbacks)
        do throws(Problem) {
            let outcome: Outcome
            if let known = try requests.revisit(context, &response) {
                outcome = known
            } else {
                let settings = worker.settings
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

/// The callbacks of one worker that wait until the revocation is remembered and the backend has been told.
///
/// The worker never waits: the request is parked while another thread tells the backend.
final class CallbackRequests {
    /// The most callbacks of one worker that wait: more than all threads and their queue together take.
    static let waitingLimit = 256
    /// How much longer than its delivery a request waits: the delivery's own failure says more than that time is over.
    private static let grace = Duration.milliseconds(250)

    /// What a request keeps while it waits.
    struct Kept: Sendable {
        let event: CallbackEvent
        let webhook: WebhookTarget?
    }

    /// What came of it.
    struct Result: Sendable {
        /// Whether every replica will know of the revocation; this one does.
        let isRemembered: Bool
        /// Nil where no backend is to be told.
        let delivery: WebhookSender.Outcome?
    }

    private let sender: WebhookSender?
    private let revocations: Revocations
    let jobs = BackgroundJobs<Kept, Result>(capacity: waitingLimit)

    init(core: ServiceCore) {
        sender = core.webhooks
        revocations = core.revocations
    }

    /// Goes on with a request that was parked here.
    /// - Returns: nil where it was not.
    func revisit(_ context: RequestContext, _ response: inout HTTPResponse) throws(Problem) -> Outcome? {
        switch jobs.visit(context) {
        case .none: return nil
        case .waiting(let moment): return .wait(until: moment)
        case .expired(let kept): throw kept.webhook == nil ? RevocationRequests.unavailable : Self.notDelivered
        case .done(let kept, let result):
            guard result.isRemembered else { throw RevocationRequests.unavailable }
            try Self.write(kept, result.delivery, to: &response)
            return .done
        }
    }

    /// Remembers the revocation, and has the backend told.
    /// - Parameter trace: the request's `traceparent`, which the webhook passes on.
    func begin(
        _ event: CallbackEvent,
        _ webhook: WebhookTarget?,
        trace: String?,
        _ context: RequestContext,
        _ response: inout HTTPResponse
    ) throws(Problem) -> Outcome {
        let deadline = context.now + (sender?.limits.deliveryTime ?? FirstUse.patience)
        let patience = deadline + Self.grace
        let isBegun = jobs.begin(context, keeping: Kept(event: event, webhook: webhook), until: patience) { request in
            // At most the present, for the store takes no later moment.
            revocations.revoke(app: event.appID.utf8.span, user: event.userID.utf8.span, at: event.issuedAt) {
                [sender, jobs] answer in
                // The backend is told whether or not the other replicas are: the person has left all the same.
                let finish = { @Sendable (delivery: WebhookSender.Outcome?) in
                    let result = Result(isRemembered: answer == .remembered, delivery: delivery)
                    _ = jobs.finish(request, result, now: MonotonicClock.now())
                }
                guard let webhook, let sender else { return finish(nil) }
                sender.submit(event, to: webhook, until: deadline, trace: trace, finish)
            }
            return true
        }
        guard isBegun else { throw Problem(.overloaded, "Too many callbacks are waiting; send it again.") }
        // Where there is no backend and no Redis the answer is there already.
        return try revisit(context.again, &response) ?? .wait(until: patience)
    }

    private static func write(
        _ kept: Kept,
        _ delivery: WebhookSender.Outcome?,
        to response: inout HTTPResponse
    ) throws(Problem) {
        var answer: DeletionStatus?
        switch delivery {
        case .failure: throw notDelivered
        case .success(let status): answer = status
        case nil: break
        }
        response.addField("Content-Type: application/json")
        response.addField("Cache-Control: no-store")
        guard kept.event.kind == .dataDeletion, let webhook = kept.webhook else {
            JSONWriter.raw("{}", to: &response.body)
            return
        }
        webhook.status(of: kept.event, answer).write(to: &response.body)
    }

    /// The log says why; Facebook learns only that it failed.
    private static var notDelivered: Problem {
        Problem(.callbackNotDelivered, "The app's backend has not taken it; send it again.")
    }
}
