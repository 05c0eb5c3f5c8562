import LLHTTP
import LLJOSE
import LLTestSupport
import Testing

@Suite("The HTTPS client refuses", .live)
struct HTTPSClientFaultTests {
    let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    /// The error of a fetch from such an issuer.
    private func fault(
        _ manner: ScriptedIssuer.Manner? = nil,
        _ script: @escaping ScriptedIssuer.Script
    ) throws -> ClientError? {
        let issuer = try ScriptedIssuer(manner ?? .tls(certificates.good), script: script)
        defer { issuer.stop() }
        let client = HTTPSClient(trust: .authorities(file: certificates.authorityFile))
        let url = try HTTPURL(parsing: "https://localhost:\(issuer.port)/keys")
        let error = #expect(throws: ClientError.self) { try client.get(url) }
        #expect(OpenSSLError.isQueueEmpty)
        return error
    }

    @Test("Every fault of a certificate ends in the error that names it")
    func certificateFaults() throws {
        for (identity, reason) in [
            (certificates.expired, "certificate has expired"),
            (certificates.notYetValid, "certificate is not yet valid"),
            (certificates.wrongName, "host name mismatch"), (certificates.commonNameOnly, "host name mismatch"),
            (certificates.selfSigned, "self-signed certificate"),
            (certificates.untrusted, "certificate is not issued by a trusted authority"),
        ] {
            let error = try fault(.tls(identity)) { _, peer in try peer.answer("x") }
            #expect(error == .tls(reason: "the certificate was refused: \(reason)"))
        }
    }

    @Test("A stream that breaks, and a body that ends without notice, are errors")
    func brokenStreams() throws {
        #expect(try fault(.resetting) { _, _ in } == .failed(reason: "Connection reset by peer"))
        #expect(try fault { _, _ in } == .closed)
        let cut = try fault { _, peer in
            try peer.send("HTTP/1.1 200 OK\r\n\r\nhal")
            peer.cut()
        }
        #expect(cut == .closed)
    }

    static let answers: [(String, ClientError)] = [
        ("Content-Length: 9\r\n\r\nhal", .closed), ("Content-", .closed),
        ("Transfer-Encoding: chunked\r\n\r\n3\r\nhal\r\n", .closed),
        ("Content-Length: 65537\r\n\r\n", .bodyTooLarge(limit: 65_536)),
        ("A: " + String(repeating: "b", count: 40_000), .headTooLarge(limit: 32_768)),
        (String(repeating: "A: b\r\n", count: 101) + "\r\n", .malformedResponse(reason: "there are too many fields")),
        (
            "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            .malformedResponse(reason: "there are both Content-Length and Transfer-Encoding")
        ),
        (
            "Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx",
            .malformedResponse(reason: "the body is encoded, although no coding was offered")
        ),
        ("Transfer-Encoding: chunked\r\n\r\nzz\r\n", .malformedResponse(reason: "the chunked coding is malformed")),
    ]

    @Test("Every fault of an answer ends in the error that names it", arguments: answers)
    func answer(text: String, expected: ClientError) throws {
        #expect(try fault { _, peer in try peer.send("HTTP/1.1 200 OK\r\n" + text) } == expected)
    }

    @Test("Bytes that are no HTTP are named so")
    func noHTTP() throws {
        let error = try fault { _, peer in try peer.send("<html>nothing to see</html>") }
        #expect(error == .malformedResponse(reason: "the status line is malformed"))
    }

    static let endless: [(field: String, piece: String, ClientError)] = [
        ("", String(repeating: " ", count: 65_536), .bodyTooLarge(limit: 65_536)),
        (
            "Transfer-Encoding: chunked\r\n", "400\r\n" + String(repeating: " ", count: 1_024) + "\r\n",
            .bodyTooLarge(limit: 65_536)
        ),
        (
            "Transfer-Encoding: chunked\r\n", String(repeating: "1\r\nx\r\n", count: 1_024),
            .malformedResponse(reason: "the body comes in too many chunks")
        ),
    ]

    @Test("A body of 1 GB is not read to its end", arguments: endless)
    func endlessBody(field: String, piece: String, expected: ClientError) throws {
        let error = try fault { _, peer in
            try peer.repeatPiece(Array(piece.utf8), head: "HTTP/1.1 200 OK\r\n\(field)\r\n", total: 1 << 30)
        }
        #expect(error == expected)
    }

    @Test("A port without a listener is a failed connection")
    func refused() throws {
        let issuer = try ScriptedIssuer(.plain) { _, _ in }
        issuer.stop()
        let error = #expect(throws: ClientError.self) { try HTTPSClient().get(HTTPURL(parsing: issuer.url)) }
        #expect(error?.description.hasPrefix("no connection could be made: ") == true)
    }

    @Test("A certificate is refused if its authority is not among those configured: the system's, or a file's")
    func otherTrust() throws {
        let issuer = try ScriptedIssuer(.tls(certificates.good)) { _, peer in try peer.answer("x") }
        defer { issuer.stop() }
        for trust in [TLSContext.Trust.system, .authorities(file: certificates.otherAuthorityFile)] {
            let reason = "the certificate was refused: certificate is not issued by a trusted authority"
            #expect(throws: ClientError.tls(reason: reason)) {
                try HTTPSClient(trust: trust).get(HTTPURL(parsing: issuer.url))
            }
        }
    }

    @Test("The error names a trust file that is missing or not PEM", arguments: ["/nonexistent.pem", "/dev/null"])
    func badTrustFile(_ file: String) throws {
        let error = #expect(throws: TLSError.self) { _ = try TLSContext(clientTrusting: .authorities(file: file)) }
        #expect(error?.description.contains(file) == true)
        #expect(OpenSSLError.isQueueEmpty)
    }

    @Test("A header that would split the request is never sent", arguments: ["a\r\nb: c", "a\nb", "a\0"])
    func splitting(_ value: String) throws {
        #expect(throws: ClientError.malformedRequest) {
            try HTTPSClient().get(HTTPURL(parsing: "http://127.0.0.1:1/"), headers: [(name: "x", value: value)])
        }
    }
}
