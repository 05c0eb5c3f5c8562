import Bytes
import Dispatch
import HTTP1
import HTTPServer
import Sockets
import TestSupport
import Testing

@Suite("A saturated server", .live)
struct OverloadTests {
    /// What one client saw.
    private struct Answers: Sendable {
        var served: [Duration] = []
        var refused: [Duration] = []
        var others = 0
        var refusalsWithoutRetryAfter = 0
    }

    /// A sanitizer slows the clients. The worker must be slower by more, or they would not saturate it.
    fileprivate static let slowness = Sanitizer.isActive ? 4 : 1

    /// Sixty clients at once against a worker that needs 4 ms for each request, or as many times that.
    private func load(_ server: TestServer) -> Answers {
        let group = DispatchGroup()
        let all = Locked(Answers())
        for number in 0..<60 {
            DispatchQueue(label: "overload-\(number)").async(group: group) {
                var own = Answers()
                guard let client = try? BlockingClient(server.address) else { return }
                for _ in 0..<8 {
                    let start = MonotonicClock.now()
                    let answer = client.exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n", timeout: .seconds(60))
                    let time = MonotonicClock.now().duration(since: start)
                    switch answer?.status {
                    case 200: own.served.append(time)
                    case 503:
                        own.refused.append(time)
                        if answer?["retry-after"] != "1" { own.refusalsWithoutRetryAfter += 1 }
                    default: own.others += 1
                    }
                }
                let result = own
                all.withLock { all in
                    all.served += result.served
                    all.refused += result.refused
                    all.others += result.others
                    all.refusalsWithoutRetryAfter += result.refusalsWithoutRetryAfter
                }
            }
        }
        // A health check is answered however long the queue.
        for _ in 0..<10 {
            let health = try? BlockingClient(server.address).exchange("GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
            if health?.status != 200 { all.withLock { $0.others += 1 } }
        }
        group.wait()
        return all.withLock { $0 }
    }

    @Test(
        "Requests that waited too long are refused with 503 and Retry-After, so that those served are served soon",
        arguments: TestServer.Kind.allCases
    )
    func shedding(kind: TestServer.Kind) async throws {
        var strict = HTTPServerLimits()
        strict.queueDelay = .milliseconds(50) * Self.slowness
        let queueing = try TestServer(kind, limits: .patient) { _ in BusyHandler() }
        let queued = load(queueing)
        await queueing.stop()
        #expect(queued.served.count == 480 && queued.refused.isEmpty && queued.others == 0)
        let shedding = try TestServer(kind, limits: strict) { _ in BusyHandler() }
        let shed = load(shedding)
        #expect(shed.served.count + shed.refused.count == 480 && shed.others == 0)
        #expect(shed.refused.count > 50 && shed.served.count > 20)
        #expect(shed.refusalsWithoutRetryAfter == 0)
        let median = { (times: [Duration]) in times.sorted()[times.count / 2] }
        // Under a sanitizer sixty clients wait longer for their own turn on the processor than for the server.
        #expect(Sanitizer.isActive || median(shed.served + shed.refused) < median(queued.served) / 2)
        // Once the crowd is gone everyone is served.
        for _ in 0..<3 {
            #expect(try BlockingClient(shedding.address).exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n")?.status == 200)
        }
        await shedding.stop()
        // A worker publishes its counts once a turn, so the last ones are sure to be there now.
        #expect(shedding.server.counters.overloaded == shed.refused.count)
    }
}

/// Needs the processor for a while for each request but health checks.
private final class BusyHandler: HTTPRequestHandler {
    func receiveHead(
        _ head: borrowing RequestHead,
        bytes: Span<UInt8>,
        context: RequestContext,
        response: inout HTTPResponse
    ) -> HeadDecision {
        if !isExemptFromOverload(head, bytes: bytes) {
            let end = MonotonicClock.now() + .milliseconds(4) * OverloadTests.slowness
            while MonotonicClock.now() < end {}
        }
        return .respond
    }

    func isExemptFromOverload(_ head: borrowing RequestHead, bytes: Span<UInt8>) -> Bool {
        bytes.equal(head.path, "/livez")
    }
}
