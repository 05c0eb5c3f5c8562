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

    static func answer(_ kind: CallbackKind) -> Route.Answer {
        { worker, exchange, bytes throws(Rejection) in
            guard let event = try CallbackEvent(kind, bytes.extracting(exchange.body), worker) else {
                return try continuation(kind, nil, nil, .success(nil))(worker, &exchange, bytes)
            }
            return try begin(event, worker, &exchange, bytes)
        }
    }

    /// Remembers the revocation and calls the backend, unless another request does so or has done so.
    private static func begin(
        _ event: CallbackEvent,
        _ worker: WorkerContext,
        _ exchange: inout HTTPExchange,
        _ bytes: Span<UInt8>
    ) throws(Rejection) -> Outcome {
        let (webhook, core, order) = (worker.settings.webhook, worker.core, RevocationOrder(worker))
        let (deadline, trace) = (exchange.context.now + order.time, TraceParent.passedOn(exchange.head, bytes))
        let continuation = { @Sendable in Self.continuation(event.kind, event.confirmationCode, webhook, $0) }
        let until = deadline + RevocationOrder.grace
        let busy = Rejection(.overloaded, "Too many callbacks are waiting; send it again.")
        return try worker.wait(&exchange, bytes, until: until, late: order.late, busy: busy) { waiting in
            let answer: CallbackLedger.Waiter = { waiting.finish(continuation($0)) }
            let isAwaited = { @Sendable in waiting.isAwaited }
            switch core.callbackLedger.withLock({ $0.begin(event.id, isAwaited: isAwaited, answer) }) {
            case .perform(let memory):
                order.perform(event, memory, until: deadline, trace: trace) { told, result in
                    for waiter in core.callbackLedger.withLock({ $0.end(event.id, result) }) { waiter(told) }
                }
            case .wait: break
            case .answered(let status): answer(.success(status))
            case .refused:
                core.webhooks?.refuse(event)
                answer(.failure(RevocationOrder.notDelivered))
            case .repetitionRefused: answer(.failure(RevocationOrder.notDelivered))
            }
            return true
        }
    }

    private static func continuation(
        _ kind: CallbackKind,
        _ code: String?,
        _ webhook: WebhookTarget?,
        _ told: CallbackLedger.Outcome
    ) -> Route.Answer {
        { _, exchange, _ throws(Rejection) in
            let status = try told.get()
            VerifyEndpoint.addFields(to: &exchange.response)
            if kind == .dataDeletion, let webhook, let code {
                // Facebook shows the person the backend's own page and code, or else these.
                let own = DeletionStatus(url: "\(webhook.statusURL)?code=\(code)", confirmationCode: code)
                (status ?? own).write(to: &exchange.response.body)
            } else {
                JSONWriter.raw("{}", to: &exchange.response.body)
            }
            return .done()
        }
    }
}
