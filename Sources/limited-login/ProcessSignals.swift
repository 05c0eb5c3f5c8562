internal import Dispatch
internal import Glibc
internal import LLHTTP

/// The signals that stop the program or make it read its configuration again.
///
/// A dispatch source reads a signal that every thread blocks: Dispatch's threads and the main thread begin so, and the
/// command's thread blocks it again first. If a thread could receive the signal, Dispatch would raise it again, and one SIGTERM could count as
/// two, which here means "end at once".
enum ProcessSignals {
    /// Left at the first SIGTERM or SIGINT.
    private static let running = DispatchGroup()
    /// A source ends when it is released. Only the command's thread uses them.
    private nonisolated(unsafe) static var sources: [any DispatchSourceSignal] = []

    /// Calls `start`, waits for SIGTERM or SIGINT, and calls `stop`. A signal during `start` is an orderly stop too, and
    /// the second one ends the process at once.
    static func run<Failure>(start: () throws(Failure) -> Void, stop: () -> Void) throws(Failure) {
        running.enter()
        let queue = DispatchQueue(label: "signals")
        for number in [SIGTERM, SIGINT] {
            take(number, on: queue) {
                // The exit code that a shell reports for a process killed by the signal.
                guard running.wait(timeout: .now()) == .timedOut else { _exit(128 + number) }
                running.leave()
            }
        }
        do throws(Failure) {
            try start()
        } catch {
            // A start that ended because of the signal is an orderly end.
            if stopComes(before: .now()) { return }
            throw error
        }
        running.wait()
        stop()
    }

    /// Calls `body` at each signal, and at once if one came since ``block(_:)``. Signals that come while `body` runs
    /// cause one more call.
    static func take(_ number: Int32, on queue: DispatchQueue, _ body: @escaping @Sendable () -> Void) {
        block([number])
        let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
        source.setEventHandler(handler: body)
        source.activate()
        unsafe sources.append(source)
    }

    /// Waits for the first SIGTERM or SIGINT; false if none comes in time.
    static func stopComes(before deadline: DispatchTime) -> Bool { running.wait(timeout: deadline) == .success }

    /// Keeps the signals until they are taken. The command's thread calls it.
    static func block(_ numbers: [Int32]) {
        for number in numbers { mask(SIG_BLOCK, number) }
    }

    /// Lets the signals end the program from now on, also those that were kept. The command's thread calls it.
    static func endAtOnce(_ numbers: [Int32]) {
        for number in numbers {
            // Its calls may be made in the handler of a signal (signal-safety(7)).
            signal(number) { number in
                signal(number, SIG_DFL)
                ProcessSignals.mask(SIG_UNBLOCK, number)
                raise(number)
                // The system does not kill the first process of a container.
                _exit(128 + number)
            }
            mask(SIG_UNBLOCK, number)
        }
    }

    fileprivate static func mask(_ change: Int32, _ number: Int32) {
        var set = sigset_t()
        unsafe sigemptyset(&set)
        unsafe sigaddset(&set, number)
        unsafe pthread_sigmask(change, &set, nil)
    }
}

enum Threads {
    /// Takes this many threads at once, and gives them back. Without a thread left Dispatch waits for ever, so the
    /// program ends with ``Exit/configuration`` and a sentence if the system does not give them within two seconds.
    static func require(_ count: Int) {
        signal(SIGALRM) { _ in
            let sentence: StaticString = """
                limited-login: the system gives this process fewer threads than the configuration needs: set workers lower, \
                or raise its limit of processes (ulimit -u, TasksMax=, pids.max)

                """
            unsafe write(STDERR_FILENO, sentence.utf8Start, sentence.utf8CodeUnitCount)
            _exit(78)
        }
        ProcessSignals.mask(SIG_UNBLOCK, SIGALRM)
        alarm(2)
        let (started, gate, ended) = (DispatchGroup(), DispatchGroup(), DispatchGroup())
        gate.enter()
        for _ in 0..<count {
            started.enter()
            DispatchQueue(label: "thread").async(group: ended) {
                started.leave()
                gate.wait()
            }
        }
        started.wait()
        gate.leave()
        ended.wait()
        alarm(0)
    }
}
