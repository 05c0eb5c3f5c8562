import LLHTTP
import Testing

@Suite("Address prefixes")
struct AddressPrefixTests {
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
        "Any other text is refused",
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
