internal import Glibc
package import LLHTTP

extension Socket {
    /// Waits until the socket is readable (or writable), or until `deadline`.
    /// - Returns: False if the deadline passes first.
    package func wait(forWriting: Bool, until deadline: MonotonicInstant) -> Bool {
        let interest = (descriptor: descriptor, wantsInput: !forWriting, wantsSpace: forWriting)
        return BlockingWait.wait(for: [interest], until: deadline) != .deadline
    }

    /// The descriptors of two connected sockets that do not block. The caller closes them.
    package static func pair() throws -> [Int32] {
        var pair: [Int32] = [-1, -1]
        let kind = SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue
        // `socketpair` fills the two entries the array holds.
        guard unsafe socketpair(AF_UNIX, Int32(kind), 0, &pair) == 0 else { throw TestSupportError("socketpair") }
        return pair
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
            guard let step = try connection.handshake() else { break }
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

    private func step(_ bytes: [UInt8], _ sent: Int) throws -> Socket.Transfer {
        if let tls { return try tls.write(bytes, from: sent) }
        return try Self.checked(Socket.send(socket.descriptor, bytes, from: sent))
    }

    private static func checked(_ transfer: Socket.Transfer) throws -> Socket.Transfer {
        if case .failed(let number) = transfer { throw TestSupportError("\(number)") }
        return transfer
    }

    /// Receives available bytes into the start of `buffer`.
    /// - Returns: The bytes or the end of the stream; nil if the deadline passes first.
    func receive(into buffer: inout [UInt8], until deadline: MonotonicInstant) throws -> Socket.Transfer? {
        while true {
            let transfer =
                if let tls { try tls.read(into: &buffer) } else {
                    try Self.checked(Socket.receive(socket.descriptor, into: &buffer))
                }
            guard [.wantRead, .wantWrite].contains(transfer) else { return transfer }
            guard socket.wait(forWriting: transfer == .wantWrite, until: deadline) else { return nil }
        }
    }
}
