/// Jobs on other threads, and the requests of one worker that wait for them, parked. When a job has ended, its request
/// alone is woken and takes the outcome, with the results that it had before it parked. The outcome is dropped if no
/// request waits for it any more (its client disconnected, or its time was over).
package final class BackgroundJobs<Kept: Sendable, Outcome: Sendable>: Sendable {
    package enum Visit {
        case none
        /// Its job is not over: park again, until this moment.
        case waiting(until: MonotonicInstant)
        /// Its job is over: the kept results, and the job's outcome.
        case done(Kept, Outcome)
        /// Its time is over: the kept results.
        case expired(Kept)
    }

    private struct Entry {
        let kept: Kept
        let deadline: MonotonicInstant
        var outcome: Outcome?
    }

    private struct State {
        var entries: [ParkedRequest: Entry] = [:]
        var waker: RequestWaker?
    }

    package let capacity: Int
    private let state = Locked(State())

    package init(capacity: Int) { self.capacity = capacity }

    /// Sets the waker of the requests; called once, before the first job.
    package func attach(_ waker: @escaping RequestWaker) { state.withLock { $0.waker = waker } }

    package var count: Int { state.withLock { $0.entries.count } }

    /// Begins the job of a request, which the handler then parks until this moment.
    /// - Parameter start: Hands the job to another thread; false if that thread takes no more.
    /// - Returns: False if too many requests wait already, or if the request's time is over: it may not wait again.
    package func begin(
        _ context: RequestContext,
        keeping kept: Kept,
        until deadline: MonotonicInstant,
        start: (ParkedRequest) -> Bool
    ) -> Bool {
        let request = context.request
        // Store the entry first: the job may end before this function returns.
        let isEntered = state.withLock { state in
            guard context.visit != .expired, state.entries.count < capacity else { return false }
            state.entries[request] = Entry(kept: kept, deadline: deadline)
            return true
        }
        guard isEntered else { return false }
        if start(request) { return true }
        abandon(request)
        return false
    }

    package func isAwaited(_ request: ParkedRequest) -> Bool { state.withLock { $0.entries[request] != nil } }

    /// The job of a request is over; may be called on any thread.
    /// - Returns: False if no request waits for it any more.
    @discardableResult
    package func finish(_ request: ParkedRequest, _ outcome: Outcome, now: MonotonicInstant) -> Bool {
        let waker = state.withLock { state -> RequestWaker? in
            guard let entry = state.entries[request], entry.outcome == nil, now < entry.deadline else { return nil }
            state.entries[request]?.outcome = outcome
            return state.waker
        }
        // Wake it outside the lock: the worker may visit the entry at once.
        waker?(request)
        return waker != nil
    }

    /// The state of the visited request. Its entry is removed, unless the request must wait longer.
    package func visit(_ context: RequestContext) -> Visit {
        let request = context.request
        return state.withLock { state in
            guard let entry = state.entries[request] else { return .none }
            if entry.outcome == nil, context.visit != .expired { return .waiting(until: entry.deadline) }
            state.entries[request] = nil
            guard let outcome = entry.outcome else { return .expired(entry.kept) }
            return .done(entry.kept, outcome)
        }
    }

    package func abandon(_ request: ParkedRequest) { state.withLock { $0.entries[request] = nil } }
}
