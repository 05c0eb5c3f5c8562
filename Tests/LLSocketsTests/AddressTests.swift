import LLHTTP
import Testing

@Suite("The path of a Unix socket, and its permissions")
struct UnixSocketPathTests {
    @Test(
        "An absolute path of at most 107 bytes is accepted unchanged",
        arguments: ["/a", "/run/limited-login/http.sock", "/with space/é", "/" + String(repeating: "x", count: 106)]
    )
    func good(text: String) throws {
        let path = try UnixSocketPath(text)
        #expect(path.description == text)
        #expect(ListenAddress.unix(path).description == "unix:\(text)")
        #expect(ListenAddress.unix(path).network == nil)
    }

    @Test(
        "Any other path is refused with its reason",
        arguments: [
            ("", "must begin with '/'"), ("http.sock", "must begin with '/'"), ("./http.sock", "must begin with '/'"),
            ("@abstract", "must begin with '/'"), ("//h\0", "holds no NUL byte"), ("/a\0b", "holds no NUL byte"),
            ("/" + String(repeating: "x", count: 107), "has at most 107 bytes, and this one 108"),
            // 54 letters of two bytes each.
            ("/" + String(repeating: "é", count: 54), "has at most 107 bytes, and this one 109"),
        ]
    )
    func bad(text: String, reason: String) {
        let error = #expect(throws: UnixSocketPath.ParsingError.self) { try UnixSocketPath(text) }
        #expect(error?.description == "the path of a socket \(reason)")
    }

    @Test(
        "Permissions are three or four octal digits",
        arguments: [("600", "0600"), ("0600", "0600"), ("660", "0660"), ("0666", "0666"), ("777", "0777")]
    )
    func mode(text: String, shown: String) { #expect(UnixSocketMode(text)?.description == shown) }

    @Test(
        "Other texts are refused, and so are modes that shut out the service's own user",
        arguments: [
            "", "6", "66", "00660", "1660", "4755", "0577", "060", "0599", "0o660", "0x1b0", "+660", " 660", "66０",
            "rw-",
        ]
    )
    func badMode(text: String) { #expect(UnixSocketMode(text) == nil) }
}

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
        let socketAddress = try #require(SocketAddress("[\(address)]:1") ?? SocketAddress("\(address):1"))
        #expect(prefix.contains(socketAddress) == isWithin)
    }

    @Test(
        "Any other text is refused",
        arguments: [
            "", "/", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/08", "10.0.0.0/+8", "10.0.0.0/-1", "10.0.0.1/8", "10.0.0/8",
            "::/129", "fd00::1/8", "localhost", "example.com", "10.0.0.0/8/8", " 10.0.0.1", "[::1]", "10.0.0.1:80",
            "fe80::1%eth0",
        ]
    )
    func noPrefixes(_ text: String) { #expect(AddressPrefix(text) == nil) }
}
