internal import Dispatch
internal import LLHTTP

/// A few places for work that blocks, such as asking another server, and a bounded list of jobs that wait for one. Each
/// place is a serial queue, which exists while there is work.
///
/// Jobs may have owners, which then take turns. When the queue is full, a job of an owner with fewer waiting jobs
/// replaces the newest job of the owner with the most: a flood from one owner leaves room for all others.
final class SharedPlaces: Sendable {
    /// One piece of work; it must end by itself.
    typealias Job = @Sendable () -> Void

    private struct State {
        var waiting: [JobOwner: [(job: Job, drop: Job)]] = [:]
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
    /// - Parameter drop: Called in place of the job if another one replaces it while it waits. It must not block.
    /// - Returns: False if too many jobs wait; the job is then not added.
    func submit(owner: JobOwner = .all, drop: @escaping Job = {}, _ job: @escaping Job) -> Bool {
        let (isTaken, needsPlace, replaced) = state.withLock { state -> (Bool, Bool, Job?) in
            // The waiting jobs alone are the wrong count: a place that was just opened has not taken its job yet.
            let isFull = state.unfinished >= placeLimit + queueLimit
            let replaced = isFull ? Self.takePlace(for: owner, &state) : nil
            if isFull, replaced == nil { return (false, false, nil) }
            if !isFull { state.unfinished += 1 }
            if state.waiting[owner] == nil { state.turns.append(owner) }
            state.waiting[owner, default: []].append((job, drop))
            let needsPlace = state.places < placeLimit
            if needsPlace { state.places += 1 }
            return (true, needsPlace, replaced)
        }
        replaced?()
        if needsPlace { DispatchQueue(label: name).async { self.work() } }
        return isTaken
    }

    /// Removes the newest waiting job of the owner with the most, and returns its `drop`; nil unless that owner has two
    /// more than `owner`. It visits every owner; there are at most as many as jobs may wait.
    private static func takePlace(for owner: JobOwner, _ state: inout State) -> Job? {
        guard let greatest = state.waiting.max(by: { $0.value.count < $1.value.count }),
            greatest.value.count >= (state.waiting[owner]?.count ?? 0) + 2
        else { return nil }
        return state.waiting[greatest.key]?.popLast()?.drop
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
