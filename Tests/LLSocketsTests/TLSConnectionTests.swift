import CLLOpenSSL.TLS
import LLJOSE
import LLTestSupport
import Testing

@testable import LLHTTP

@Suite("TLS")
struct TLSConnectionTests {
    let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    func serverContext(clientAuthorities: String? = nil) throws -> TLSContext {
        try certificates.good.serverContext(clientAuthoritiesFile: clientAuthorities)
    }

    func clientContext() throws -> TLSContext {
        try TLSContext(clientTrusting: .authorities(file: certificates.authorityFile))
    }

    @Test("Bytes travel both ways over TLS 1.3, and close_notify ends the stream in order")
    func exchange() throws {
        let pair = try TLSPair(client: clientContext(), server: serverContext())
        try pair.handshake()
        #expect(pair.client.version == "TLSv1.3")
        let request = Array("request".utf8)
        #expect(try pair.client.write(request) == .bytes(7))
        #expect(try TLSPair.read(pair.server).1 == request)
        #expect(try TLSPair.read(pair.server).0 == .wantRead)
        let answer = [UInt8](repeating: 0x61, count: 10_000)
        #expect(try pair.server.write(answer) == .bytes(10_000))
        var received: [UInt8] = []
        while received.count < answer.count { received += try TLSPair.read(pair.client).1 }
        #expect(received == answer)
        pair.server.sayClose()
        #expect(try TLSPair.read(pair.client).0 == .closed)
        #expect(OpenSSLError.isQueueEmpty)
    }

    @Test("A write to a peer that is gone is an error, and does not end the process")
    func brokenPipe() throws {
        let pair = try TLSPair(client: clientContext(), server: serverContext())
        try pair.handshake()
        pair.breakClient()
        #expect(throws: TLSError.self) {
            for _ in 0..<100 { _ = try pair.server.write([UInt8](repeating: 0, count: 16_384)) }
        }
        #expect(throws: TLSError.truncated) { try TLSPair.read(pair.client) }
        #expect(OpenSSLError.isQueueEmpty)
    }

    @Test("One call reads a bounded part of the key updates of a server that never stops sending them")
    func endlessKeyUpdates() throws {
        let pair = try TLSPair(client: clientContext(), server: serverContext())
        try pair.handshake()
        for _ in 0..<200 {
            #expect(unsafe SSL_key_update(pair.server.pointer, SSL_KEY_UPDATE_NOT_REQUESTED) == 1)
            #expect(try pair.server.handshake() == nil)
        }
        #expect(try TLSPair.read(pair.client).0 == .wantRead)
        #expect(pair.clientHasInput)
        #expect(try pair.server.write([1]) == .bytes(1))
        var received: [UInt8] = []
        for _ in 0..<200 where received.isEmpty { received = try TLSPair.read(pair.client).1 }
        #expect(received == [1])
    }

    @Test("A server that demands certificates refuses a client without one")
    func clientCertificates() throws {
        let context = try serverContext(clientAuthorities: certificates.authorityFile)
        let pair = try TLSPair(client: clientContext(), server: context)
        #expect(throws: TLSError.self) { try pair.handshake() }
        #expect(OpenSSLError.isQueueEmpty)
    }

    @Test(
        "A host name is matched only by the certificate's names",
        arguments: [
            ("localhost", true), ("localhost.", true), ("LOCALHOST", true), ("127.0.0.1", true), ("::1", true),
            ("issuer.test", true), ("127.0.0.2", false), ("elsewhere.example", false), ("localhost.example", false),
            ("host", false), ("::2", false),
        ]
    )
    func hostNames(_ name: String, _ matches: Bool) throws {
        let pair = try TLSPair(client: clientContext(), server: serverContext(), hostName: name)
        if matches { return try pair.handshake() }
        let error = #expect(throws: TLSError.self) { try pair.handshake() }
        #expect(error?.description.hasSuffix("mismatch") == true)
    }

    @Test("A key that does not belong to the certificate is refused when the context is made")
    func mismatch() {
        let (file, other) = (certificates.good.certificateFile, certificates.expired.keyFile)
        let error = #expect(throws: TLSError.self) { try TLSContext(serverCertificateFile: file, keyFile: other) }
        #expect(error?.description.contains(other) == true)
        #expect(OpenSSLError.isQueueEmpty)
    }
}
