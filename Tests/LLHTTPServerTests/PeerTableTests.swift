import LLHTTPServer
import LLSockets
import Testing

@Suite("Peer addresses")
struct PeerTableTests {
    @Test("Peers are counted as their connections come and go; a /64 is one peer")
    func peerTable() throws {
        func peer(_ text: String) throws -> PeerTable.Peer {
            try PeerTable.Peer(#require(SocketAddress("[\(text)]:1") ?? SocketAddress("\(text):1")))
        }
        var table = PeerTable()
        #expect(table.greatest()?.count == nil)
        let sites = try ["10.0.0.1", "2001:db8::1", "2001:db8::2:0:0:1", "2001:db8:0:1::1", "10.0.0.1"].map(peer)
        for (slot, site) in sites.enumerated() { table.add(slot, from: site) }
        #expect(sites[1] == sites[2] && sites[1] != sites[3])
        #expect(table.slots(of: sites[0], atMost: 9) == [0, 4])
        for (slot, count) in [(0, 2), (2, 2), (3, 1), (4, 2), (5, 0), (-1, 0)] {
            #expect(table.countOfPeer(slot) == count)
        }
        table.remove(4)
        #expect(table.countOfPeer(0) == 1 && table.countOfPeer(4) == 0)
        #expect(table.greatest()?.peer == sites[1])
        #expect(table.slots(of: sites[1], atMost: 1) == [1])
        for slot in [1, 0, 2, 2, 17, -1] { table.remove(slot) }
        #expect(table.greatest()?.peer == sites[3])
        table.add(0, from: sites[0])
        table.add(1, from: sites[0])
        table.remove(0)
        #expect(table.slots(of: sites[0], atMost: 9) == [1] && table.greatest()?.count == 1)
    }
}
