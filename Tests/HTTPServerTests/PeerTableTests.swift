import HTTPServer
import Sockets
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

    @Test(
        "An address prefix is read strictly",
        arguments: [
            ("10.0.0.0/8", "10.255.1.1", true), ("10.0.0.0/8", "11.0.0.0", false), ("10.0.0.0/8", "::1", false),
            ("10.1.2.3", "10.1.2.3", true), ("10.1.2.3", "10.1.2.4", false), ("0.0.0.0/0", "9.9.9.9", true),
            ("192.0.2.128/25", "192.0.2.129", true), ("192.0.2.128/25", "192.0.2.127", false),
            ("fd00::/8", "fdff::1", true), ("::1/128", "::1", true), ("2001:db8::/33", "2001:db8:8000::", false),
        ]
    )
    func prefixes(_ text: String, _ address: String, _ isWithin: Bool) throws {
        let prefix = try #require(AddressPrefix(text))
        #expect(
            try prefix.contains(#require(SocketAddress("[\(address)]:1") ?? SocketAddress("\(address):1"))) == isWithin
        )
    }

    @Test(
        "What is no address prefix is refused",
        arguments: [
            "", "/", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/08", "10.0.0.0/+8", "10.0.0.0/-1", "10.0.0.1/8", "10.0.0/8",
            "::/129", "fd00::1/8", "localhost", "example.com", "10.0.0.0/8/8", " 10.0.0.1", "[::1]", "10.0.0.1:80",
            "fe80::1%eth0",
        ]
    )
    func noPrefixes(_ text: String) {
        #expect(AddressPrefix(text) == nil)
    }
}
