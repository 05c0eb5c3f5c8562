internal import Glibc
internal import LLSockets

extension ScriptedPeer {
    /// Passes bytes both ways between this plain connection and a port of 127.0.0.1 until one side ends: a tunnel.
    package func relay(toPort port: UInt16) throws {
        let address = SocketAddress.loopback(port: port)
        let other = try Socket.make(for: address)
        _ = try other.connect(to: address)
        _ = other.wait(forWriting: true, until: .never)
        try other.finishConnecting(to: address)
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while true {
            var waiting = [
                pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: other.descriptor, events: Int16(POLLIN), revents: 0),
            ]
            // The system fills in the two entries the array holds.
            _ = unsafe waiting.withUnsafeMutableBufferPointer { unsafe poll($0.baseAddress, 2, -1) }
            if waiting[0].revents != 0 {
                let bytes = try receive(16_384)
                var sent = 0
                while sent < bytes.count {
                    if case .bytes(let count) = try other.send(bytes, from: sent) { sent += count }
                }
            }
            if waiting[1].revents != 0 {
                guard case .bytes(let count) = try other.receive(into: &buffer) else { return }
                try send(Array(buffer[..<count]))
            }
        }
    }
}
