import Dispatch
import LLHTTP
import LLTestSupport
import Testing

@Suite("A worker that is stuck")
struct StuckWorkerTests {
    @Test("A worker is reported once it has not answered within the limit, until it answers again")
    func stuck() async throws {
        let (begun, gate) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let server = try TestServer(workerCount: 1) { _ in
            TestHandler(head: { _, _ in
                begun.signal()
                gate.wait()
                return .respond
            })
        }
        let limit = Duration.seconds(10)
        var now = MonotonicClock.now()
        // Each check reports the answer to the check before. An idle worker answers them all.
        for _ in 0..<3 {
            #expect(becomesTrue { server.server.stuckWorker(at: now, within: limit) == nil })
            now = now + .seconds(1)
        }
        let client = try BlockingClient(server.address)
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        begun.wait()
        func stuckWorker() -> Int? {
            now = now + limit + .milliseconds(1)
            return server.server.stuckWorker(at: now, within: limit)
        }
        #expect(becomesTrue { stuckWorker() == 0 })
        gate.signal()
        #expect(client.readResponses(1).count == 1)
        #expect(becomesTrue { stuckWorker() == nil })
        await server.stop()
    }
}
