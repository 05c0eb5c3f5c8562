internal import LLHTTP
internal import LLJOSE
internal import LLStores
internal import LimitedLogin

/// `POST /callbacks/deauthorize` and `POST /callbacks/data-deletion`: Facebook's message about a person is verified,
/// remembered and passed on to the app's backend, unless another request does so or has done so. The request is parked
/// meanwhile.
enum CallbackEndpoint {
    static func answer(_ kind: CallbackKind) -> Route.Answer {
        { worker, exchange, bytes throws(Rejection) in
            let (webhook, core, order) = (worker.settings.webhook, worker.core, RevocationOrder(worker))
            guard let event = try CallbackEvent(kind, bytes.extracting(exchange.body), worker) else {
                write(nil, to: &exchange.response)
                return .done()
            }
            var own: DeletionStatus?
            if kind == .dataDeletion, let webhook, let code = event.confirmationCode {
                own = DeletionStatus(url: "\(webhook.statusURL)?code=\(code)", confirmationCode: code)
            }
            let (deadline, trace) = (exchange.context.now + order.time, TraceParent.passedOn(exchange.head, bytes))
            let until = deadline + RevocationOrder.grace
            let busy = Rejection(.overloaded, "Too many callbacks are waiting; send it again.")
            return try worker.wait(&exchange, bytes, until: until, late: order.late, busy: busy) { [own] waiting in
                let answer = { @Sendable (told: CallbackLedger.Outcome) in
                    waiting.finish { _, exchange, _ throws(Rejection) in
                        write(try told.get() ?? own, to: &exchange.response)
                        return .done()
                    }
                }
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

    /// - Parameter status: What Facebook shows the person: the backend's own page and code, or else the service's.
    private static func write(_ status: DeletionStatus?, to response: inout HTTPResponse) {
        VerifyEndpoint.addFields(to: &response)
        guard let status else { return JSONWriter.raw("{}", to: &response.body) }
        status.write(to: &response.body)
    }
}
