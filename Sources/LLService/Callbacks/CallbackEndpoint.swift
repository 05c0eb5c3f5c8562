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

    /// Remembers the revocation and calls the backend, unless another request does so or has done so.
    static func answer(_ kind: CallbackKind) -> Route.Answer {
        { worker, exchange, bytes throws(Rejection) in
            let (webhook, core, order) = (worker.settings.webhook, worker.core, RevocationOrder(worker))
            let event = try CallbackEvent(kind, bytes.extracting(exchange.body), worker)
            let code = event?.confirmationCode
            let continuation = { @Sendable in Self.continuation(kind, code, webhook, $0) }
            guard let event else { return try continuation(.success(nil))(worker, &exchange, bytes) }
            let (deadline, trace) = (exchange.context.now + order.time, TraceParent.passedOn(exchange.head, bytes))
            let until = deadline + RevocationOrder.grace
            let busy = Rejection(.overloaded, "Too many callbacks are waiting; send it again.")
            return try worker.wait(&exchange, bytes, until: until, late: order.late, busy: busy) { waiting in
                let answer = { @Sendable (told: CallbackLedger.Outcome) in waiting.finish(continuation(told)) }
                switch core.callbackLedger.withLock({ $0.begin(event.id) }) {
                case .perform(let memory):
                    order.perform(event, memory, until: deadline, trace: trace) { told, result in
                        core.callbackLedger.withLock { $0.end(event.id, result) }
                        answer(told)
                    }
                case .answered(let status): answer(.success(status))
                case .refused:
                    core.webhooks?.refuse(event)
                    answer(.failure(RevocationOrder.notDelivered))
                case .underWay: answer(.failure(RevocationOrder.notDelivered))
                }
                return true
            }
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
