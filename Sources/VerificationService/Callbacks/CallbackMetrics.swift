package import CoreMetrics

/// The counts of Facebook's callbacks and of the webhooks they cause; every series is there from the start, so that the
/// first failure of its kind is an increase too.
package final class CallbackMetrics: Sendable {
    /// What a callback can be answered: nil is 200.
    private static let answers: [ProblemCode?] = [
        nil, .invalidSignedRequest, .callbackNotDelivered, .replayStoreUnavailable, .overloaded,
    ]

    private let callbacks: [CallbackKind: [ProblemCode?: Counter]]
    private let deliveries: [WebhookFailure.Reason?: Counter]

    package init(factory: any MetricsFactory) {
        var callbacks: [CallbackKind: [ProblemCode?: Counter]] = [:]
        for kind in CallbackKind.allCases {
            for answer in Self.answers {
                callbacks[kind, default: [:]][answer] = Counter(
                    label: "limited_login_callbacks_total",
                    dimensions: [("callback", kind.rawValue), ("result", answer?.text ?? "accepted")],
                    factory: factory
                )
            }
        }
        self.callbacks = callbacks
        var deliveries: [WebhookFailure.Reason?: Counter] = [:]
        for reason in [nil] + WebhookFailure.Reason.allCases.map(Optional.some) {
            deliveries[reason] = Counter(
                label: "limited_login_webhooks_total",
                dimensions: [("result", reason?.rawValue ?? "delivered")],
                factory: factory
            )
        }
        self.deliveries = deliveries
    }

    /// Counts a callback by its answer; nil is 200. Requests that are no callbacks at all are not counted.
    func count(_ kind: CallbackKind, _ answer: ProblemCode?) { callbacks[kind]?[answer]?.increment() }

    /// Counts a delivery, its attempts together; nil is one that the backend took.
    func countDelivery(_ reason: WebhookFailure.Reason?) { deliveries[reason]?.increment() }
}
