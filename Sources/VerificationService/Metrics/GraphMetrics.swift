internal import CoreMetrics
package import Graph

/// The counts and durations of the calls of Graph; every series is there from the start, so that the first error of its
/// kind is an increase too.
package final class GraphMetrics: Sendable {
    private struct Key: Hashable {
        let operation: GraphCall.Operation
        /// Nil for a call that did as asked.
        let error: GraphError?
    }

    private let counters: [Key: Counter]
    private let timers: [GraphCall.Operation: Timer]

    init(factory: any MetricsFactory) {
        var counters: [Key: Counter] = [:]
        var timers: [GraphCall.Operation: Timer] = [:]
        for operation in GraphCall.Operation.allCases {
            for error in [nil] + GraphError.allCases.map(Optional.some) {
                counters[Key(operation: operation, error: error)] = Counter(
                    label: "limited_login_graph_requests_total",
                    dimensions: [("operation", operation.rawValue), ("result", error?.rawValue ?? "ok")],
                    factory: factory
                )
            }
            timers[operation] = Timer(
                label: "limited_login_graph_request_duration_seconds",
                dimensions: [("operation", operation.rawValue)],
                factory: factory
            )
        }
        self.counters = counters
        self.timers = timers
    }

    /// Counts a call and how long it took, tries and pauses included.
    package func count(_ operation: GraphCall.Operation, _ error: GraphError?, nanoseconds: UInt64) {
        counters[Key(operation: operation, error: error)]?.increment()
        timers[operation]?.recordNanoseconds(Int64(clamping: nanoseconds))
    }
}
