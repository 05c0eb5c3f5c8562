import LLHTTP
import LLTestSupport

/// A loopback address with a listener that accepts nothing and has a full queue: a connect to it hangs.
final class FullListener {
    let address: SocketAddress
    private let sockets: [ClientStream]

    init(port: UInt16) throws {
        let address = SocketAddress(bytes: [127, 0, 0, 3], port: port)
        let listener = ClientStream(try Socket.listener(on: address, backlog: 0, sharesPort: false))
        let fillers = try (0..<4).map { _ in
            let socket = try Socket.make(for: address)
            _ = try socket.connect(to: address)
            return ClientStream(socket)
        }
        (self.address, sockets) = (address, [listener] + fillers)
    }
}
