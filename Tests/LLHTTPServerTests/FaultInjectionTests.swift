import Glibc
import LLHTTP
import LLTestSupport
import Testing

@Suite("System calls that fail", .live)
struct FaultInjectionTests {
    /// A call and the errors it can report.
    static let errors: [(FaultPlan.Call, [Int32])] = [
        (.accept, [EINTR, EAGAIN, ENOMEM, ENFILE, EMFILE, EPROTO, ECONNABORTED, ENOBUFS]),
        (.receive, [EINTR, EAGAIN, ENOMEM, ECONNRESET, ETIMEDOUT]),
        (.send, [EINTR, EAGAIN, ENOMEM, EPIPE, ECONNRESET, ENOBUFS]), (.shutdown, [ENOTCONN]),
        (.control, [ENOMEM, ENOSPC]), (.wait, [EINTR]), (.createPoll, [ENOMEM, ENFILE, EMFILE]),
        (.createEventDescriptor, [ENOMEM, ENFILE, EMFILE]),
    ]

    @Test(
        "The n-th call fails, for every n of a session: nothing leaks, hangs or crashes",
        arguments: errors,
        TestServer.Kind.allCases
    )
    func everyCall(failing: (FaultPlan.Call, [Int32]), kind: TestServer.Kind) async throws {
        let (call, errorNumbers) = failing
        let clean = FaultPlan(call, 0..<0, errorNumber: 0)
        #expect(try await runSession(kind, clean, isPatient: true) == [200, 200, 200, 200, 405, 400])
        #expect(clean.closesEverything())
        let count = clean.count(call)
        #expect(count > 0)
        for errorNumber in errorNumbers {
            for number in 1...count {
                let plan = FaultPlan(call, number..<number + 1, errorNumber: errorNumber)
                _ = try? await runSession(kind, plan)
                #expect(plan.closesEverything(), "call \(number), error \(errorNumber)")
            }
        }
    }

    @Test(
        "The server goes on after a long series of failing accepts",
        arguments: [ENFILE, EMFILE, ENOMEM],
        TestServer.Kind.allCases
    )
    func acceptFailsForLong(errorNumber: Int32, kind: TestServer.Kind) async throws {
        var limits = Self.limits(deadline: .seconds(600))
        limits.acceptPause = .milliseconds(1)
        let plan = FaultPlan(.accept, 1..<40, errorNumber: errorNumber)
        let server = try TestServer(kind, limits: limits, faults: plan)
        #expect(try BlockingClient(server.address).exchange(plainGet)?.status == 200)
        // The listener pauses after each failure and does not spin.
        #expect(plan.count(.accept) < 400)
        server.server.beginStop(drainDelay: .zero, grace: .zero)
        await server.server.untilEnded()
        // The wake descriptor lives as long as the server.
        #expect(plan.openDescriptors == 1)
    }

    @Test("Sends of one byte each still make whole answers", arguments: TestServer.Kind.allCases)
    func shortSends(kind: TestServer.Kind) async throws {
        let plan = FaultPlan(.send, 0..<0, errorNumber: 0, greatestTransfer: 1)
        #expect(try await runSession(kind, plan, isPatient: true) == [200, 200, 200, 200, 405, 400])
        #expect(plan.closesEverything())
    }

    @Test("A request parked behind an answer that the socket does not accept is woken with the others")
    func wokenBehindAnswer() throws {
        // The socket accepts nothing until both answers are made.
        let plan = FaultPlan(.send, 1..<Int.max, errorNumber: EAGAIN)
        let server = try TestServer(limits: Self.limits(deadline: .seconds(600)), faults: plan)
        let client = try BlockingClient(server.address)
        client.send(plainGet + "GET /park HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(server.waitUntil { _ in plan.count(.send) > 0 })
        server.server.wakeParked()
        #expect(server.waitUntil { $0.requests == 2 })
        plan.end()
        #expect(client.readResponses(2).map(\.text) == ["OK", "woken"])
    }

    /// - Parameter deadline: short if a fault must cost little time, long if the answers count.
    private static func limits(deadline: Duration = .milliseconds(300)) -> HTTPServerLimits {
        var limits = HTTPServerLimits()
        limits.acceptPause = .milliseconds(5)
        limits.queueDelay = max(limits.queueDelay, deadline)
        limits.headDeadline = deadline
        limits.bodyDeadline = deadline
        limits.writeStall = deadline
        return limits
    }

    /// Sends one whole request, two in pieces, one parked and woken, one refused by its handler, one by the grammar.
    /// - Parameter isPatient: true waits for every answer; false limits the time that a fault costs.
    private func runSession(_ kind: TestServer.Kind, _ plan: FaultPlan, isPatient: Bool = false) async throws -> [Int] {
        let limits = isPatient ? Self.limits(deadline: .seconds(60)) : Self.limits()
        let server = try TestServer(kind, limits: limits, faults: plan)
        let short = isPatient ? Duration.seconds(60) : .milliseconds(700)
        let client = try BlockingClient(server.address)
        var statuses: [Int] = []
        func exchange(_ pieces: [String], wake: Bool = false) {
            for piece in pieces { client.send(piece) }
            if wake { _ = server.waitUntil(isPatient ? .seconds(60) : .milliseconds(100)) { $0.parked > 0 } }
            server.server.wakeParked()
            statuses += client.readResponses(1, timeout: short).map(\.status)
        }
        exchange([plainGet])
        exchange(["POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n", "body"])
        exchange(["POST / HTTP/1.1\r\nHost: a\r\nTransfer-Enc", "oding: chunked\r\n\r\n1\r\na\r\n", "0\r\n\r\n"])
        exchange(["GET /park HTTP/1.1\r\nHost: a\r\n\r\n"], wake: true)
        exchange(["PUT / HTTP/1.1\r\nHost: a\r\n\r\n"])
        exchange(["BROKEN\r\n"])
        client.shutdownWrite()
        _ = client.read(timeout: short)
        server.server.beginStop(drainDelay: .zero, grace: .zero)
        await server.server.untilEnded()
        #expect(server.server.counters.open == 0)
        return statuses
    }
}

extension FaultPlan {
    /// True once the last descriptor is closed; a worker's thread ends a moment after the server reports its end.
    fileprivate func closesEverything() -> Bool { becomesTrue { openDescriptors == 0 } }
}
