internal import LLHTTP1
internal import LLHTTPServer
internal import LLJOSE
internal import LLSockets
internal import LLStores
internal import LimitedLogin

/// `POST /callbacks/deauthorize` and `POST /callbacks/data-deletion`: Facebook's message about a person is verified,
/// remembered and passed on to the app's backend.
///
/// The worker never waits. The request is parked until the revocation is remembered and another thread has called the
/// backend.
enum CallbackEndpoint {
    /// Greatest body in bytes: that of the signed request itself.
    static let bodyLimit = SignedRequest.byteLimit
    /// The time that a request waits longer than its delivery: the delivery's own failure says more than a timeout.
    private static let grace = Duration.milliseconds(250)

    static func answer(_ kind: CallbackKind) -> Route.Answer {
        { worker, exchange, bytes throws(Problem) in
            do throws(Problem) {
                guard let event = try CallbackEvent(kind, bytes.extracting(exchange.body), worker) else {
                    worker.core.metrics.count(kind, nil)
                    VerifyEndpoint.addFields(to: &exchange.response)
                    JSONWriter.raw("{}", to: &exchange.response.body)
                    return .done
                }
                try begin(event, worker, trace: TraceParent.passedOn(exchange.head, bytes), exchange.context)
            } catch {
                worker.core.metrics.count(kind, error.answer)
                throw error
            }
            // Without a backend and Redis the answer is ready already.
            return try WorkerContext.answerAfterJob(worker, &exchange, bytes)
        }
    }

    // The log has the reason why the backend has not accepted it; Facebook learns only that it failed.
    private static let notDelivered = Problem(.callbackNotDelivered)

    /// Remembers the revocation and calls the backend, unless another request does so or has done so.
    private static func begin(
        _ event: CallbackEvent,
        _ worker: WorkerContext,
        trace: String?,
        _ context: RequestContext
    ) throws(Problem) {
        let (webhook, core, jobs) = (worker.settings.webhook, worker.core, worker.jobs)
        let deadline = context.now + (core.webhooks?.limits.deliveryTime ?? ReplayGuard.patience)
        let late = continuation(
            event,
            webhook,
            .failure(webhook == nil ? RevocationsEndpoint.unavailable : notDelivered)
        )
        let isBegun = jobs.begin(context, keeping: late, until: deadline + grace) { request in
            let answer: CallbackLedger.Waiter = { told in
                jobs.finish(request, continuation(event, webhook, told), now: MonotonicClock.now())
            }
            let isAwaited = { @Sendable in jobs.isAwaited(request) }
            switch core.callbackLedger.withLock({ $0.begin(event.id, isAwaited: isAwaited, answer) }) {
            case .perform(let memory): perform(event, memory, webhook, core, until: deadline, trace: trace)
            case .wait: break
            case .answered(let status): answer(.success(status))
            case .refused:
                core.webhooks?.refuse(event)
                answer(.failure(notDelivered))
            case .repetitionRefused: answer(.failure(notDelivered))
            }
            return true
        }
        guard isBegun else { throw Problem(.overloaded, "Too many callbacks are waiting; send it again.") }
    }

    /// Remembers the revocation, calls the backend unless it knows, and answers all requests that wait for it.
    private static func perform(
        _ event: CallbackEvent,
        _ memory: CallbackLedger.Memory?,
        _ webhook: WebhookTarget?,
        _ core: ServiceCore,
        until deadline: MonotonicInstant,
        trace: String?
    ) {
        let (app, user) = (event.appID.utf8, event.userID.utf8)
        core.revocations.revoke(app: app.span, user: user.span, at: event.issuedAt, kind: .callback) { answer in
            let isRemembered = answer == .remembered
            let finish = { @Sendable (delivery: WebhookSender.Outcome) in
                let result: CallbackLedger.Memory
                var told: CallbackLedger.Outcome = .failure(RevocationsEndpoint.unavailable)
                switch delivery {
                case .success(let status):
                    result = isRemembered ? .acknowledged(status) : .delivered(status)
                    if isRemembered { told = .success(status) }
                case .failure:
                    result = .failed
                    if isRemembered { told = .failure(notDelivered) }
                }
                for waiter in core.callbackLedger.withLock({ $0.end(event.id, result) }) { waiter(told) }
            }
            if case .delivered(let status)? = memory { return finish(.success(status)) }
            // The backend is called even if the other replicas could not be told: the person has left in any case.
            guard let webhook, let sender = core.webhooks else { return finish(.success(nil)) }
            sender.submit(event, to: webhook, until: deadline, trace: trace, finish)
        }
    }

    /// Answers Facebook with the result of the backend's call.
    private static func continuation(
        _ event: CallbackEvent,
        _ webhook: WebhookTarget?,
        _ told: Result<DeletionStatus?, Problem>
    ) -> Route.Answer {
        { worker, exchange, _ throws(Problem) in
            let metrics = worker.core.metrics
            switch told {
            case .failure(let problem):
                metrics.count(event.kind, problem.answer)
                throw problem
            case .success(let status):
                metrics.count(event.kind, nil)
                VerifyEndpoint.addFields(to: &exchange.response)
                if event.kind == .dataDeletion, let webhook {
                    // Facebook shows the person the backend's own page and code, or else these.
                    let (page, code) = ("\(webhook.statusURL)?code=\(event.confirmationCode)", event.confirmationCode)
                    (status ?? DeletionStatus(url: page, confirmationCode: code)).write(to: &exchange.response.body)
                } else {
                    JSONWriter.raw("{}", to: &exchange.response.body)
                }
                return .done
            }
        }
    }
}
