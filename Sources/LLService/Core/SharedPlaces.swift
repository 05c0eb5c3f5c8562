internal import Dispatch
internal import LLHTTP

/// A few places for work that blocks, such as asking another server, and a bounded list of jobs that wait for one. Each
/// place is a serial queue, which exists while there is work.
///
/// Jobs may have owners, which then take turns. When the queue is full, jobs that are no longer wanted are dropped. If
/// there are none, a job of an owner with fewer waiting jobs replaces the newest job of the owner with the most: a
/// flood from one owner leaves room for all others.
final class SharedPlaces: Sendable {
    /// One piece of work; it must end by itself.
    typealias Job = @Sendable () -> Void

    private struct Waiting {
        let job: Job
        let drop: Job
        let isWanted: @Sendable () -> Bool
    }

    private struct State {
        var waiting: [JobOwner: [Waiting]] = [:]
        /// The owners of waiting jobs; the first has the next turn.
        var turns: [JobOwner] = []
        var unfinished = 0
        var places = 0
    }

    private let name: String
    private let placeLimit: Int
    private let queueLimit: Int
    private let state = Locked(State())

    init(_ name: String, placeLimit: Int, queueLimit: Int) {
        self.name = name
        self.placeLimit = placeLimit
        self.queueLimit = queueLimit
    }

    /// Adds a job.
    /// - Parameters:
    ///   - drop: Called in place of the job if another one replaces it while it waits. It must not block.
    ///   - isWanted: False if the job is no longer needed because its client has left. It is then dropped as soon as
    ///     another job needs its place.
    /// - Returns: False if too many jobs wait; the job is then not added.
    func submit(
        owner: JobOwner = .all,
        drop: @escaping Job = {},
        isWanted: @escaping @Sendable () -> Bool = { true },
        _ job: @escaping Job
    ) -> Bool {
        let (isTaken, needsPlace, dropped) = state.withLock { state -> (Bool, Bool, [Waiting]) in
            var dropped: [Waiting] = []
            // The waiting jobs alone are the wrong count: a place that was just opened has not taken its job yet.
            if state.unfinished >= placeLimit + queueLimit {
                dropped = Self.removeUnwanted(&state)
                if dropped.isEmpty, let newest = Self.takePlace(for: owner, &state) { dropped = [newest] }
                if dropped.isEmpty { return (false, false, []) }
                state.unfinished -= dropped.count
            }
            state.unfinished += 1
            if state.waiting[owner] == nil { state.turns.append(owner) }
            state.waiting[owner, default: []].append(Waiting(job: job, drop: drop, isWanted: isWanted))
            let needsPlace = state.places < placeLimit
            if needsPlace { state.places += 1 }
            return (true, needsPlace, dropped)
        }
        for one in dropped { one.drop() }
        if needsPlace { DispatchQueue(label: name).async { self.work() } }
        return isTaken
    }

    /// Removes the waiting jobs that are no longer wanted. It visits every waiting job.
    private static func removeUnwanted(_ state: inout State) -> [Waiting] {
        var removed: [Waiting] = []
        for (owner, jobs) in state.waiting {
            var wanted: [Waiting] = []
            for job in jobs { if job.isWanted() { wanted.append(job) } else { removed.append(job) } }
            state.waiting[owner] = wanted.isEmpty ? nil : wanted
        }
        state.turns.removeAll { state.waiting[$0] == nil }
        return removed
    }

    /// Removes the newest waiting job of the owner with the most; nil unless that owner has two more than `owner`. It
    /// visits every owner; there are at most as many as jobs may wait.
    private static func takePlace(for owner: JobOwner, _ state: inout State) -> Waiting? {
        guard let greatest = state.waiting.max(by: { $0.value.count < $1.value.count }),
            greatest.value.count >= (state.waiting[owner]?.count ?? 0) + 2
        else { return nil }
        return state.waiting[greatest.key]?.popLast()
    }

    private func work() {
        while let job = take() {
            job()
            state.withLock { $0.unfinished -= 1 }
        }
    }

    private func take() -> Job? {
        state.withLock { state in
            // Each owner in the list has a job: an owner that loses one keeps at least one other.
            guard let owner = state.turns.first, let next = state.waiting[owner]?.first else {
                state.places -= 1
                return nil
            }
            state.turns.removeFirst()
            state.waiting[owner]?.removeFirst()
            if state.waiting[owner]?.isEmpty == true {
                state.waiting[owner] = nil
            } else {
                state.turns.append(owner)
            }
            return next.job
        }
    }
}

/// The client that caused a job. Jobs of different owners take turns.
enum JobOwner: Hashable, Sendable {
    /// The owner of jobs without a client, and of all callers without an address (Unix sockets).
    case all
    /// A caller with a key, by its position in the keys' file.
    case client(Int)
    case peer(Peer)
}
