import LLHTTP
import LLTestSupport

/// A loopback address with a listener that accepts nothing and has a full queue: a connect to it hangs.
final class FullListener {
    let address: SocketAddress
    private let listener: SocketBox
    private var fillers: [SocketBox] = []

    init(port: UInt16) throws {
        address = SocketAddress(bytes: [127, 0, 0, 3], port: port)
        listener = SocketBox(try Socket.listener(on: address, backlog: 0, sharesPort: false))
        for _ in 0..<4 {
            let socket = try Socket.make(for: address)
            _ = try socket.connect(to: address)
            fillers.append(SocketBox(socket))
        }
    }
}

/// Holds a socket open.
private final class SocketBox {
    private let socket: Socket

    init(_ socket: consuming Socket) {
        self.socket = socket
    }
}
