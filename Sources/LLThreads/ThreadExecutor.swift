/// Runs asynchronous code on the calling thread until it has ended, including its waits.
///
/// It does not use the global pool: a blocking source of keys delays only this thread.
package final class ThreadExecutor: TaskExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        var isDone = false
    }

    private let state = Monitor(State())

    package init() {}

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        state.withLock { $0.jobs.append(job) }
        state.wake()
    }

    /// Runs `body`; call it once.
    /// - Parameter started: Receives the task, which any thread may cancel.
    package func run<Value: Sendable>(
        _ body: @escaping @Sendable () async -> Value,
        started: (Task<Void, Never>) -> Void
    ) -> Value? {
        let value = Locked<Value?>(nil)
        started(
            Task(executorPreference: self) {
                let made = await body()
                value.withLock { $0 = made }
                self.state.withLock { $0.isDone = true }
                self.state.wake()
            }
        )
        while let job = state.wait(Self.next) { unsafe job.runSynchronously(on: asUnownedTaskExecutor()) }
        return value.withLock { $0 }
    }

    private static func next(_ state: inout State) -> Monitor<State>.Look<UnownedJob?> {
        if !state.jobs.isEmpty { return .done(state.jobs.removeFirst()) }
        return state.isDone ? .done(nil) : .wait(until: .never)
    }
}
