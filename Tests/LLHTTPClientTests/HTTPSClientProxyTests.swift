import LLTestSupport
import Testing

@testable import LLHTTP

@Suite("The HTTPS client goes through a proxy", .live)
struct HTTPSClientProxyTests {
    @Test("It sends CONNECT with the URL's credentials, and verifies TLS inside for the host itself")
    func tunnel() throws {
        let certificates = try TestCertificates.shared.get()
        let issuer = try ScriptedIssuer(.tls(certificates.good)) { _, peer in try peer.answer("x") }
        let proxy = try ScriptedIssuer(.plain) { _, peer in
            try peer.send("HTTP/1.1 200 Connection established\r\n\r\n")
            try peer.relay(toPort: issuer.port)
        }
        defer {
            proxy.stop()
            issuer.stop()
        }
        let settings = try ProxySettings { $0 == "HTTPS_PROXY" ? "http://user:p%40ss@127.0.0.1:\(proxy.port)" : nil }
        // The proxy resolves the name, never the client.
        let client = HTTPSClient(
            trust: .authorities(file: certificates.authorityFile),
            proxy: settings,
            names: NameResolver { .failure(.nameNotResolved(host: $0, reason: "asked")) }
        )
        let response = try client.get(HTTPURL(parsing: "https://issuer.test/keys"))
        #expect(response.body == Array("x".utf8))
        let request = try #require(proxy.requests.first)
        #expect(request.line == "CONNECT issuer.test:443 HTTP/1.1")
        #expect(request.value(of: "host") == "issuer.test:443")
        #expect(request.value(of: "proxy-authorization") == "Basic dXNlcjpwQHNz")
        #expect(issuer.requests.first?.value(of: "proxy-authorization") == nil)
    }

    @Test(
        "The error names a proxy that does not open the tunnel",
        arguments: [
            (
                "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 3\r\n\r\nwho",
                ClientError.proxyFailed(reason: "it answered 407")
            ),
            ("HTTP/1.1 200 OK\r\n\r\nGREETING", .proxyFailed(reason: "it sent bytes before the TLS handshake")),
            ("SOCKS", .malformedResponse(reason: "the status line is malformed")),
        ]
    )
    func refusal(answer: String, expected: ClientError) throws {
        let proxy = try ScriptedIssuer(.plain) { _, peer in try peer.send(answer) }
        defer { proxy.stop() }
        let settings = try ProxySettings { $0 == "https_proxy" ? "127.0.0.1:\(proxy.port)" : nil }
        #expect(throws: expected) { try HTTPSClient(proxy: settings).get(HTTPURL(parsing: "https://issuer.test/keys")) }
    }

    @Test(
        "NO_PROXY exempts domains with their subdomains, addresses and blocks; loopback hosts never use a proxy",
        arguments: [
            ("", "localhost", true), ("", "127.0.0.1", true), ("", "[::1]", true), ("*", "a.example", true),
            ("10.1.2.3/8", "10.9.9.9", true), ("example", "a.example", true),
            (".example", "a.example", true), ("b.example, A.Example", "a.example", true),
            ("a.example", "ba.example", false), ("10.0.0.0/8", "10.1.2.3", true), ("10.0.0.0/8", "11.1.2.3", false),
            ("10.1.2.0/23", "10.1.3.255", true), ("10.1.2.0/23", "10.1.4.0", false), ("10.1.2.3", "10.1.2.3", true),
            ("2001:db8::1", "[2001:db8::1]", true), ("2001:db8::/32", "[2001:db8:1::]", true),
            ("10.0.0.0/33, /, :, ,", "10.0.0.1", false), ("", "a.example", false),
        ]
    )
    func exceptions(list: String, host: String, isExcepted: Bool) throws {
        let settings = try ProxySettings { ["HTTPS_PROXY": "http://proxy.example:3128/", "NO_PROXY": list][$0] }
        let url = try HTTPURL(parsing: "https://\(host)/")
        #expect((settings.server(for: url) == nil) == isExcepted)
    }

    @Test(
        "A malformed HTTPS_PROXY is refused without being quoted",
        arguments: [
            "https://proxy.example", "socks5://proxy.example", "http://", "http://a b", "http://u:%zz@proxy.example",
            "http://proxy.example/path", "http://proxy.example:0", "http://u%0d%0a@proxy.example",
        ]
    )
    func malformed(_ text: String) {
        let error = #expect(throws: ProxySettings.ParsingError.self) {
            _ = try ProxySettings { $0 == "HTTPS_PROXY" ? text : nil }
        }
        #expect(error.map { !$0.description.contains("proxy.example") } == true)
    }
}
