internal import LLHTTP
internal import LLJOSE
internal import LLStores
internal import LimitedLogin

/// `POST /callbacks/deauthorize` and `POST /callbacks/data-deletion`: Facebook's message about a person is verified,
/// remembered and passed on to the app's backend.
///
/// The worker never waits. The request is parked until the revocation is remembered and another thread has called the
/// backend.
enum CallbackEndpoint {
    static let bodyLimit = SignedRequest.byteLimit
    /// The time that a request waits longer than its delivery: the delivery's own failure says more than a timeout.
    private static let grace = Duration.milliseconds(250)

    static func answer(_ kind: CallbackKind) -> Route.Answer {
        { worker, exchange, bytes throws(Rejection) in
            guard let event = try CallbackEvent(kind, bytes.extracting(exchange.body), worker) else {
                worker.core.metrics.count(kind, nil)
                VerifyEndpoint.addFields(to: &exchange.response)
                JSONWriter.raw("{}", to: &exchange.response.body)
                return .done
            }
            return try begin(event, worker, &exchange, bytes)
        }
    }

    // The log has the reason why the backend has not accepted it; Facebook learns only that it failed.
    private static let notDelivered = Rejection(.callbackNotDelivered)

    /// Remembers the revocation and calls the backend, unless another request does so or has done so.
    private static func begin(
        _ event: CallbackEvent,
        _ worker: WorkerContext,
        _ exchange: inout HTTPExchange,
        _ bytes: Span<UInt8>
    ) throws(Rejection) -> Outcome {
        let (webhook, core) = (worker.settings.webhook, worker.core)
        let trace = TraceParent.passedOn(exchange.head, bytes)
        let deadline = exchange.context.now + (core.webhooks?.limits.deliveryTime ?? ReplayGuard.patience)
        let late = continuation(
            event,
            webhook,
            .failure(webhook == nil ? RevocationsEndpoint.unavailable : notDelivered)
        )
        func busy() -> Rejection {
            core.metrics.count(event.kind, .overloaded)
            return Rejection(.overloaded, "Too many callbacks are waiting; send it again.")
        }
        return try worker.wait(&exchange, bytes, until: deadline + grace, late: late, busy: busy()) { waiting in
            let answer: CallbackLedger.Waiter = { waiting.finish(continuation(event, webhook, $0)) }
            let isAwaited = { @Sendable in waiting.isAwaited }
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
    }

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

    private static func continuation(
        _ event: CallbackEvent,
        _ webhook: WebhookTarget?,
        _ told: Result<DeletionStatus?, Rejection>
    ) -> Route.Answer {
        { worker, exchange, _ throws(Rejection) in
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
