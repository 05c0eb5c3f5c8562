import LLTestSupport
import Testing

@testable import LLHTTP

@Suite("The HTTPS client follows redirects", .live)
struct HTTPSClientRedirectTests {
    @Test("Up to three redirects on the same host are followed, by path or URL", arguments: [301, 302, 303, 307, 308])
    func sameHost(_ status: Int) throws {
        let certificates = try TestCertificates.shared.get()
        let issuer = try ScriptedIssuer(.tls(certificates.good)) { request, peer in
            let host = request.value(of: "host") ?? ""
            switch request.path {
            case "/keys": try peer.answer(status: "\(status) Moved", fields: ["Location: /a?b#c"], "")
            case "/a?b": try peer.answer(status: "\(status) Moved", fields: ["Location: HTTPS://\(host)/d"], "")
            case "/d": try peer.answer(status: "\(status) Moved", fields: ["Location: //\(host)/e"], "")
            default: try peer.answer("x")
            }
        }
        defer { issuer.stop() }
        let client = HTTPSClient(trust: .authorities(file: certificates.authorityFile))
        let response = try client.get(HTTPURL(parsing: issuer.url))
        #expect(response.body == Array("x".utf8))
        #expect(issuer.requests.map(\.path) == ["/keys", "/a?b", "/d", "/e"])
    }

    @Test(
        "A redirect to another host or scheme is refused",
        arguments: [
            ("https://127.0.0.1:8443/keys", "it leads to another host"),
            ("https://localhost:1/keys", "it leads to another host"),
            ("//elsewhere.example/keys", "it leads to another host"),
            ("http://localhost:8443/keys", "it leads from https to http"),
            ("http://elsewhere.example/keys", "it leads to no https URL"),
            ("https://user@localhost:8443/keys", "it leads to no https URL"),
            ("file:///etc/passwd", "it leads to no https URL"), ("keys2", "it leads to no https URL"),
            ("", "it leads to no https URL"),
        ]
    )
    func away(location: String, reason: String) throws {
        let url = try HTTPURL(parsing: "https://localhost:8443/keys")
        #expect(throws: ClientError.redirectRefused(reason: reason)) { try url.redirected(to: location) }
    }

    @Test("A redirect from http to https is refused, on the same port or another, before anything is sent there")
    func upwards() throws {
        let url = try HTTPURL(parsing: "http://localhost:8080/keys")
        #expect(throws: ClientError.redirectRefused(reason: "it leads from http to https")) {
            try url.redirected(to: "https://localhost:8080/keys")
        }
        let issuer = try ScriptedIssuer(.plain) { _, peer in
            try peer.answer(status: "302 Found", fields: ["Location: https://localhost/keys"], "")
        }
        defer { issuer.stop() }
        #expect(throws: ClientError.redirectRefused(reason: "it leads from http to https")) {
            try HTTPSClient().get(HTTPURL(parsing: issuer.url))
        }
        #expect(issuer.connectionCount == 1)
    }

    @Test("A loop ends after three redirects, a redirect without a location at once")
    func loop() throws {
        let issuer = try ScriptedIssuer(.plain) { request, peer in
            let fields = request.path == "/nowhere" ? [] : ["Location: /keys"]
            try peer.answer(status: "302 Found", fields: fields, "")
        }
        defer { issuer.stop() }
        #expect(throws: ClientError.redirectRefused(reason: "there are more than 3 in a row")) {
            try HTTPSClient().get(HTTPURL(parsing: issuer.url))
        }
        #expect(issuer.requestCount == 4)
        #expect(throws: ClientError.redirectRefused(reason: "it names no place")) {
            try HTTPSClient().get(HTTPURL(parsing: "http://localhost:\(issuer.port)/nowhere"))
        }
    }
}
