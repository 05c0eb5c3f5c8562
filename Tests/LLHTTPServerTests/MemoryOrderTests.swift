import LLTestSupport
import Testing

@testable import LLHTTP

@Suite("The order in which connections are closed if they hold too much", .live)
struct MemoryOrderTests {
    private static let body = String(repeating: "b", count: 4_000)
    private static let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4000\r\n\r\n"
    /// Clients of a Unix socket count for no peer, so only their state counts.
    private static func server(connectionBytes: Int) throws -> TestServer {
        try TestServer.limited(.unix) { limits in limits.connectionBytes = connectionBytes }
    }

    /// The texts that a connection has sent, and its rank at once and after two seconds.
    private static let states: [(String, sends: [String], now: MemoryRank, later: MemoryRank)] = [
        ("nothing", [], .fresh, .idle),
        ("empty lines", ["\r\n"], .fresh, .slow),
        ("a request and its end", [plainGet], .idle, .idle),
        ("a part of a head", ["GET / HT"], .fresh, .slow),
        ("a part of a second head", [plainGet, "GET / HT"], .fresh, .slow),
        ("a part of a body", [head + "b"], .fresh, .slow),
        ("a request that waits", ["GET /park HTTP/1.1\r\nHost: a\r\n\r\n"], .parked, .parked),
        ("a request that ends the connection", ["GET / HTTP/1.0\r\n\r\n"], .idle, .idle),
    ]

    @Test("A connection ranks by its state and its age", arguments: states.indices)
    func ranks(_ index: Int) {
        let state = Self.states[index]
        let driver = ConnectionDriver()
        for text in state.sends { driver.send(text) }
        let rank = driver.connection.memoryRank(driver.host.limits, at: driver.now)
        #expect(rank == state.now, "\(state.0)")
        driver.advance(by: .seconds(2))
        let later = driver.connection.memoryRank(driver.host.limits, at: driver.now)
        #expect(later == state.later, "\(state.0), later")
    }

    @Test("An unread answer ranks by its age, and no other answer follows it")
    func unreadAnswer() {
        let driver = ConnectionDriver()
        driver.room = 10
        driver.send("GET /park HTTP/1.1\r\nHost: a\r\n\r\n")
        driver.wake()
        let rank = driver.connection.memoryRank(driver.host.limits, at: driver.now)
        #expect(rank == .fresh)
        driver.advance(by: .seconds(2))
        let later = driver.connection.memoryRank(driver.host.limits, at: driver.now)
        #expect(later == .slow && !driver.giveUp())
    }

    @Test("A request that is given up gets 503, or 408 if its client takes too long", arguments: [0, 2])
    func answers(_ seconds: Int) {
        for (sends, status) in [(Self.head + "b", seconds == 0 ? 503 : 408), ("GET / HT", seconds == 0 ? 503 : 408)] {
            let driver = ConnectionDriver(sending: sends)
            driver.advance(by: .seconds(seconds))
            #expect(driver.giveUp() && driver.statuses == [status] && driver.writeIsShut, "\(sends)")
            #expect(driver.responses.first?["connection"] == "close")
        }
        let parked = ConnectionDriver(sending: "GET /park HTTP/1.1\r\nHost: a\r\n\r\n")
        parked.advance(by: .seconds(seconds))
        #expect(parked.giveUp() && parked.statuses == [503] && parked.writeIsShut)
        #expect(parked.responses.first?["retry-after"] == "1")
        #expect(!parked.connection.hasBufferedInput)
    }

    @Test("Parked requests outlive fresh ones, and a fresh request that is given up gets 503")
    func parkedLast() throws {
        let server = try Self.server(connectionBytes: 400_000)
        let waiting = "GET /park HTTP/1.1\r\nHost: a\r\nX-Filler: " + String(repeating: "f", count: 7_000) + "\r\n\r\n"
        let parked = try server.clients(12, sending: Array(waiting.utf8))
        #expect(server.waitUntil { $0.parked == parked.count })
        let fresh = try server.clients(60, sending: Array((Self.head + Self.body.prefix(2_000)).utf8))
        #expect(server.waitUntil { $0.overloaded > 0 && $0.accepted == 72 })
        // The requests given up have an answer; the others send the rest.
        for client in fresh { client.send(Array(Self.body.utf8.suffix(2_000))) }
        let statuses = fresh.map { $0.readResponses(1).first?.status }
        #expect(statuses.allSatisfy { $0 == 200 || $0 == 503 } && statuses.contains(503), "\(statuses)")
        server.server.wakeParked()
        for client in parked { #expect(client.readResponses(1).first?.status == 200) }
    }

    @Test("Parked requests hold at most half of the memory; beyond that the largest ones get 503")
    func tooManyParked() throws {
        let server = try Self.server(connectionBytes: 400_000)
        let filler = "X-Filler: " + String(repeating: "f", count: 7_500) + "\r\n"
        let waiting = "GET /park HTTP/1.1\r\nHost: a\r\n" + String(repeating: filler, count: 2) + "\r\n"
        let honest = try BlockingClient(server.address)
        honest.send(Self.head + Self.body.prefix(2_000))
        #expect(server.waitUntil { $0.active == 1 })
        let parked = try server.clients(60, sending: Array(waiting.utf8))
        #expect(server.waitUntil { $0.overloaded >= 20 && $0.accepted == 61 })
        honest.send(Array(Self.body.utf8.suffix(2_000)))
        #expect(honest.readResponses(1).first?.status == 200)
        server.server.wakeParked()
        let statuses = parked.map { $0.readResponses(1).first?.status }
        #expect(statuses.allSatisfy { $0 == 200 || $0 == 503 } && statuses.contains(200), "\(statuses)")
    }
}
