import LLTestSupport
import Testing

@testable import LLSockets

@Suite("The process's own threads")
struct ThreadsTests {
    @Test("A serial thread runs its jobs in order, and only the alarm that was set last")
    func jobs() {
        let thread = SerialThread("test")
        let done = Monitor([Int]())
        for number in 0..<100 {
            thread.async {
                done.withLock { $0.append(number) }
                done.wake()
            }
        }
        done.wait { $0.count == 100 ? .done(()) : .wait(until: .never) }
        #expect(done.withLock { $0 } == Array(0..<100))
        thread.setAlarm(at: .never) { done.withLock { $0 = [] } }
        thread.setAlarm(at: MonotonicClock.now() + .milliseconds(1)) {
            done.withLock { $0 = [1] }
            done.wake()
        }
        done.wait { $0 == [1] ? .done(()) : .wait(until: .never) }
    }

    @Test("A thread that takes no job within the limit is not alive until it takes one")
    func pulse() {
        let thread = SerialThread("test")
        let gate = Monitor(false)
        let now = MonotonicClock.now()
        let limit = Duration.seconds(10)
        thread.async { gate.wait { $0 ? .done(()) : .wait(until: .never) } }
        // The first check pokes the thread.
        #expect(thread.isAlive(at: now, within: limit))
        #expect(thread.isAlive(at: now + limit, within: limit))
        #expect(!thread.isAlive(at: now + limit + .milliseconds(1), within: limit))
        gate.withLock { $0 = true }
        gate.wake()
        let done = Monitor(false)
        thread.async {
            done.withLock { $0 = true }
            done.wake()
        }
        done.wait { $0 ? .done(()) : .wait(until: .never) }
        #expect(thread.isAlive(at: now + limit + limit, within: limit))
    }

    @Test("A thread that waits for a descriptor is alive until its deadline plus the usual limit")
    func waitingThread() throws {
        let thread = SerialThread("test")
        let (signal, hasBegun) = (WakeSignal(), Monitor(false))
        let now = MonotonicClock.now()
        let (limit, deadline) = (Duration.seconds(10), now + .seconds(600))
        thread.async {
            hasBegun.withLock { $0 = true }
            hasBegun.wake()
            _ = BlockingWait.wait(for: [], or: signal, until: deadline)
        }
        hasBegun.wait { $0 ? .done(()) : .wait(until: .never) }
        #expect(thread.isAlive(at: now, within: limit))
        #expect(becomesTrue { thread.isAlive(at: deadline, within: limit) })
        #expect(thread.isAlive(at: deadline + limit, within: limit))
        #expect(!thread.isAlive(at: deadline + limit + .milliseconds(1), within: limit))
        signal.set()
        #expect(becomesTrue { thread.isAlive(at: deadline + limit + limit, within: limit) })
    }

    @Test("Delayed jobs run in the order of their times, with any alarm set")
    func delayedJobs() {
        let thread = SerialThread("test")
        let done = Monitor([Int]())
        let now = MonotonicClock.now()
        thread.setAlarm(at: .never) { done.withLock { $0 = [] } }
        for number in [3, 1, 4, 2] {
            thread.async(at: now + .milliseconds(Int64(20 * number))) {
                done.withLock { $0.append(number) }
                done.wake()
            }
        }
        done.wait { $0.count == 4 ? .done(()) : .wait(until: .never) }
        #expect(done.withLock { $0 } == [1, 2, 3, 4])
        #expect(MonotonicClock.now() >= now + .milliseconds(80))
    }

    @Test("A wait ends at its deadline")
    func deadline() {
        let monitor = Monitor(0)
        let deadline = MonotonicClock.now() + .milliseconds(20)
        monitor.wait { _ in MonotonicClock.now() < deadline ? .wait(until: deadline) : .done(()) }
        #expect(MonotonicClock.now() >= deadline)
    }

    @Test("The requested number of threads can be started, and they end")
    func probing() {
        #expect(DedicatedQueue.canStart(0))
        #expect(DedicatedQueue.canStart(100))
    }
}
