import LLHTTP
import Testing

@Suite("A URL of a key set")
struct HTTPURLTests {
    @Test(
        "A good URL is split into the host and the target of its request",
        arguments: [
            (
                "https://limited.facebook.com/.well-known/oauth/openid/jwks/", "limited.facebook.com",
                "/.well-known/oauth/openid/jwks/"
            ),
            ("HTTPS://A.Example", "a.example", "/"), ("https://a.example:443/x", "a.example", "/x"),
            ("https://a.example:8443?x=y", "a.example:8443", "/?x=y"),
            ("https://[2001:DB8::1]:8443/", "[2001:db8::1]:8443", "/"),
            ("http://127.0.0.1:8080/", "127.0.0.1:8080", "/"), ("http://[::1]/", "[::1]", "/"),
            ("http://localhost/", "localhost", "/"), ("https://a_b.example./", "a_b.example.", "/"),
        ]
    )
    func accepted(_ text: String, _ authority: String, _ target: String) throws {
        let url = try HTTPURL(parsing: text)
        #expect(url.authority == authority)
        #expect(url.target == target)
    }

    @Test(
        "A bad URL is refused with its reason",
        arguments: [
            ("", HTTPURL.ParsingError.unsupportedScheme), ("a.example", .unsupportedScheme),
            ("ftp://a.example/", .unsupportedScheme), ("file:///etc/passwd", .unsupportedScheme),
            ("https:/a.example", .unsupportedScheme), ("https://", .unsupportedScheme),
            ("https:///x", .invalidHost), ("https://:443/", .invalidHost), ("https://a..example/", .invalidHost),
            ("https://-a.example/", .invalidHost), ("https://a b/", .invalidHost), ("https://a\u{e9}/", .invalidHost),
            ("https://[::1/", .invalidHost), ("https://[1.2.3.4]/", .invalidHost), ("https://[::1]x/", .invalidHost),
            ("https://127.1/", .invalidHost), ("https://0x7f.0.0.0x1/", .invalidHost),
            ("https://256.1.1.1/", .invalidHost),
            ("https://2130706433/", .invalidHost), ("https://a%2eb/", .invalidHost),
            ("https://user@a.example/", .userInformation), ("https://a.example:pw@b.example/", .userInformation),
            ("https://a.example:/", .invalidPort), ("https://a.example:0/", .invalidPort),
            ("https://a.example:65536/", .invalidPort), ("https://a.example:+1/", .invalidPort),
            ("https://a.example/ x", .invalidPath), ("https://a.example/\r\nHost: b", .invalidPath),
            ("https://a.example/#f", .invalidPath), ("https://a.example/\u{e9}", .invalidPath),
            ("http://a.example/", .plainHTTPBeyondLoopback), ("http://128.0.0.1/", .plainHTTPBeyondLoopback),
            ("http://localhost.example/", .plainHTTPBeyondLoopback), ("http://0.0.0.0/", .plainHTTPBeyondLoopback),
        ]
    )
    func refused(_ text: String, _ reason: HTTPURL.ParsingError) {
        #expect(throws: reason) { try HTTPURL(parsing: text) }
    }
}
