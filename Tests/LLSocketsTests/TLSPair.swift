import Glibc
import LLHTTP
import LLTestSupport

/// A client's and a server's connection over a pair of sockets, driven in turn on one thread.
final class TLSPair {
    let client: TLSConnection
    let server: TLSConnection
    private let descriptors: [Int32]

    init(client context: TLSContext, server serverContext: TLSContext, hostName: String = "localhost") throws {
        descriptors = try Socket.pair()
        client = try TLSConnection(client: context, descriptor: descriptors[0], hostName: hostName)
        server = try TLSConnection(server: serverContext, descriptor: descriptors[1])
    }

    deinit { for descriptor in descriptors { _ = close(descriptor) } }

    /// Shuts down the client's socket under its connection, as a broken network would.
    func breakClient() { _ = shutdown(descriptors[0], Int32(SHUT_RDWR)) }

    /// True if the client's socket holds unread bytes.
    var clientHasInput: Bool {
        var waiting = pollfd(fd: descriptors[0], events: Int16(POLLIN), revents: 0)
        return unsafe poll(&waiting, 1, 0) == 1
    }

    /// Runs both handshakes to their end; throws the client's error before the server's.
    func handshake() throws {
        var clientStep: Socket.Transfer? = .wantRead
        var serverStep: Socket.Transfer? = .wantRead
        var serverError: (any Error)?
        for _ in 0..<100 {
            if clientStep != nil { clientStep = try client.handshake() }
            if serverStep != nil, serverError == nil {
                do {
                    serverStep = try server.handshake()
                } catch {
                    // The client reads the alert first.
                    serverError = error
                }
            }
            if clientStep == nil, serverStep == nil { return }
            if let serverError, clientStep == nil { throw serverError }
        }
        throw serverError ?? TestSupportError("the handshake does not end")
    }

    /// Reads the available bytes on one side.
    static func read(_ connection: TLSConnection, count: Int = 4096) throws -> (Socket.Transfer, [UInt8]) {
        var buffer = [UInt8](repeating: 0, count: count)
        let result = try connection.read(into: &buffer)
        if case .bytes(let count) = result { return (result, Array(buffer[..<count])) }
        return (result, [])
    }
}
