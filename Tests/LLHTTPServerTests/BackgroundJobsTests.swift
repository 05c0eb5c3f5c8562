import LLBytes
import LLTestSupport
import Testing

@testable import LLHTTP

@Suite("Jobs on other threads, and the requests that wait for them", .live)
struct BackgroundJobsTests {
    private typealias Jobs = BackgroundJobs<String, String>

    private struct Log: Sendable {
        var began: [ParkedRequest] = []
        var visits = 0
    }

    /// Parks requests for jobs that a test ends.
    private static func makeHandler(_ jobs: Jobs, _ log: Locked<Log>) -> TestHandler {
        let handler = TestHandler(request: { exchange, bytes in
            let (path, context) = (exchange.head.path, exchange.context)
            let visit = jobs.visit(context)
            log.withLock { $0.visits += 1 }
            switch visit {
            case .none:
                let isBrief = bytes.equal(path, "/wait-briefly")
                let deadline = context.now + (isBrief ? .milliseconds(300) : .seconds(600))
                let isBegun = jobs.begin(context, keeping: "kept", until: deadline) { request in
                    log.withLock { $0.began.append(request) }
                    if bytes.equal(path, "/at-once") {
                        // A job has one outcome.
                        for outcome in ["at once", "again"] { jobs.finish(request, outcome, now: context.now) }
                    }
                    return true
                }
                guard isBegun else {
                    exchange.response.body += Array("full".utf8)
                    return .respond
                }
                return .park(until: deadline)
            case .waiting(let deadline): return .park(until: deadline)
            case .done(let kept, let outcome): exchange.response.body += Array("\(kept) \(outcome)".utf8)
            case .expired(let kept): exchange.response.body += Array("\(kept) expired".utf8)
            }
            return .respond
        })
        handler.onAttach = jobs.attach
        handler.onAbandon = { jobs.abandon($0) }
        return handler
    }

    private static func start(capacity: Int = 8) throws -> (Jobs, Locked<Log>, TestServer) {
        let (jobs, log) = (Jobs(capacity: capacity), Locked(Log()))
        return (jobs, log, try TestServer { _ in makeHandler(jobs, log) })
    }

    @Test("A job wakes only its own request, and that request receives the job's outcome")
    func wakesOne() async throws {
        let (jobs, log, server) = try Self.start()
        let waiting = try (0..<3).map { _ in try BlockingClient(server.address) }
        for (index, client) in waiting.enumerated() {
            client.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(server.waitUntil { $0.parked == index + 1 })
        }
        let requests = log.withLock { $0.began }
        #expect(requests.count == 3)
        #expect(jobs.finish(requests[1], "second", now: MonotonicClock.now()))
        #expect(waiting[1].readResponses(1).first?.text == "kept second")
        // A wake of all requests finds the other two still waiting.
        server.server.wakeParked()
        #expect(server.waitUntil { _ in log.withLock { $0.visits } == 6 })
        #expect(jobs.finish(requests[2], "third", now: MonotonicClock.now()))
        #expect(waiting[2].readResponses(1).first?.text == "kept third")
        #expect(jobs.finish(requests[0], "first", now: MonotonicClock.now()))
        #expect(waiting[0].readResponses(1).first?.text == "kept first")
        #expect(jobs.count == 0)
        // Each request was visited once to begin and once for its outcome; the wake of all visited the two that waited.
        #expect(log.withLock { $0.visits } == 8)
        await server.stop()
    }

    @Test("An outcome that comes before its request is parked is not lost")
    func early() async throws {
        let (_, _, server) = try Self.start()
        let client = try BlockingClient(server.address)
        for _ in 0..<100 {
            let answer = client.exchange("GET /at-once HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(answer?.text == "kept at once")
        }
        await server.stop()
    }

    @Test("The entry of a client that leaves is removed, and the late outcome is dropped")
    func abandoned() async throws {
        let (jobs, log, server) = try Self.start()
        do {
            let client = try BlockingClient(server.address)
            client.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(server.waitUntil { $0.parked == 1 })
            client.reset()
        }
        #expect(server.waitUntil { $0.open == 0 })
        #expect(jobs.count == 0)
        let request = try #require(log.withLock { $0.began }.first)
        #expect(!jobs.finish(request, "late", now: MonotonicClock.now()))
        await server.stop()
    }

    @Test("Beyond the capacity no job begins, and a request past its deadline is answered as expired")
    func bounded() async throws {
        let (jobs, log, server) = try Self.start(capacity: 1)
        let first = try BlockingClient(server.address)
        first.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(server.waitUntil { $0.parked == 1 })
        let second = try BlockingClient(server.address)
        #expect(second.exchange("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")?.text == "full")
        let request = try #require(log.withLock { $0.began }.first)
        #expect(jobs.finish(request, "done", now: MonotonicClock.now()))
        #expect(first.readResponses(1).first?.text == "kept done")
        #expect(second.exchange("GET /wait-briefly HTTP/1.1\r\nHost: a\r\n\r\n")?.text == "kept expired")
        #expect(jobs.count == 0)
        await server.stop()
    }

    @Test("An outcome after the deadline is dropped, even if its request has not been visited yet")
    func afterTheDeadline() {
        let jobs = Jobs(capacity: 1)
        var context = RequestContext(
            firstByteAt: MonotonicInstant(nanoseconds: 1),
            now: MonotonicInstant(nanoseconds: 1),
            request: ParkedRequest(connectionID: 7, requestsBefore: 0),
            descriptor: -1
        )
        let request = context.request
        let deadline = MonotonicInstant(nanoseconds: 100)
        #expect(!jobs.begin(context, keeping: "kept", until: deadline) { _ in false })
        #expect(jobs.count == 0)
        #expect(jobs.begin(context, keeping: "kept", until: deadline) { _ in true })
        context.visit = .expired
        #expect(!jobs.begin(context, keeping: "anew", until: deadline) { _ in true })
        #expect(!jobs.finish(request, "late", now: deadline))
        guard case .expired("kept") = jobs.visit(context) else {
            Issue.record("the request's time is over")
            return
        }
    }
}
