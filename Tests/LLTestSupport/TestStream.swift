internal import Glibc
package import LLHTTP

extension Socket {
    /// Waits until the socket is readable (or writable), or until `deadline`.
    /// - Returns: False if the deadline passes first.
    package func wait(forWriting: Bool, until deadline: MonotonicInstant) -> Bool {
        let interest = (descriptor: descriptor, wantsInput: !forWriting, wantsSpace: forWriting)
        return BlockingWait.wait(for: [interest], until: deadline) != .deadline
    }

    /// Makes closing send a reset instead of an orderly end.
    func resetOnClose() {
        var option = linger(l_onoff: 1, l_linger: 0)
        // The length passed is that of the option.
        _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }
}

/// A stream for tests, plain or TLS. Each call waits at most until a deadline.
final class TestStream {
    let socket: Socket
    private(set) var tls: TLSConnection?

    init(_ socket: consuming Socket) { self.socket = socket }

    /// - Returns: False if the deadline passes first.
    func startTLS(_ connection: TLSConnection, until deadline: MonotonicInstant) throws -> Bool {
        while true {
            let step = try connection.handshake()
            if step == .done { break }
            guard socket.wait(forWriting: step == .wantWrite, until: deadline) else { return false }
        }
        tls = connection
        return true
    }

    /// Later bytes are not decrypted.
    func dropTLS() { tls = nil }

    /// Sends everything.
    /// - Returns: False if the deadline passes first, or if the peer ended the stream.
    func send(_ bytes: [UInt8], until deadline: MonotonicInstant) throws -> Bool {
        var sent = 0
        while sent < bytes.count {
            switch try step(bytes, sent) {
            case .bytes(let count): sent += count
            case .closed: return false
            case let wait: guard socket.wait(forWriting: wait == .wantWrite, until: deadline) else { return false }
            }
        }
        return true
    }

    private func step(_ bytes: [UInt8], _ sent: Int) throws -> TLSConnection.Transfer {
        if let tls { return try tls.write(bytes.span.extracting(sent..<bytes.count)) }
        return switch try socket.send(bytes, from: sent) {
        case .bytes(let count): .bytes(count)
        case .wouldBlock: .wantWrite
        case .endOfStream: .closed
        }
    }

    /// Receives available bytes into the start of `buffer`.
    /// - Returns: The bytes or the end of the stream; nil if the deadline passes first.
    func receive(into buffer: inout [UInt8], until deadline: MonotonicInstant) throws -> Socket.Transfer? {
        while true {
            if let tls {
                var span = buffer.mutableSpan
                switch try tls.read(into: &span) {
                case .bytes(let count): return .bytes(count)
                case .closed: return .endOfStream
                case let wait: guard socket.wait(forWriting: wait == .wantWrite, until: deadline) else { return nil }
                }
            } else {
                let transfer = try socket.receive(into: &buffer)
                guard transfer == .wouldBlock else { return transfer }
                guard socket.wait(forWriting: false, until: deadline) else { return nil }
            }
        }
    }
}
