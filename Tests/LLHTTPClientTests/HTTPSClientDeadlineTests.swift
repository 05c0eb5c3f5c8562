import Dispatch
import Glibc
import LLHTTP
import LLTestSupport
import Testing

@Suite("The HTTPS client keeps its deadlines", .live)
struct HTTPSClientDeadlineTests {
    @Test("Against every slow peer the fetch ends at its deadline", arguments: ["http", "https"])
    func slow(scheme: String) throws {
        let certificates = try TestCertificates.shared.get()
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n" + String(repeating: "x", count: 10_000)
        let interim = String(repeating: "HTTP/1.1 102 Wait\r\n\r\n", count: 1_000)
        let peers: [(ScriptedIssuer.Manner?, ClientError.Phase, ScriptedIssuer.Script)] = [
            (scheme == "http" ? nil : .silent, scheme == "http" ? .receiving : .handshaking, { $1.waitUntilClosed() }),
            (nil, .receiving, { try $1.drip(text, every: .milliseconds(20)) }),
            (nil, .receiving, { try $1.drip(interim, every: .milliseconds(20)) }),
        ]
        var limits = HTTPSClientLimits()
        limits.fetchTimeout = .seconds(2)
        for (manner, phase, script) in peers {
            let usual = scheme == "http" ? ScriptedIssuer.Manner.plain : .tls(certificates.good)
            let issuer = try ScriptedIssuer(manner ?? usual, script: script)
            defer { issuer.stop() }
            let client = HTTPSClient(trust: .authorities(file: certificates.authorityFile))
            let began = MonotonicClock.now()
            let url = try HTTPURL(parsing: "\(scheme)://127.0.0.1:\(issuer.port)/")
            let error = #expect(throws: ClientError.self) { try client.get(url, limits: limits) }
            // On a very busy machine the time may run out before the request arrives.
            let isLate = issuer.requestCount == 0 && manner == nil
            #expect(error == .timedOut(phase: phase) || isLate)
            // Without the deadline each of these peers would take minutes.
            let elapsed = MonotonicClock.now().duration(since: began)
            #expect(elapsed >= .seconds(2) && elapsed < .seconds(60))
        }
    }

    @Test("A connect that hangs ends at the connect timeout, before the fetch timeout")
    func connectHangs() throws {
        let issuer = try ScriptedIssuer(.plain) { _, _ in }
        defer { issuer.stop() }
        let full = try FullListener(port: issuer.port)
        var limits = HTTPSClientLimits()
        limits.connectTime = .milliseconds(150)
        limits.fetchTimeout = .seconds(600)
        let began = MonotonicClock.now()
        let error = #expect(throws: ClientError.self) {
            try HTTPSClient().get(HTTPURL(parsing: "https://\(full.address)/"), limits: limits)
        }
        #expect(error == .timedOut(phase: .connecting))
        #expect(MonotonicClock.now().duration(since: began) < .seconds(60))
    }

    @Test("A handshake ends at its deadline though the peer always has a message ready")
    func endlessHandshake() throws {
        let listener = try Socket.listener(on: .loopback(port: 0), backlog: 1, sharesPort: false)
        let address = ListenAddress.network(try listener.localAddress())
        let client = try Socket.make(for: address)
        _ = try client.connect(to: address)
        _ = listener.wait(forWriting: false, until: .never)
        var origin: SocketAddress?
        let peer = Socket.accept(listener.descriptor, peer: &origin)
        defer { close(peer) }
        // A client ignores HelloRequests during a handshake (RFC 5246, 7.4.1.1).
        let record: [UInt8] = [0x16, 3, 3, 0, 4, 0, 0, 0, 0]
        let records = Array(repeatElement(record, count: 10_000).joined())
        while Socket.send(peer, records) == .bytes(records.count) {}
        let number = client.descriptor
        let stream = ClientStream(client)
        let context = try TLSContext(clientTrusting: .system)
        #expect(throws: ClientError.timedOut(phase: .handshaking)) {
            try stream.secure(context, hostName: "localhost", until: MonotonicClock.now())
        }
        var left = [UInt8](repeating: 0, count: 1)
        #expect(Socket.receive(number, into: &left, atMost: 1) == .bytes(1))
    }

    @Test("A request to a peer that never reads ends at its deadline")
    func neverReads() throws {
        // The system completes the connection, which is never accepted.
        let listener = try Socket.listener(on: .loopback(port: 0), backlog: 1, sharesPort: false)
        var limits = HTTPSClientLimits()
        limits.fetchTimeout = .seconds(5)
        // The body is larger than the socket buffers of both sides.
        let body = HTTPSRequest.Body.json([UInt8](repeating: 0x20, count: 64 << 20))
        let url = try HTTPURL(parsing: "http://\(listener.localAddress())/")
        #expect(throws: ClientError.timedOut(phase: .sending)) {
            try HTTPSClient().send(HTTPSRequest(.post, url, body: body), limits: limits)
        }
    }

    @Test("A resolver that does not answer ends at the fetch timeout; the number of hanging look-ups is limited")
    func resolverHangs() throws {
        let release = DispatchSemaphore(value: 0)
        let names = NameResolver { host in
            release.wait()
            return .failure(.nameNotResolved(host: host, reason: "too late"))
        }
        let client = HTTPSClient(names: names)
        var limits = HTTPSClientLimits()
        limits.fetchTimeout = .milliseconds(50)
        let url = try HTTPURL(parsing: "https://issuer.test/")
        var errors: [ClientError?] = []
        for _ in 0..<10 { errors.append(#expect(throws: ClientError.self) { try client.get(url, limits: limits) }) }
        for _ in 0..<10 { release.signal() }
        #expect(errors.first == .timedOut(phase: .resolving))
        #expect(errors.last == .nameNotResolved(host: "issuer.test", reason: "the resolver does not answer"))
    }

    @Test("A resolver serves many callers at once, and no call hangs")
    func resolverIsAskedByMany() async throws {
        let callers = 24
        let (asked, refused, served) = (Locked(0), Locked(0), Locked(0))
        let release = DispatchSemaphore(value: 0)
        let names = NameResolver { _ in
            asked.withLock { $0 += 1 }
            release.wait()
            return .success([.loopback(port: 0)])
        }
        for _ in 0..<callers {
            DispatchQueue(label: "caller").async {
                let found = try? names.addresses(of: "issuer.test", port: 443, cancelledBy: nil, until: .never)
                (found == nil ? refused : served).withLock { $0 += 1 }
            }
        }
        await eventually("Each look-up is under way or refused") {
            asked.withLock { $0 } + refused.withLock { $0 } == callers
        }
        for _ in 0..<callers { release.signal() }
        await eventually("Each call has ended") { served.withLock { $0 } + refused.withLock { $0 } == callers }
        #expect(refused.withLock { $0 } == 0)
    }

    @Test("Cancelling from another thread ends a fetch that hangs, and every later one")
    func cancel() throws {
        let arrived = DispatchSemaphore(value: 0)
        let issuer = try ScriptedIssuer(.plain) { _, peer in
            arrived.signal()
            peer.waitUntilClosed()
        }
        defer { issuer.stop() }
        let client = HTTPSClient()
        let url = try HTTPURL(parsing: issuer.url)
        DispatchQueue(label: "canceller").async {
            arrived.wait()
            client.cancel()
        }
        var limits = HTTPSClientLimits()
        limits.fetchTimeout = .seconds(600)
        let began = MonotonicClock.now()
        #expect(throws: ClientError.cancelled) { try client.get(url, limits: limits) }
        #expect(throws: ClientError.cancelled) { try client.get(url, limits: limits) }
        #expect(MonotonicClock.now().duration(since: began) < .seconds(60))
    }
}

/// A loopback address with a listener that accepts nothing and has a full queue: a connect to it hangs.
final class FullListener {
    let address: SocketAddress
    private let sockets: [ClientStream]

    init(port: UInt16) throws {
        let address = SocketAddress(bytes: [127, 0, 0, 3], port: port)
        let listener = ClientStream(try Socket.listener(on: address, backlog: 0, sharesPort: false))
        let fillers = try (0..<4).map { _ in
            let socket = try Socket.make(for: .network(address))
            _ = try socket.connect(to: .network(address))
            return ClientStream(socket)
        }
        (self.address, sockets) = (address, [listener] + fillers)
    }
}
