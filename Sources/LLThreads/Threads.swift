internal import CLLThreads
internal import Synchronization

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

/// Starts threads that belong to the process.
///
/// Dispatch is not used for them, for two reasons. It blocks the caller for ever if the system cannot start a thread.
/// One use of its global pool also wakes the process once a second from then on, and an idle server must not wake at
/// all.
package enum DedicatedQueue {
    /// Runs `body` on a thread named `name` (at most 15 bytes are kept); the thread ends with `body`.
    /// - Returns: False if the system cannot start a thread; `body` is then never called.
    @discardableResult
    package static func start(_ name: String, _ body: @escaping @Sendable () -> Void) -> Bool {
        let context = unsafe Unmanaged.passRetained(Work(name, body))
        // The new thread takes over the reference.
        let result = unsafe platform_start_thread(
            { context in
                guard let context = unsafe context else { return nil }
                let work = unsafe Unmanaged<Work>.fromOpaque(context).takeRetainedValue()
                unsafe String(work.name.prefix(15)).withCString { unsafe platform_name_thread($0) }
                work.body()
                return nil
            },
            context.toOpaque()
        )
        if result < 0 { unsafe context.release() }
        return result >= 0
    }

    private final class Work: Sendable {
        let name: String
        let body: @Sendable () -> Void

        init(_ name: String, _ body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }

    /// True if `count` more threads can be started at once; they end before this returns.
    package static func canStart(_ count: Int) -> Bool {
        let gate = Monitor((isOpen: false, running: 0))
        var isEnough = true
        for _ in 0..<max(count, 0) where isEnough {
            gate.withLock { $0.running += 1 }
            isEnough = start("probe") {
                gate.wait { $0.isOpen ? .done(()) : .wait(until: .never) }
                gate.withLock { $0.running -= 1 }
                gate.wake()
            }
            if !isEnough { gate.withLock { $0.running -= 1 } }
        }
        gate.withLock { $0.isOpen = true }
        gate.wake()
        gate.wait { $0.running == 0 ? .done(()) : .wait(until: .never) }
        return isEnough
    }
}

/// A value that several threads share, each while it holds the lock.
///
/// It uses a POSIX mutex and not the library's `Mutex`, because the thread sanitizer knows only the POSIX one. With
/// `Mutex` it reports every guarded access as a race, and a true race would be lost among these reports.
///
/// `value` is accessed only while `mutex` is held; hence `@unchecked Sendable`.
@safe package final class Locked<Value: Sendable>: @unchecked Sendable {
    // A mutex must not move, so it has its own memory for the life of this object.
    fileprivate let mutex: UnsafeMutablePointer<pthread_mutex_t>
    fileprivate var value: Value

    package init(_ value: Value) {
        self.value = value
        unsafe mutex = .allocate(capacity: 1)
        unsafe mutex.initialize(to: pthread_mutex_t())
        // With default attributes this cannot fail.
        _ = unsafe pthread_mutex_init(mutex, nil)
    }

    deinit {
        _ = unsafe pthread_mutex_destroy(mutex)
        unsafe mutex.deallocate()
    }

    /// Runs `body` while no other thread does. `body` must not take the same lock again.
    package func withLock<Result, Failure>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        _ = unsafe pthread_mutex_lock(mutex)
        defer { _ = unsafe pthread_mutex_unlock(mutex) }
        return try body(&value)
    }
}

/// A value that several threads share, each while it holds the lock. Threads can wait for its changes.
///
/// The condition is safe to use from any thread; hence `@unchecked Sendable`.
@safe package final class Monitor<Value: Sendable>: @unchecked Sendable {
    /// A waiting thread's decision after a look at the value.
    package enum Look<Result> {
        case done(Result)
        /// Look again after a change, and at this time at the latest.
        case wait(until: MonotonicInstant)
    }

    private let lock: Locked<Value>
    // A condition must not move, so it has its own memory for the life of this object.
    private let changed: UnsafeMutablePointer<pthread_cond_t>

    package init(_ value: Value) {
        lock = Locked(value)
        unsafe changed = .allocate(capacity: 1)
        unsafe changed.initialize(to: pthread_cond_t())
        // With these attributes this cannot fail.
        _ = unsafe platform_make_condition(changed)
    }

    deinit {
        _ = unsafe pthread_cond_destroy(changed)
        unsafe changed.deallocate()
    }

    /// Runs `body` while no other thread does. `body` must not take the same lock again.
    package func withLock<Result>(_ body: (inout Value) -> Result) -> Result { lock.withLock(body) }

    /// Makes every waiting thread look again.
    package func wake() { _ = unsafe pthread_cond_broadcast(changed) }

    /// Blocks the calling thread until `look` returns `done`; `look` runs under the lock.
    package func wait<Result>(_ look: (inout Value) -> Look<Result>) -> Result {
        // `lock.withLock` would keep its access to the value while another thread changes the value.
        _ = unsafe pthread_mutex_lock(lock.mutex)
        defer { _ = unsafe pthread_mutex_unlock(lock.mutex) }
        while true {
            switch look(&lock.value) {
            case .done(let result): return result
            case .wait(.never): _ = unsafe pthread_cond_wait(changed, lock.mutex)
            case .wait(let moment): unsafe platform_wait_until(changed, lock.mutex, moment.nanoseconds)
            }
        }
    }
}

/// A thread that does one job after another. It lives from the first job, or ``start()``, until this object is
/// released.
package final class SerialThread: Sendable {
    package typealias Job = @Sendable () -> Void

    private struct State {
        var jobs: [Job] = []
        var alarm: (at: MonotonicInstant, job: Job)?
        /// Jobs for later, the first due at the end.
        var delayed: [(at: MonotonicInstant, job: Job)] = []
        var isRunning = false
        var isEnded = false
    }

    private let name: String
    private let state = Monitor(State())
    /// Shows if the thread's loop still runs.
    private let pulse = Pulse()

    package init(_ name: String) { self.name = name }

    deinit {
        state.withLock { $0.isEnded = true }
        state.wake()
    }

    /// Starts the thread, unless it runs already.
    /// - Returns: False if the system cannot start a thread.
    @discardableResult
    package func start() -> Bool {
        let mustStart = state.withLock { state in
            defer { state.isRunning = true }
            return !state.isRunning
        }
        guard mustStart else { return true }
        // The thread must not keep this object alive.
        let isStarted = DedicatedQueue.start(name) { [state, pulse] in
            Pulse.$ofThread.withValue(pulse) { while let job = Self.next(state) { job() } }
        }
        if !isStarted { state.withLock { $0.isRunning = false } }
        return isStarted
    }

    /// Adds a job behind the waiting ones. If the system cannot start a thread, the job waits for the next call.
    package func async(_ job: @escaping Job) {
        state.withLock { $0.jobs.append(job) }
        state.wake()
        start()
    }

    /// Runs a job at a given time.
    package func async(at moment: MonotonicInstant, _ job: @escaping Job) {
        state.withLock { state in
            let place = state.delayed.firstIndex { $0.at <= moment } ?? state.delayed.endIndex
            state.delayed.insert((moment, job), at: place)
        }
        state.wake()
        start()
    }

    /// Runs a job at a given time. It replaces the job of an earlier alarm.
    package func setAlarm(at moment: MonotonicInstant, _ job: @escaping Job) {
        state.withLock { $0.alarm = (moment, job) }
        state.wake()
        start()
    }

    /// False if the thread has not answered its last poke for longer than `limit`. A thread that waits for a descriptor
    /// need not answer before the deadline of that wait. A thread that has answered is poked again.
    package func isAlive(at now: MonotonicInstant, within limit: Duration) -> Bool {
        pulse.isBeating(at: now, within: limit) { async { [pulse] in pulse.beat() } }
    }

    /// Waits for the next job; nil at the end.
    private static func next(_ state: Monitor<State>) -> Job? {
        state.wait { state in
            if !state.jobs.isEmpty { return .done(state.jobs.removeFirst()) }
            if state.isEnded { return .done(nil) }
            let (alarm, delayed) = (state.alarm, state.delayed.last)
            let isDelayed = delayed.map { $0.at < alarm?.at ?? .never } ?? false
            guard let next = isDelayed ? delayed : alarm else { return .wait(until: .never) }
            guard next.at <= MonotonicClock.now() else { return .wait(until: next.at) }
            if isDelayed { state.delayed.removeLast() } else { state.alarm = nil }
            return .done(next.job)
        }
    }
}

/// Shows that a thread's loop still runs. Only the check wakes the thread: each check sends a poke, and a later check
/// sees the answer.
package final class Pulse: Sendable {
    /// The pulse of the calling thread; its waits for descriptors count as beats. Nil for a thread without a pulse.
    @TaskLocal package static var ofThread: Pulse?

    /// The time of the unanswered poke, in nanoseconds of the monotonic clock; 0 for none.
    private let pokedAt = Atomic<UInt64>(0)
    /// The deadline of the thread's wait for descriptors, in nanoseconds of the monotonic clock; 0 without a wait.
    private let waitsUntil = Atomic<UInt64>(0)

    package init() {}

    /// - Parameter poke: Makes the thread call ``beat()``.
    /// - Returns: False if the thread has not answered a poke for longer than `limit`.
    package func isBeating(at now: MonotonicInstant, within limit: Duration, poke: () -> Void) -> Bool {
        let poked = pokedAt.load(ordering: .acquiring)
        guard poked == 0 else {
            let last = max(poked, waitsUntil.load(ordering: .acquiring))
            return now <= MonotonicInstant(nanoseconds: last) + limit
        }
        pokedAt.store(max(now.nanoseconds, 1), ordering: .releasing)
        poke()
        return true
    }

    /// Records that the thread's loop runs.
    package func beat() {
        waitsUntil.store(0, ordering: .releasing)
        pokedAt.store(0, ordering: .releasing)
    }

    /// Records that the thread waits until this time at the latest.
    package func wait(until deadline: MonotonicInstant) { waitsUntil.store(deadline.nanoseconds, ordering: .releasing) }
}
