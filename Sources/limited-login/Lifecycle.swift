internal import Glibc
internal import LLSockets

/// Runs servers until the program is told to stop.
enum Lifecycle {
    /// Calls `start`, waits for SIGTERM or SIGINT, and calls `stop`. A signal during `start` is an orderly stop too.
    static func run<Failure>(start: () throws(Failure) -> Void, stop: () async -> Void) async throws(Failure) {
        let (untilSignal, signal) = AsyncStream.makeStream(of: Never.self)
        ProcessSignals.shared.onStop { signal.finish() }
        do throws(Failure) {
            try start()
        } catch {
            // A start that ended because of the signal is an orderly end.
            if ProcessSignals.shared.waitForStop(until: MonotonicClock.now()) { return }
            throw error
        }
        for await _ in untilSignal {}
        await stop()
    }
}

/// The executor of the program's asynchronous work: one thread, which exists from the start.
///
/// Swift's own executor uses libdispatch's shared thread pool. After its first use a monitor of that pool wakes the
/// process once a second for ever. If the system has no thread left, SIGTERM would wait for one.
final class LifecycleExecutor: TaskExecutor {
    static let shared = LifecycleExecutor()

    private let thread = SerialThread("lifecycle")

    /// - Returns: False if the system cannot start a thread.
    func start() -> Bool { thread.start() }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        thread.async { [self] in unsafe job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
}

/// The signals that stop the program or make it read its configuration again. The main thread handles them one by one.
///
/// It uses no dispatch source: libdispatch reads signals from a descriptor and also catches and raises them again, and
/// one SIGTERM has been seen to count as two, which here means "end at once". The signals are blocked before any other
/// thread exists, all threads inherit that, and `sigwait` takes each once.
final class ProcessSignals: Sendable {
    static let shared = ProcessSignals()

    private struct Handlers {
        var stop: (@Sendable () -> Void)?
        var reload: (@Sendable () -> Void)?
        /// Runs before a signal without a handler ends the program.
        var cleanUp: (@Sendable () -> Void)?
        var isStopping = false
        /// True while SIGHUP is kept for `reload`, which may not be set yet; false if it ends the program.
        var keepsHangUps = true
        var keptHangUp = false
    }

    private let handlers = Monitor(Handlers())

    /// `body` runs at the first SIGTERM or SIGINT; the second ends the process at once.
    func onStop(_ body: @escaping @Sendable () -> Void) { handlers.withLock { $0.stop = body } }

    /// `body` runs at each SIGHUP, and at once if one came before. It must not block.
    func onReload(_ body: @escaping @Sendable () -> Void) {
        let isDue = handlers.withLock { handlers in
            handlers.reload = body
            return handlers.keptHangUp
        }
        if isDue { body() }
    }

    /// From now on SIGHUP ends the program. An earlier one ends it now.
    func endAtHangUp() {
        let hasCome = handlers.withLock { handlers in
            handlers.keepsHangUps = false
            return handlers.keptHangUp
        }
        if hasCome { dieOf(SIGHUP) }
    }

    /// `body` runs before a signal ends the program at once.
    func onDeath(_ body: @escaping @Sendable () -> Void) { handlers.withLock { $0.cleanUp = body } }

    /// Waits for the first SIGTERM or SIGINT.
    /// - Returns: False if none comes in time.
    func waitForStop(until deadline: MonotonicInstant) -> Bool {
        handlers.wait { handlers in
            if handlers.isStopping { return .done(true) }
            return MonotonicClock.now() < deadline ? .wait(until: deadline) : .done(false)
        }
    }

    /// Blocks the signals for this thread and all threads it starts; called by the main thread first.
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
            if number == SIGHUP {
                guard handlers.reload == nil, handlers.keepsHangUps else { return handlers.reload }
                handlers.keptHangUp = true
                return {}
            }
            // The exit code that a shell reports for a process killed by the signal.
            if handlers.isStopping { _exit(128 + number) }
            handlers.isStopping = handlers.stop != nil
            return handlers.stop
        }
        handlers.wake()
        if let body { body() } else { dieOf(number) }
    }

    /// Ends the program as the signal does by default.
    private func dieOf(_ number: Int32) -> Never {
        handlers.withLock { $0.cleanUp }?()
        signal(number, SIG_DFL)
        var set = Self.signals([number])
        unsafe pthread_sigmask(SIG_UNBLOCK, &set, nil)
        raise(number)
        // The system does not kill the first process of a container.
        _exit(128 + number)
    }

    private static func signals(_ numbers: [Int32] = [SIGTERM, SIGINT, SIGHUP]) -> sigset_t {
        var set = sigset_t()
        unsafe sigemptyset(&set)
        for number in numbers { unsafe sigaddset(&set, number) }
        return set
    }
}
