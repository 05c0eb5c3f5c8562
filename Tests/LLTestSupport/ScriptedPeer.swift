internal import Glibc
internal import LLHTTP

/// The server's end of one scripted connection. Only the connection's own thread uses it. Other threads call only
/// ``interrupt()``, which only calls `shutdown(2)`; hence `@unchecked Sendable`.
package final class ScriptedPeer: @unchecked Sendable {
    /// The client has disconnected, or the issuer was stopped.
    package struct Gone: Error {}

    private let stream: TestStream
    /// True if another request may follow on this connection. A script sets it for each request.
    package var keepsOpen = false

    init(_ socket: consuming Socket) { stream = TestStream(socket) }

    var descriptor: Int32 { stream.socket.descriptor }

    func startTLS(_ context: TLSContext) throws {
        _ = try stream.startTLS(TLSConnection(server: context, descriptor: descriptor), until: .never)
    }

    func readHead() throws -> (line: String, fields: [(name: String, value: String)]) {
        var head: [UInt8] = []
        while !head.suffix(4).elementsEqual(Array("\r\n\r\n".utf8)) { head += try receive(1) }
        let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n")
        let fields = lines.dropFirst().map { line in
            let parts = line.split(separator: ":", maxSplits: 1)
            return (name: parts[0].lowercased(), value: parts.count > 1 ? String(parts[1].drop { $0 == " " }) : "")
        }
        return (lines.first.map(String.init) ?? "", fields)
    }

    package func receive(_ count: Int) throws -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: count)
        guard case .bytes(let count) = try stream.receive(into: &buffer, until: .never) else { throw Gone() }
        return Array(buffer[..<count])
    }

    package func send(_ text: String) throws { try send(Array(text.utf8)) }

    package func send(_ bytes: [UInt8]) throws { guard try stream.send(bytes, until: .never) else { throw Gone() } }

    /// Drops the client's bytes until the client closes.
    package func waitUntilClosed() { while (try? receive(4096)) != nil {} }

    /// Lets time pass, unless the client closes first.
    package func pause(_ duration: Duration) throws {
        if stream.socket.wait(forWriting: false, until: MonotonicClock.now() + duration) { throw Gone() }
    }

    /// Closes with a reset instead of an end.
    package func reset() { stream.socket.resetOnClose() }

    /// Ends the stream without close_notify under TLS, as a cut connection does.
    package func cut() {
        stream.dropTLS()
        _ = shutdown(descriptor, Int32(SHUT_WR))
    }

    func finish() {
        stream.tls?.sayClose()
        _ = shutdown(descriptor, Int32(SHUT_WR))
    }

    func interrupt() { _ = shutdown(descriptor, Int32(SHUT_RDWR)) }
}

extension ScriptedPeer {
    /// Sends a whole answer with its length and keeps the connection open.
    package func answerAndStay(status: String = "200 OK", fields: [String] = [], _ body: String = "") throws {
        keepsOpen = true
        try answer(status: status, fields: fields, body)
    }

    package func answer(status: String = "200 OK", fields: [String] = [], _ body: [UInt8] = []) throws {
        let lines = ["HTTP/1.1 \(status)", "Content-Length: \(body.count)"] + fields
        try send(Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) + body)
    }

    package func answer(status: String = "200 OK", fields: [String] = [], _ body: String) throws {
        try answer(status: status, fields: fields, Array(body.utf8))
    }

    /// Sends the bytes one by one, with a pause after each, until the client closes.
    package func drip(_ text: String, every pause: Duration) throws {
        for byte in text.utf8 {
            try send([byte])
            try self.pause(pause)
        }
    }

    /// Sends `head`, then `piece` again and again, until the client closes or `total` bytes of pieces are sent.
    package func repeatPiece(_ piece: [UInt8], head: String, total: Int) throws {
        try send(head)
        var sent = 0
        while sent < total {
            try send(piece)
            sent += piece.count
        }
    }
}

extension ScriptedPeer {
    /// Passes bytes both ways between this plain connection and a port of 127.0.0.1 until one side ends: a tunnel.
    package func relay(toPort port: UInt16) throws {
        let other = try BlockingClient(SocketAddress.loopback(port: port))
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while true {
            var waiting = [descriptor, other.descriptor].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            // The system fills in the two entries the array holds.
            _ = unsafe poll(&waiting, 2, -1)
            if waiting[0].revents != 0 { other.send(try receive(16_384)) }
            if waiting[1].revents != 0 {
                guard case .bytes(let count) = try other.stream.receive(into: &buffer, until: .never) else { return }
                try send(Array(buffer[..<count]))
            }
        }
    }
}
