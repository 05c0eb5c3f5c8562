internal import Dispatch
internal import Glibc
internal import Sockets

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

/// The signals that stop the program or make it read its configuration anew, taken by the main thread one by one.
///
/// No dispatch source: libdispatch reads signals from a descriptor and also catches and raises them again, and one
/// SIGTERM has been seen to count as two, which here means "end at once". The signals are blocked before there is any
/// other thread, all threads inherit that, and `sigwait` takes each once.
final class ProcessSignals: Sendable {
    static let shared = ProcessSignals()

    private struct Handlers {
        var stop: (@Sendable () -> Void)?
        var reload: (@Sendable () -> Void)?
        var isStopping = false
    }

    private let handlers = Locked(Handlers())

    /// `body` runs at the first SIGTERM or SIGINT; the second ends the process at once.
    func onStop(_ body: @escaping @Sendable () -> Void) { handlers.withLock { $0.stop = body } }

    /// `body` runs at each SIGHUP.
    func onReload(_ body: @escaping @Sendable () -> Void) { handlers.withLock { $0.reload = body } }

    /// Blocks the signals for this thread and all it starts; called by the main thread before anything else.
    static func block() {
        var set = signals()
        unsafe pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// Takes the signals for the rest of the process's life.
    func takeForEver() -> Never {
        var set = Self.signals()
        while true {
            var number: Int32 = 0
            if unsafe sigwait(&set, &number) == 0 { take(number) }
        }
    }

    private func take(_ number: Int32) {
        let body: (@Sendable () -> Void)? = handlers.withLock { handlers in
            if number == SIGHUP { return handlers.reload }
            // The code a shell reports for a process that the signal killed.
            if handlers.isStopping { _exit(128 + number) }
            handlers.isStopping = handlers.stop != nil
            return handlers.stop
        }
        if let body { body() } else { Self.dieOf(number) }
    }

    /// What the signal does to a program that does not care for it.
    private static func dieOf(_ number: Int32) -> Never {
        signal(number, SIG_DFL)
        var set = signals([number])
        unsafe pthread_sigmask(SIG_UNBLOCK, &set, nil)
        raise(number)
        // The first process of a container is spared by the system.
        _exit(128 + number)
    }

    private static func signals(_ numbers: [Int32] = [SIGTERM, SIGINT, SIGHUP]) -> sigset_t {
        var set = sigset_t()
        unsafe sigemptyset(&set)
        for number in numbers { unsafe sigaddset(&set, number) }
        return set
    }
}
