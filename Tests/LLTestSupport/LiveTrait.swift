internal import Dispatch
internal import Foundation
internal import LLSockets
package import Testing

/// Lets a few tests with servers, stores or processes of their own run at a time.
///
/// Each worker, store and name lookup has a dispatch queue, whose loop keeps a thread; libdispatch has at most 255 of them
/// in a process. Swift Testing starts all tests at once, and those that find no thread would wait until their deadlines.
/// Under a sanitizer (`SANITIZER` is set) fewer run at a time, for their servers would be too slow to keep up.
package struct LiveTrait: SuiteTrait, TestTrait, TestScoping {
    package let isRecursive = true
    private static let places = Places(count: ProcessInfo.processInfo.environment["SANITIZER"] == nil ? 8 : 4)
    private static let threads = WaitingThreads(count: 4)

    package func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @Sendable () async throws -> Void
    ) async throws {
        await Self.places.take()
        defer { Self.places.giveBack() }
        try await withTaskExecutorPreference(Self.threads) { try await function() }
    }
}

/// Threads for tests that wait in system calls. Swift's own pool has one for each processor: where two tests waited in
/// theirs, no other would go on.
private final class WaitingThreads: TaskExecutor {
    private let jobs = Locked<[UnownedJob]>([])
    private let added = DispatchSemaphore(value: 0)

    init(count: Int) {
        for _ in 0..<count { Thread.detachNewThread { self.runJobs() } }
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
        added.signal()
    }

    private func runJobs() -> Never {
        while true {
            added.wait()
            let job = jobs.withLock { $0.removeFirst() }
            unsafe job.runSynchronously(on: asUnownedTaskExecutor())
        }
    }
}

extension Trait where Self == LiveTrait {
    /// Waits for its turn.
    package static var live: Self { Self() }
}

/// Counts who may go on; the others wait in the order in which they came.
private final class Places: Sendable {
    private struct State {
        var free: Int
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state: Locked<State>

    init(count: Int) { state = Locked(State(free: count)) }

    func take() async {
        await withCheckedContinuation { continuation in
            let goesOn = state.withLock { state in
                guard state.free == 0 else {
                    state.free -= 1
                    return true
                }
                state.waiting.append(continuation)
                return false
            }
            if goesOn { continuation.resume() }
        }
    }

    func giveBack() {
        let next: CheckedContinuation<Void, Never>? = state.withLock { state in
            guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
            state.free += 1
            return nil
        }
        next?.resume()
    }
}
