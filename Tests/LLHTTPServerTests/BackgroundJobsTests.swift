import LLBytes
import LLTestSupport
import Testing

@testable import LLHTTP

@Suite("Jobs on other threads, and the requests that wait for them", .live)
struct BackgroundJobsTests {
    private typealias Jobs = BackgroundJobs<String, String>

    private let start = MonotonicInstant(nanoseconds: 1)
    private let deadline = MonotonicInstant(nanoseconds: 100)

    private func context(_ number: Int, _ visit: RequestVisit = .first) -> RequestContext {
        let request = ParkedRequest(connectionID: 7, requestsBefore: number)
        return RequestContext(firstByteAt: start, now: start, visit: visit, request: request, descriptor: -1)
    }

    private func begins(_ jobs: Jobs, _ context: RequestContext, starts: Bool = true) -> Bool {
        jobs.begin(context, keeping: "kept", until: deadline) { _ in starts }
    }

    private static func words(_ visit: Jobs.Visit) -> String {
        switch visit {
        case .none: "none"
        case .waiting: "waiting"
        case .done(let kept, let outcome): "\(kept) \(outcome)"
        case .expired(let kept): "\(kept) expired"
        }
    }

    @Test("A job wakes only its own request, and that request takes its first outcome, once")
    func outcomes() {
        let (jobs, woken) = (Jobs(capacity: 2), Locked<[ParkedRequest]>([]))
        jobs.attach { request in woken.withLock { $0.append(request) } }
        let (first, second) = (context(1), context(2))
        #expect(begins(jobs, first) && begins(jobs, second))
        // Beyond the capacity no job begins.
        #expect(!begins(jobs, context(3)))
        #expect(jobs.finish(second.request, "done", now: start) && !jobs.finish(second.request, "again", now: start))
        #expect(woken.withLock { $0 } == [second.request])
        let visits = [context(1, .woken), context(2, .woken), context(2, .woken)].map { Self.words(jobs.visit($0)) }
        #expect(visits == ["waiting", "kept done", "none"])
        // The client of the first request leaves.
        jobs.abandon(first.request)
        #expect(!jobs.finish(first.request, "late", now: start) && jobs.count == 0)
    }

    @Test("An outcome after the deadline is dropped, even if its request has not been visited yet")
    func afterTheDeadline() {
        let jobs = Jobs(capacity: 1)
        #expect(!begins(jobs, context(1), starts: false) && jobs.count == 0)
        #expect(begins(jobs, context(1)) && !begins(jobs, context(1, .expired)))
        #expect(!jobs.finish(context(1).request, "late", now: deadline))
        #expect(Self.words(jobs.visit(context(1, .expired))) == "kept expired")
    }

    @Test("A job that ends before its request is parked, or after that, answers it; one that is left is dropped")
    func server() throws {
        let (jobs, began) = (Jobs(capacity: 8), Locked<[ParkedRequest]>([]))
        let server = try TestServer { _ in
            let handler = TestHandler(request: { exchange, bytes in
                let (isEarly, context) = (bytes.equal(exchange.head.path, "/at-once"), exchange.context)
                let deadline = context.now + .seconds(600)
                switch jobs.visit(context) {
                case .none:
                    _ = jobs.begin(context, keeping: "kept", until: deadline) { request in
                        began.withLock { $0.append(request) }
                        if isEarly { jobs.finish(request, "at once", now: context.now) }
                        return true
                    }
                    return .park(until: deadline)
                case .waiting: return .park(until: deadline)
                case let visit: exchange.response.body += Array(Self.words(visit).utf8)
                }
                return .respond
            })
            handler.onAttach = jobs.attach
            handler.onAbandon = { jobs.abandon($0) }
            return handler
        }
        let (client, other) = (try BlockingClient(server.address), try BlockingClient(server.address))
        for _ in 0..<100 {
            #expect(client.exchange("GET /at-once HTTP/1.1\r\nHost: a\r\n\r\n")?.text == "kept at once")
        }
        began.withLock { $0 = [] }
        for (index, client) in [client, other].enumerated() {
            client.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(server.waitUntil { $0.parked == index + 1 })
        }
        other.reset()
        #expect(server.waitUntil { $0.open == 1 } && jobs.count == 1)
        // A wake of all requests finds this one still waiting.
        server.server.wakeParked()
        #expect(jobs.finish(began.withLock { $0[0] }, "done", now: MonotonicClock.now()))
        #expect(client.readResponses(1).first?.text == "kept done")
    }
}
