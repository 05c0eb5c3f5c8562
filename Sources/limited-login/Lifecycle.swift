internal import Dispatch
internal import Logging
internal import ServiceLifecycle

/// Runs services until SIGTERM or SIGINT, then stops them in the reverse order.
enum Lifecycle {
    static func run(_ services: [any Service]) async throws {
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: services,
                // The services log what matters to an operator; the group's own lines are about its inner life.
                logger: Logger(label: "limited-login") { _ in SwiftLogNoOpLogHandler() }
            )
        )
        ProcessSignals.shared.onStop {
            Task(executorPreference: LifecycleExecutor.shared) { await group.triggerGracefulShutdown() }
        }
        try await group.run()
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
