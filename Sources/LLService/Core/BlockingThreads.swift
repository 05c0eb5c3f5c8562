internal import LLHTTPServer
internal import LLSockets

/// Threads for work that blocks, such as asking another server. They are few, begin when there is work and end when there
/// is none. A bounded number of jobs waits for them.
///
/// Jobs may have owners, which then take turns. When all places are taken, jobs that nobody waits for any longer lose theirs.
/// If there are none, an owner with fewer waiting jobs gets the place of the newest job of the owner with the most: a flood
/// from one leaves room for all others.
final class BlockingThreads: Sendable {
    /// One piece of work; it must end by itself.
    typealias Job = @Sendable () -> Void

    private struct Waiting {
        let job: Job
        let drop: Job
        let isWanted: @Sendable () -> Bool
    }

    private struct State {
        /// The waiting jobs of each owner that has any, oldest first.
        var waiting: [JobOwner: [Waiting]] = [:]
        /// The owners of waiting jobs; the first has the next turn.
        var turns: [JobOwner] = []
        /// Jobs that wait or are under way.
        var unfinished = 0
        var threads = 0
    }

    private let name: String
    private let threadLimit: Int
    private let queueLimit: Int
    private let state = Locked(State())

    /// - Parameters:
    ///   - name: The threads' name, at most 15 bytes.
    ///   - threadLimit: The most jobs at a time.
    ///   - queueLimit: The most jobs that wait for a thread.
    init(_ name: String, threadLimit: Int, queueLimit: Int) {
        self.name = name
        self.threadLimit = threadLimit
        self.queueLimit = queueLimit
    }

    /// Has a job done on another thread.
    /// - Parameters:
    ///   - owner: On whose behalf it is done.
    ///   - drop: Called in place of the job if it loses its place while it waits. It must not block.
    ///   - isWanted: False if the job need not be done any longer, because its client has left. It then loses its place as
    ///     soon as another job needs one.
    /// - Returns: False where too many wait already, or the system has no thread left; then nothing is done.
    func submit(
        owner: JobOwner = .all,
        drop: @escaping Job = {},
        isWanted: @escaping @Sendable () -> Bool = { true },
        _ job: @escaping Job
    ) -> Bool {
        let (isTaken, needsThread, dropped) = state.withLock { state -> (Bool, Bool, [Waiting]) in
            var dropped: [Waiting] = []
            // Not by those that wait: a thread that was just begun has not taken its job yet.
            if state.unfinished >= threadLimit + queueLimit {
                dropped = Self.removeUnwanted(&state)
                if dropped.isEmpty, let newest = Self.takePlace(for: owner, &state) { dropped = [newest] }
                if dropped.isEmpty { return (false, false, []) }
                state.unfinished -= dropped.count
            }
            state.unfinished += 1
            if state.waiting[owner] == nil { state.turns.append(owner) }
            state.waiting[owner, default: []].append(Waiting(job: job, drop: drop, isWanted: isWanted))
            let needsThread = state.threads < threadLimit
            if needsThread { state.threads += 1 }
            return (true, needsThread, dropped)
        }
        for one in dropped { one.drop() }
        guard needsThread, !LoopQueue.start(name, { self.work() }) else { return isTaken }
        return state.withLock { state in
            state.threads -= 1
            // Another thread takes the job, if there is one.
            guard state.threads == 0 else { return true }
            _ = state.waiting[owner]?.popLast()
            if state.waiting[owner]?.isEmpty == true {
                state.waiting[owner] = nil
                state.turns.removeAll { $0 == owner }
            }
            state.unfinished -= 1
            return false
        }
    }

    /// Removes the waiting jobs that are no longer wanted: a look at each.
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

    /// Removes the newest waiting job of the owner with the most; nil unless that has two more than `owner`. A look at every
    /// owner: at most as many as jobs may wait.
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
            // An owner in the list has a job: one that loses a job keeps at least another.
            guard let owner = state.turns.first, let next = state.waiting[owner]?.first else {
                state.threads -= 1
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

/// On whose behalf a job is done: jobs of different owners take turns.
enum JobOwner: Hashable, Sendable {
    /// All callers of jobs that need no owner, and callers without an address (Unix sockets).
    case all
    /// A caller with a key, by its position in the keys' file.
    case client(Int)
    case peer(PeerTable.Peer)
}
