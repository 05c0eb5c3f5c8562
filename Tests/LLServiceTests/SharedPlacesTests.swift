import LLHTTP
import LLJOSE
import LLTestSupport
import Testing

@testable import LLService

@Suite("Places that callers share", .live)
struct SharedPlacesTests {
    /// One thread that waits at a gate, and a log of the jobs that ran or were dropped.
    private final class Desk: Sendable {
        let places = SharedPlaces("test", placeLimit: 1, queueLimit: 6)
        let log = Locked<[String]>([])
        private let isOpen = Locked(false)

        /// Blocks the thread until the gate opens.
        init() async {
            let began = Locked(false)
            _ = places.submit(owner: .all) { [isOpen] in
                began.withLock { $0 = true }
                _ = becomesTrue { isOpen.withLock { $0 } }
            }
            await eventually("the thread is taken") { began.withLock { $0 } }
        }

        func submit(_ name: String, by owner: Int) -> Bool {
            places.submit(
                owner: .client(owner),
                drop: { [log] in log.withLock { $0.append("-" + name) } },
                { [log] in log.withLock { $0.append(name) } }
            )
        }

        func open() { isOpen.withLock { $0 = true } }
    }

    @Test("A full queue gives places of the caller with the most jobs to others, and the callers take turns")
    func turns() async {
        let desk = await Desk()
        for index in 0..<6 { #expect(desk.submit("a\(index)", by: 1)) }
        #expect(!desk.submit("a6", by: 1))
        #expect(desk.submit("b0", by: 2) && desk.submit("b1", by: 2) && desk.submit("c0", by: 3))
        // The callers have three, two and one jobs. The third may take a place of the first, as the first has two jobs
        // more.
        #expect(desk.submit("c1", by: 3))
        #expect(!desk.submit("b2", by: 2) && !desk.submit("c2", by: 3) && !desk.submit("a7", by: 1))
        #expect(desk.submit("d0", by: 4))
        #expect(desk.log.withLock { $0.prefix(4) } == ["-a5", "-a4", "-a3", "-a2"])
        #expect(desk.log.withLock { $0.count } == 5)
        desk.open()
        await eventually("all are done") { desk.log.withLock { $0.count } == 11 }
        let done = desk.log.withLock { $0.dropFirst(5) }
        // The first job of each caller runs before the second of any.
        #expect(Set(done.prefix(4)) == ["a0", "b0", "c0", "d0"], "\(done)")
    }

    @Test("If a job's client has left, the job gives its place to the next one, of any caller, and does not run")
    func leftClients() async {
        let desk = await Desk()
        let hasLeft = Locked(Set<Int>())
        for index in 0..<6 {
            let isTaken = desk.places.submit(
                owner: .client(index % 2),
                drop: { desk.log.withLock { $0.append("-\(index)") } },
                isWanted: { !hasLeft.withLock { $0.contains(index) } },
                { desk.log.withLock { $0.append("\(index)") } }
            )
            #expect(isTaken)
        }
        #expect(!desk.submit("full", by: 1))
        hasLeft.withLock { $0 = [1, 3, 5, 2] }
        for index in 0..<4 { #expect(desk.submit("new\(index)", by: 1)) }
        #expect(Set(desk.log.withLock { $0 }) == ["-1", "-3", "-5", "-2"])
        #expect(!desk.submit("full", by: 1))
        desk.open()
        await eventually("all are done") { desk.log.withLock { $0.count } == 10 }
        #expect(Set(desk.log.withLock { $0.dropFirst(4) }) == ["0", "4", "new0", "new1", "new2", "new3"])
    }

    @Test("A flood of access tokens from one address or with one key refuses no other's", arguments: [true, false])
    func flood(isByKey: Bool) async throws {
        let gate = Locked(false)
        let digest = try SHA256.digest(of: Array("another".utf8).span).hexadecimal
        let service = try await GraphService(hasClients: isByKey, moreClients: "another \(digest)\n") { request, peer in
            while !gate.withLock({ $0 }) { try peer.pause(.milliseconds(5)) }
            try GraphStory.script()(request, peer)
        }
        let address = try #require(service.server.localAddress)
        /// Sends access tokens of one of two callers, and waits until so many of all were refused.
        func send(_ count: Int, key: String, from source: [UInt8]?, refused: Int) async throws -> [BlockingClient] {
            let body = #"{"access_token":"\#(GraphStory.token)"}"#
            let clients = try (0..<count).map { _ in try BlockingClient(address, from: isByKey ? nil : source) }
            for client in clients {
                let fields = isByKey ? ["X-Api-Key: \(key)"] : []
                client.send(GraphService.request("POST", "/verify", fields: fields, body: body))
            }
            let series =
                #"limited_login_verifications_total{credential="access_token",result="too_many_access_tokens"}"#
            await eventually("the places are taken") { service.metric(series) == refused }
            return clients
        }
        let places = GraphWorkers.accessTokenThreadLimit + GraphWorkers.accessTokenQueueLimit
        let crowd = try await send(400, key: GraphService.key, from: nil, refused: 400 - places)
        // These begin after the first has filled all places.
        let honest = try await send(40, key: "another", from: [127, 0, 0, 2], refused: 440 - places)
        gate.withLock { $0 = true }
        func accepted(_ clients: [BlockingClient]) -> Int { clients.count { $0.readResponses(1).first?.status == 200 } }
        #expect(accepted(crowd) == places - 40 && accepted(honest) == 40)
    }
}
