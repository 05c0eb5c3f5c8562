internal import Dispatch
internal import Foundation
internal import LLHTTP
package import Testing

/// Limits how many tests with servers, stores or processes of their own run at the same time.
///
/// Each worker, store and name lookup keeps one thread of a dispatch queue, and libdispatch has at most 255 in a
/// process. Swift Testing starts all tests at once. Without this limit some tests would find no thread and wait until
/// their deadlines. Fewer tests run under a sanitizer (`SANITIZER` is set), because it makes their servers too slow.
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

/// Threads for tests that wait in system calls. Swift's own pool has one thread for each processor. On two processors,
/// two waiting tests would stop all others.
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
    package static var live: Self { Self() }
}

/// Counts the free places. Waiting tests get a place in the order of their arrival.
private final class Places: Sendable {
    private let state: Locked<(free: Int, waiting: [CheckedContinuation<Void, Never>])>

    init(count: Int) { state = Locked((count, [])) }

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
