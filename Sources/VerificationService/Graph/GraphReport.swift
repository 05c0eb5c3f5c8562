package import Graph

/// What Graph told about a failed call, carried by the problem it became; a class, so that problems stay small.
package final class GraphReport: Sendable, Equatable {
    package let failure: GraphFailure

    package init(_ failure: GraphFailure) { self.failure = failure }

    package static func == (left: GraphReport, right: GraphReport) -> Bool { left.failure == right.failure }
}

extension Problem {
    /// The problem of a call that failed at Graph, or on the way there.
    package init(_ failure: GraphFailure) {
        self.init(
            .graph(failure.error),
            failure.error.sentence,
            retryAfter: failure.retryAfterSeconds,
            graph: GraphReport(failure)
        )
    }
}
