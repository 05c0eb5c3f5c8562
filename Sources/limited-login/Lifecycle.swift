internal import Dispatch

/// Runs servers until the program is told to stop.
enum Lifecycle {
    /// Calls `start`, waits for SIGTERM or SIGINT, and calls `stop`. A signal that comes during `start` is an orderly stop
    /// too.
    static func run<Failure>(start: () throws(Failure) -> Void, stop: () async -> Void) async throws(Failure) {
        let (untilSignal, signal) = AsyncStream.makeStream(of: Never.self)
        ProcessSignals.shared.onStop { signal.finish() }
        try start()
        for await _ in untilSignal {}
        await stop()
    }
}

/// Where the program's asynchronous work runs: one serial queue, which the system does not watch.
///
/// Swift's own executor uses libdispatch's shared thread pool, and from its first use on a monitor of that pool wakes
/// the process once a second for ever. An idle server shall sleep, and starting and stopping need no second thread.
final class LifecycleExecutor: TaskExecutor {
    static let shared = LifecycleExecutor()

    // A queue of its own takes its threads from the pool that is not monitored.
    private let queue = DispatchQueue(label: "lifecycle")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { [self] in unsafe job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
}
