internal import LLHTTP
internal import LLJOSE
internal import LLStores
internal import LimitedLogin

/// `POST /revocations`: refuses every token of a person and app that was issued until now ("log out everywhere").
enum RevocationsEndpoint {
    /// The revocation holds when this returns or the request is answered, independent of the answer.
    static let answer: Route.Answer = { worker, exchange, bytes throws(Rejection) in
        let members = try JSONDocument.texts(bytes.extracting(exchange.body), known: ["user_id", "app_id"])
        guard let text = members["user_id"] else { throw Rejection(.invalidRequest, "The member user_id is missing.") }
        guard let user = GraphUserID(text)?.text else {
            throw Rejection(.invalidRequest, "The member user_id must be \(GraphUserID.shape).")
        }
        let event = CallbackEvent(revoking: user, of: try worker.settings.app(named: members["app_id"]))
        let order = RevocationOrder(worker)
        let (deadline, trace) = (exchange.context.now + order.time, TraceParent.passedOn(exchange.head, bytes))
        let (until, busy) = (deadline + RevocationOrder.grace, RevocationOrder.unavailable)
        return try worker.wait(&exchange, bytes, until: until, late: order.late, busy: busy) { waiting in
            order.perform(event, until: deadline, trace: trace) { told, _ in
                waiting.finish { _, exchange, _ throws(Rejection) in
                    _ = try told.get()
                    exchange.response.status = 204
                    exchange.response.addField("Cache-Control: no-store")
                    return .done()
                }
            }
            return true
        }
    }
}

/// The end of a login: the revocation is remembered, and the backend is told.
struct RevocationOrder: Sendable {
    /// A request waits this much longer than its delivery, whose own failure says more than a timeout.
    static let grace = Duration.milliseconds(250)
    /// The revocation may hold on this replica, but not on all of them.
    static let unavailable = Rejection(
        .replayStoreUnavailable,
        "The revocation cannot be told to the other replicas now, or there is no room for it; send it again shortly."
    )
    /// The log has the reason.
    static let notDelivered = Rejection(.callbackNotDelivered)

    private let core: ServiceCore
    private let webhook: WebhookTarget?

    init(_ worker: WorkerContext) { (core, webhook) = (worker.core, worker.settings.webhook) }

    var time: Duration { core.webhooks?.limits.deliveryTime ?? ReplayGuard.patience }
    var late: Rejection { webhook == nil ? Self.unavailable : Self.notDelivered }

    /// - Parameters:
    ///   - memory: The result of an earlier delivery; it is not made again if the backend accepted it.
    ///   - done: Called once, on any thread.
    func perform(
        _ event: CallbackEvent,
        _ memory: CallbackLedger.Memory? = nil,
        until deadline: MonotonicInstant,
        trace: String?,
        _ done: @escaping @Sendable (CallbackLedger.Outcome, CallbackLedger.Memory) -> Void
    ) {
        let (app, user) = (event.appID.utf8, event.userID.utf8)
        let kind: RevocationKind = event.kind == .revocation ? .order : .callback
        core.revocations.revoke(app: app.span, user: user.span, at: event.issuedAt, kind: kind) { isRemembered in
            let finish = { @Sendable (delivery: WebhookSender.Outcome) in
                switch delivery {
                case .success(let status) where isRemembered: done(.success(status), .acknowledged(status))
                case .success(let status): done(.failure(Self.unavailable), .delivered(status))
                case .failure: done(.failure(isRemembered ? Self.notDelivered : Self.unavailable), .failed)
                }
            }
            if case .delivered(let status)? = memory { return finish(.success(status)) }
            // The backend is called even if the other replicas could not be told: the login has ended in any case.
            guard let webhook, let sender = core.webhooks else { return finish(.success(nil)) }
            sender.submit(event, to: webhook, until: deadline, trace: trace, finish)
        }
    }
}

extension Revocations {
    /// Refuses a credential if its login was revoked after it was issued, or may have been.
    func requireInForce(app: Span<UInt8>, user: Span<UInt8>, issuedAt: NumericDate) throws(Rejection) {
        let seconds = issuedAt.wholeSeconds
        guard let latest = latest(app: app, user: user), seconds <= latest.moment else { return }
        throw doubt(latest) ?? Rejection(.loginRevoked)
    }

    /// The answer if it cannot be told whether a credential is older than its login's revocation; nil if it can.
    func doubt(_ revocation: Revocation) -> Rejection? {
        guard isInDoubt(revocation) else { return nil }
        return Rejection(
            .replayStoreUnavailable,
            "The login was revoked while a clock was ahead, so it cannot be known whether the token is older; the log tells more."
        )
    }
}
