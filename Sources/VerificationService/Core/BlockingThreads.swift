internal import Sockets

/// Threads for work that blocks, such as asking another server. They are few, begin when there is work and end when there
/// is none. A bounded number of jobs waits for them.
final class BlockingThreads: Sendable {
    /// One piece of work; it must end by itself.
    typealias Job = @Sendable () -> Void

    private struct State {
        var waiting: [Job] = []
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
    /// - Returns: False where too many wait already; then nothing is done.
    func submit(_ job: @escaping Job) -> Bool {
        let (isTaken, needsThread) = state.withLock { state in
            // Not by those that wait: a thread that was just begun has not taken its job yet.
            guard state.unfinished < threadLimit + queueLimit else { return (false, false) }
            state.unfinished += 1
            state.waiting.append(job)
            let needsThread = state.threads < threadLimit
            if needsThread { state.threads += 1 }
            return (true, needsThread)
        }
        if needsThread { LoopQueue.start(name) { self.work() } }
        return isTaken
    }

    private func work() {
        while let job = take() {
            job()
            state.withLock { $0.unfinished -= 1 }
        }
    }

    private func take() -> Job? {
        state.withLock { state in
            guard !state.waiting.isEmpty else {
                state.threads -= 1
                return nil
            }
            return state.waiting.removeFirst()
        }
    }
}
