import LLTestSupport
import Testing

@testable import LLHTTP

@Suite("The table of connections")
struct ConnectionTableTests {
    private func connection() -> Connection { ConnectionDriver().connection }

    @Test("Peers are counted as their connections come and go; a /64 is one peer")
    func peers() throws {
        let addresses = ["10.0.0.1", "2001:db8::1", "2001:db8::2:0:0:1", "2001:db8:0:1::1", "10.0.0.1"]
        let peers = try addresses.map { try Peer(#require(SocketAddress(host: $0))) }
        #expect(peers[1] == peers[2] && peers[1] != peers[3])
        var table = ConnectionTable()
        let connections = peers.map { _ in connection() }
        for (connection, peer) in zip(connections, peers) { table.insert(connection, from: peer) }
        let other = connection()
        table.insert(other, from: nil)
        for (index, count) in [2, 2, 2, 1, 2].enumerated() { #expect(table.countOfPeer(connections[index]) == count) }
        #expect(table.countOfPeer(other) == 0 && table.count == 6)
        for connection in [connections[4], connections[0], connections[0]] { table.remove(connection) }
        #expect(table.greatestPeer()?.peer == peers[1] && table.greatestPeer()?.count == 2)
        #expect(table.peer(of: connections[3]) == peers[3])
        #expect(table.countOfPeer(connections[0]) == 0 && table.count == 4)
    }

    @Test("The oldest of a list is the one that came into it first, of all peers or of one")
    func oldest() throws {
        let peers = try ["10.0.0.1", "10.0.0.2"].map { try Peer(#require(SocketAddress(host: $0))) }
        var table = ConnectionTable()
        let connections = (0..<6).map { _ in connection() }
        for (index, connection) in connections.enumerated() { table.insert(connection, from: peers[index % 2]) }
        for index in [4, 1, 0, 3, 2, 5] { table.move(connections[index], to: index < 3 ? .idle : .busy) }
        #expect(table.oldest(in: .idle) === connections[1])
        #expect(table.oldest(in: .idle, from: peers[0]) === connections[0])
        #expect(table.oldest() === connections[4] && table.oldest(from: peers[1]) === connections[1])
        #expect(table.oldest(in: .parked) == nil && table.count(of: .busy) == 3)
        table.move(connections[1], to: .idle)
        let order = [0, 2, 1].map { table.order(of: connections[$0]) }
        #expect(order == order.sorted() && Set(order).count == 3)
        table.remove(connections[0])
        #expect(table.oldest(in: .idle) === connections[2] && table.count(of: .idle) == 2)
        let next = connection()
        table.insert(next, from: nil)
        #expect(next.slot == 0 && table.find(tag: table.tag(of: next)) === next)
    }

    private func moment(_ nanoseconds: UInt64) -> MonotonicInstant { MonotonicInstant(nanoseconds: nanoseconds) }

    @Test("Deadlines set, moved and removed at random come up at their time", arguments: 1...20 as ClosedRange<UInt64>)
    func randomDeadlines(seed: UInt64) {
        var generator = RepeatableGenerator(seed: seed)
        var table = ConnectionTable()
        let connections = (0..<50).map { _ in connection() }
        for connection in connections { table.insert(connection, from: nil) }
        var deadlines: [Int: UInt64] = [:]
        var now: UInt64 = 1_000
        for _ in 0..<3_000 {
            let connection = connections[Int.random(in: 0..<50, using: &generator)]
            switch Int.random(in: 0..<10, using: &generator) {
            case 0..<6:
                let deadline = now + UInt64.random(in: 0...300, using: &generator)
                deadlines[connection.slot] = deadline
                connection.phaseDeadline = moment(deadline)
                table.schedule(connection)
            case 6:
                deadlines[connection.slot] = nil
                table.remove(connection)
                table.insert(connection, from: nil)
            default:
                let next = table.nextDeadline
                #expect(deadlines.values.allSatisfy { moment($0) >= next })
                now = max(now, next != .never && Bool.random(using: &generator) ? next.nanoseconds : now + 150)
                let due = table.takeDue(at: moment(now)).map(\.slot)
                #expect(Set(due) == Set(deadlines.filter { $0.value <= now }.keys))
                deadlines = deadlines.filter { $0.value > now }
            }
        }
    }
}
