/// Runs asynchronous code on the calling thread until it has ended, including its waits.
///
/// It does not use the global pool: a blocking source of keys delays only this thread.
package final class ThreadExecutor: TaskExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        var isDone = false
        /// The moment at which the task is cancelled; `.never` once it was.
        var deadline: MonotonicInstant
    }

    private enum Turn {
        case job(UnownedJob)
        case over
        case done
    }

    private let state: Monitor<State>

    /// - Parameter deadline: the moment at which the task is cancelled if it still waits.
    package init(until deadline: MonotonicInstant = .never) { state = Monitor(State(deadline: deadline)) }

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
        let task = Task(executorPreference: self) {
            let made = await body()
            value.withLock { $0 = made }
            self.state.withLock { $0.isDone = true }
            self.state.wake()
        }
        started(task)
        while true {
            switch state.wait(Self.next) {
            case .job(let job): unsafe job.runSynchronously(on: asUnownedTaskExecutor())
            case .over: task.cancel()
            case .done: return value.withLock { $0 }
            }
        }
    }

    private static func next(_ state: inout State) -> Monitor<State>.Look<Turn> {
        if !state.jobs.isEmpty { return .done(.job(state.jobs.removeFirst())) }
        if state.isDone { return .done(.done) }
        guard MonotonicClock.now() >= state.deadline else { return .wait(until: state.deadline) }
        state.deadline = .never
        return .done(.over)
    }
}
