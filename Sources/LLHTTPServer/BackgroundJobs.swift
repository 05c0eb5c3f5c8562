package import LLSockets

/// What requests of one worker wait for that other threads find out: the meeting point of a request and its job.
///
/// A request begins a job and is parked. The job ends on another thread, whose outcome is kept here, and its request
/// alone is woken and takes it. What the request had found out before it parked is kept beside it, so that nothing is done
/// twice. An outcome that no request waits for any more (its client left, or its time was over) is dropped.
package final class BackgroundJobs<Kept: Sendable, Outcome: Sendable>: Sendable {
    /// What a request finds when it is visited.
    package enum Visit {
        /// It has begun no job.
        case none
        /// Its job is not over: park again, until this moment.
        case waiting(until: MonotonicInstant)
        /// Its job is over; what was kept, and what the job found out.
        case done(Kept, Outcome)
        /// Its time is over; what was kept.
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

    /// The most requests that may wait at a time.
    package let capacity: Int
    private let state = Locked(State())

    package init(capacity: Int) { self.capacity = capacity }

    /// What wakes the requests; given once, before the first job.
    package func attach(_ waker: RequestWaker) { state.withLock { $0.waker = waker } }

    package var count: Int { state.withLock { $0.entries.count } }

    /// Begins the job of a request, which is to be parked until this moment.
    /// - Parameter start: Hands the job to another thread; false where that takes no more.
    /// - Returns: False where too many wait already, and where the request's time is over: it may not wait anew.
    package func begin(
        _ context: RequestContext,
        keeping kept: Kept,
        until deadline: MonotonicInstant,
        start: (ParkedRequest) -> Bool
    ) -> Bool {
        let request = context.request
        // Entered first: the job may be over before this returns.
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

    /// Whether anybody still waits for the job of a request.
    package func isAwaited(_ request: ParkedRequest) -> Bool { state.withLock { $0.entries[request] != nil } }

    /// The job of a request is over; from any thread.
    /// - Returns: False where no request waits for it any more.
    @discardableResult
    package func finish(_ request: ParkedRequest, _ outcome: Outcome, now: MonotonicInstant) -> Bool {
        let waker = state.withLock { state -> RequestWaker? in
            guard let entry = state.entries[request], entry.outcome == nil, now < entry.deadline else { return nil }
            state.entries[request]?.outcome = outcome
            return state.waker
        }
        // Outside the lock: the worker may look at once.
        waker?.wake(request)
        return waker != nil
    }

    /// What there is for a request that is visited; it is forgotten here unless it must wait on.
    package func visit(_ context: RequestContext) -> Visit {
        // The first visit of a request costs no lock: it cannot have begun anything.
        guard context.visit != .first else { return .none }
        let request = context.request
        return state.withLock { state in
            guard let entry = state.entries[request] else { return .none }
            if entry.outcome == nil, context.visit != .expired { return .waiting(until: entry.deadline) }
            state.entries[request] = nil
            guard let outcome = entry.outcome else { return .expired(entry.kept) }
            return .done(entry.kept, outcome)
        }
    }

    /// The client of a request has left.
    package func abandon(_ request: ParkedRequest) { state.withLock { $0.entries[request] = nil } }
}
