import LLHTTP
import LLJOSE
import LLTestSupport
import Testing

/// A peer's fault and the error that names it.
struct ClientFault: Sendable, CustomTestStringConvertible {
    let testDescription: String
    var manner: @Sendable (TestCertificates) -> ScriptedIssuer.Manner = { .tls($0.good) }
    var script: ScriptedIssuer.Script = { _, peer in try peer.answer("x") }
    let expected: ClientError

    static func raw(_ name: String, _ text: String, _ expected: ClientError) -> ClientFault {
        ClientFault(testDescription: name, script: { _, peer in try peer.send(text) }, expected: expected)
    }

    static func certificate(
        _ name: String,
        _ identity: @escaping @Sendable (TestCertificates) -> TestCertificates.Identity,
        _ reason: String
    ) -> ClientFault {
        ClientFault(
            testDescription: name,
            manner: { .tls(identity($0)) },
            expected: .tls(reason: "the certificate was refused: \(reason)")
        )
    }

    static let all: [ClientFault] = certificates + streams + heads + bodies

    static let certificates: [ClientFault] = [
        certificate("expired", { $0.expired }, "certificate has expired"),
        certificate("not yet valid", { $0.notYetValid }, "certificate is not yet valid"),
        certificate("wrong name", { $0.wrongName }, "host name mismatch"),
        certificate("name in the common name alone", { $0.commonNameOnly }, "host name mismatch"),
        certificate("self-signed", { $0.selfSigned }, "self-signed certificate"),
        certificate("unknown authority", { $0.untrusted }, "certificate is not issued by a trusted authority"),
    ]

    static let streams: [ClientFault] = [
        ClientFault(
            testDescription: "reset",
            manner: { _ in .resetting },
            expected: .failed(reason: "Connection reset by peer")
        ),
        ClientFault(testDescription: "closed without an answer", script: { _, _ in }, expected: .closed),
        ClientFault(
            testDescription: "a body that ends with the connection is cut without notice",
            script: { _, peer in
                try peer.send("HTTP/1.1 200 OK\r\n\r\nhal")
                peer.cut()
            },
            expected: .closed
        ),
        raw("length not reached", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal", .closed),
        raw("chunks not ended", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhal\r\n", .closed),
        raw("head not ended", "HTTP/1.1 200 OK\r\nContent-", .closed),
    ]

    static let heads: [ClientFault] = [
        raw("no HTTP", "<html>nothing to see</html>", .malformedResponse(reason: "the status line is malformed")),
        raw(
            "length and chunks",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            .malformedResponse(reason: "there are both Content-Length and Transfer-Encoding")
        ),
        raw(
            "gzip unasked",
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx",
            .malformedResponse(reason: "the body is encoded, although no coding was offered")
        ),
        raw(
            "too many fields",
            "HTTP/1.1 200 OK\r\n" + String(repeating: "A: b\r\n", count: 101) + "\r\n",
            .malformedResponse(reason: "there are too many fields")
        ),
        raw(
            "endless head",
            "HTTP/1.1 200 OK\r\nA: " + String(repeating: "b", count: 40_000),
            .headTooLarge(limit: 32_768)
        ),
    ]

    static let bodies: [ClientFault] = [
        ClientFault(
            testDescription: "announced size beyond the limit",
            script: { _, peer in
                try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 65537\r\n\r\n")
                peer.waitUntilClosed()
            },
            expected: .bodyTooLarge(limit: 65_536)
        ),
        ClientFault(
            testDescription: "1 GB body without a length",
            script: { _, peer in
                let piece = [UInt8](repeating: 0x20, count: 65_536)
                try peer.repeatPiece(piece, head: "HTTP/1.1 200 OK\r\n\r\n", total: 1 << 30)
            },
            expected: .bodyTooLarge(limit: 65_536)
        ),
        ClientFault(
            testDescription: "endless chunks",
            script: { _, peer in
                let piece = Array("400\r\n".utf8) + [UInt8](repeating: 0x20, count: 1024) + Array("\r\n".utf8)
                try peer.repeatPiece(
                    piece,
                    head: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                    total: 1 << 30
                )
            },
            expected: .bodyTooLarge(limit: 65_536)
        ),
        ClientFault(
            testDescription: "endless tiny chunks",
            script: { _, peer in
                let piece = Array(String(repeating: "1\r\nx\r\n", count: 1024).utf8)
                try peer.repeatPiece(
                    piece,
                    head: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                    total: 1 << 30
                )
            },
            expected: .malformedResponse(reason: "the body comes in too many chunks")
        ),
        raw(
            "a chunk size that is no number",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            .malformedResponse(reason: "the chunked coding is malformed")
        ),
    ]
}

@Suite("The HTTPS client refuses", .live)
struct HTTPSClientFaultTests {
    @Test("Every fault ends in the error that names it", arguments: ClientFault.all)
    func fault(_ fault: ClientFault) throws {
        let certificates = try TestCertificates.shared.get()
        let issuer = try ScriptedIssuer(fault.manner(certificates), script: fault.script)
        defer { issuer.stop() }
        let client = HTTPSClient(trust: .authorities(file: certificates.authorityFile))
        let error = #expect(throws: ClientError.self) {
            try client.get(HTTPURL(parsing: "https://localhost:\(issuer.port)/keys"))
        }
        #expect(error == fault.expected)
        #expect(OpenSSLError.isQueueEmpty)
    }

    @Test("A port without a listener is a failed connection")
    func refused() throws {
        let issuer = try ScriptedIssuer(.plain) { _, _ in }
        issuer.stop()
        let error = #expect(throws: ClientError.self) {
            try HTTPSClient().get(HTTPURL(parsing: issuer.url))
        }
        guard case .connectFailed = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test("A certificate is refused if its authority is not among those configured: the system's, or a file's")
    func otherTrust() throws {
        let certificates = try TestCertificates.shared.get()
        let issuer = try ScriptedIssuer(.tls(certificates.good)) { _, peer in try peer.answer("x") }
        defer { issuer.stop() }
        for trust in [TLSContext.Trust.system, .authorities(file: certificates.otherAuthorityFile)] {
            let error = #expect(throws: ClientError.self) {
                try HTTPSClient(trust: trust).get(HTTPURL(parsing: issuer.url))
            }
            #expect(
                error
                    == .tls(reason: "the certificate was refused: certificate is not issued by a trusted authority")
            )
        }
    }

    @Test("The error names a trust file that is missing or not PEM", arguments: ["/nonexistent.pem", "/dev/null"])
    func badTrustFile(_ file: String) throws {
        let error = #expect(throws: TLSError.self) {
            _ = try TLSContext(clientTrusting: .authorities(file: file))
        }
        #expect(error?.description.contains(file) == true)
        #expect(OpenSSLError.isQueueEmpty)
    }

    @Test("A header that would split the request is never sent", arguments: ["a\r\nb: c", "a\nb", "a\0"])
    func splitting(_ value: String) throws {
        let error = #expect(throws: ClientError.self) {
            try HTTPSClient().get(
                HTTPURL(parsing: "http://127.0.0.1:1/"),
                headers: [(name: "x", value: value)]
            )
        }
        #expect(error == .malformedRequest)
    }

    @Test("A second stop of a scripted issuer closes no other socket that has got the same descriptor")
    func stoppedTwice() throws {
        let issuer = try ScriptedIssuer { _, peer in try peer.answer("x") }
        let other = try ScriptedIssuer(.silent) { _, _ in }
        defer { other.stop() }
        issuer.stop()
        let clients = try (0..<8).map { _ in try BlockingClient(SocketAddress.loopback(port: other.port)) }
        issuer.stop()
        for client in clients { #expect(client.read(timeout: .zero).end == .timedOut) }
    }
}
