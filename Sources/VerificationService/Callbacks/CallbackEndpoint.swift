internal import HTTP1
internal import HTTPServer
internal import LimitedLogin
internal import LoginStores
internal import Sockets

/// `POST /callbacks/deauthorize` and `POST /callbacks/data-deletion`: what Facebook tells of a person, verified, remembered
/// and passed on to the app's backend.
///
/// The worker never waits: the request is parked until the revocation is remembered and another thread has told the
/// backend.
enum CallbackEndpoint {
    /// Greatest body in bytes: that of the signed request itself.
    static let bodyLimit = SignedRequest.byteLimit
    /// The most callbacks of one worker that wait: more than all threads and their queue together take.
    static let waitingLimit = 256
    /// How much longer than its delivery a request waits: the delivery's own failure says more than that time is over.
    private static let grace = Duration.milliseconds(250)

    static func answer(
        _ kind: CallbackKind,
        _ worker: WorkerParts,
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        _ body: Span<UInt8>,
        _ context: RequestContext,
        _ response: inout HTTPResponse
    ) throws(Problem) -> Outcome {
        let patience: MonotonicInstant
        do throws(Problem) {
            let event = try read(kind, body, worker.settings)
            patience = try begin(event, worker, trace: TraceParent.passedOn(head, bytes), context)
        } catch {
            worker.core.metrics.count(kind, error.code)
            throw error
        }
        // Where there is no backend and no Redis the answer is there already.
        return try worker.goOn(context.again, &response) ?? .wait(until: patience)
    }

    /// Verifies the signed request. Nothing has happened yet when it is refused.
    private static func read(
        _ kind: CallbackKind,
        _ body: Span<UInt8>,
        _ settings: RuntimeSettings
    ) throws(Problem) -> CallbackEvent {
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

    /// Remembers the revocation, and has the backend told.
    /// - Parameter trace: the request's `traceparent`, which the webhook passes on.
    /// - Returns: until when the request waits.
    private static func begin(
        _ event: CallbackEvent,
        _ worker: WorkerParts,
        trace: String?,
        _ context: RequestContext
    ) throws(Problem) -> MonotonicInstant {
        let (webhook, sender, jobs) = (worker.settings.webhook, worker.core.webhooks, worker.callbacks)
        let deadline = context.now + (sender?.limits.deliveryTime ?? FirstUse.patience)
        // The log says why the backend has not taken it; Facebook learns only that it failed.
        let notDelivered = Problem(.callbackNotDelivered, "The app's backend has not taken it; send it again.")
        let late = continuation(
            event,
            webhook,
            .failure(webhook == nil ? RevocationsEndpoint.unavailable : notDelivered)
        )
        let isBegun = jobs.begin(context, keeping: late, until: deadline + grace) { request in
            // At most the present, for the store takes no later moment.
            let (app, user) = (event.appID.utf8, event.userID.utf8)
            worker.core.revocations.revoke(app: app.span, user: user.span, at: event.issuedAt) { answer in
                // The backend is told whether or not the other replicas are: the person has left all the same.
                let finish = { @Sendable (delivery: WebhookSender.Outcome) in
                    let told: Result<DeletionStatus?, Problem> =
                        answer == .remembered
                        ? delivery.mapError { _ in notDelivered } : .failure(RevocationsEndpoint.unavailable)
                    jobs.finish(request, continuation(event, webhook, told), now: MonotonicClock.now())
                }
                guard let webhook, let sender else { return finish(.success(nil)) }
                sender.submit(event, to: webhook, until: deadline, trace: trace, finish)
            }
            return true
        }
        guard isBegun else { throw Problem(.overloaded, "Too many callbacks are waiting; send it again.") }
        return deadline + grace
    }

    /// Answers Facebook by what came of telling the backend.
    private static func continuation(
        _ event: CallbackEvent,
        _ webhook: WebhookTarget?,
        _ told: Result<DeletionStatus?, Problem>
    ) -> WorkerParts.Continuation {
        { worker, _, response throws(Problem) in
            let metrics = worker.core.metrics
            switch told {
            case .failure(let problem):
                metrics.count(event.kind, problem.code)
                throw problem
            case .success(let status):
                metrics.count(event.kind, nil)
                VerifyEndpoint.addFields(to: &response)
                if event.kind == .dataDeletion, let webhook {
                    webhook.status(of: event, status).write(to: &response.body)
                } else {
                    JSONWriter.raw("{}", to: &response.body)
                }
                return .done
            }
        }
    }
}
