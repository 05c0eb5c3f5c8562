import Glibc
import LLHTTP
import LLTestSupport
import Testing

@Suite("The size limit of a client's first message", .live)
struct ClientHelloTests {
    /// A hello with a body of this many bytes, filled by a padding extension (RFC 7685); without record headers.
    static func hello(bodyBytes: Int) throws -> [UInt8] {
        var body = Array(try TLSClient.clientHello().dropFirst(9))
        // The version and the random number come first, then three vectors: session, cipher suites, compression.
        var extensions = 34 + 1 + Int(body[34])
        extensions += 2 + Int(body[extensions]) << 8 + Int(body[extensions + 1])
        extensions += 1 + Int(body[extensions])
        let padding = bodyBytes - body.count - 4
        body += [0, 21, UInt8(padding >> 8), UInt8(padding & 0xff)] + [UInt8](repeating: 0, count: padding)
        let length = body.count - extensions - 2
        body[extensions] = UInt8(length >> 8)
        body[extensions + 1] = UInt8(length & 0xff)
        return [1, 0, UInt8(bodyBytes >> 8), UInt8(bodyBytes & 0xff)] + body
    }

    /// The message in records: the first ones have the given sizes, the others as many bytes as fit.
    static func records(_ message: [UInt8], _ first: [Int] = []) -> [UInt8] {
        var rest = message[...]
        var result: [UInt8] = []
        for size in first + [16_384, 16_384] where !rest.isEmpty {
            let piece = rest.prefix(size)
            result += [0x16, 3, 1, UInt8(piece.count >> 8), UInt8(piece.count & 0xff)] + piece
            rest = rest.dropFirst(size)
        }
        return result
    }

    /// A hello with a key for X448. The server answers with a HelloRetryRequest (RFC 8446 section 4.1.4).
    static func helloForRetry() throws -> [UInt8] {
        var hello = try TLSClient.clientHello()
        let share: [UInt8] = [0, 0x33, 0, 0x26, 0, 0x24, 0, 0x1d]
        let start = try #require(hello.ranges(of: share).first?.upperBound)
        hello[start - 1] = 0x1e
        return hello
    }

    static let cuts = [[], [1, 1, 1, 1], [3, 1]]

    @Test(
        "A hello that announces more than 16 KiB is refused before its bytes arrive, with any split into records",
        arguments: [16_385, 131_072, 0xff_ffff],
        cuts
    )
    func announcement(_ size: Int, _ cuts: [Int]) async throws {
        let start: [UInt8] = [1, UInt8(size >> 16), UInt8(size >> 8 & 0xff), UInt8(size & 0xff)]
        for retries in [false, true] {
            let server = try TestServer.secure()
            let client = try BlockingClient(server.address)
            if retries {
                client.send(try Self.helloForRetry())
                #expect(client.read { $0.count > 5 }.bytes.first == 0x16)
            }
            client.send(Self.records(start, cuts))
            #expect(client.read().end == .endOfStream)
            client.shutdownWrite()
            #expect(server.waitUntil { $0.closed(.handshake) == 1 && $0.open == 0 })
            await server.stop()
        }
    }

    @Test(
        "A hello of up to 16 KiB is answered, in one record or in several",
        arguments: [
            (700, [Int]()), (700, [1, 1, 1, 1, 1]), (2_500, []), (16_380, []), (16_384, []), (16_384, [3, 100]),
        ]
    )
    func greatHello(_ size: Int, _ cuts: [Int]) throws {
        let server = try TestServer.secure()
        let client = try BlockingClient(server.address)
        let bytes = Self.records(try Self.hello(bodyBytes: size), cuts)
        client.send(Array(bytes.prefix(8)))
        #expect(server.waitUntil { $0.open == 1 })
        client.send(Array(bytes.dropFirst(8)))
        // The answer is a ServerHello, not an alert.
        #expect(client.read { $0.count > 5 }.bytes.first == 0x16)
    }
}

extension TLSClient {
    /// The first bytes of a handshake, as a client would send them.
    static func clientHello() throws -> [UInt8] {
        let pair = try Socket.pair()
        defer { for descriptor in pair { _ = close(descriptor) } }
        let context = try TLSContext(clientTrusting: .system)
        let connection = try TLSConnection(client: context, descriptor: pair[0], hostName: "localhost")
        guard try connection.handshake() == .wantRead else { throw TestSupportError("no client hello") }
        var bytes = [UInt8](repeating: 0, count: 4_096)
        // At most the array's own length is received.
        let count = unsafe bytes.withUnsafeMutableBytes { unsafe recv(pair[1], $0.baseAddress, $0.count, 0) }
        guard count > 0 else { throw TestSupportError("no client hello") }
        return Array(bytes[..<count])
    }
}
