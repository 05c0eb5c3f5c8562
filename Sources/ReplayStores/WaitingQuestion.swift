internal import Networking

/// A question on its way through the store, and what to do with its answer.
struct WaitingQuestion: Sendable {
    let question: ReplayQuestion
    let askedAt: MonotonicInstant
    let deadline: MonotonicInstant
    let observe: @Sendable (ReplayStoreEvent) -> Void
    let completion: @Sendable (ReplayVerdict) -> Void

    /// Gives the answer, once.
    /// - Parameter answers: one for each entry; none where the store could not be asked.
    func answer(_ answers: [ReplayAnswer], now: MonotonicInstant) {
        let entries = question.entries
        let all = answers.count == entries.count ? answers : entries.map { _ in .unavailable }
        for answer in all { observe(.answered(answer, nanoseconds: now.nanoseconds(since: askedAt))) }
        completion(question.verdict(of: all))
    }
}

/// What happens in a store, for logs and metrics.
package enum ReplayStoreEvent: Equatable, Sendable {
    /// One entry was asked about.
    case answered(ReplayAnswer, nanoseconds: UInt64)
    /// The server can be relied on again.
    case up(RedisLife)
    /// The server cannot be used, for a reason that was not told yet.
    case down(RedisFailure)
}
