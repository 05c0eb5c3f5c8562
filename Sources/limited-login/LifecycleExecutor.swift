internal import Dispatch

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
