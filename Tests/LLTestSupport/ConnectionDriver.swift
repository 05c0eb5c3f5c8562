package import LLHTTP

/// A request for `/`, without a body.
package let plainGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

/// Drives one connection's state machine as a worker would, but without a socket and with a clock that tests move.
package final class ConnectionDriver {
    package var host: ConnectionHost
    package let connection: Connection
    /// The current time. It starts far enough from zero that no test reaches a moment before the clock's start.
    package var now: MonotonicInstant { host.now }
    package private(set) var received: [UInt8] = []
    /// Why the connection was closed; nil while it is open.
    package private(set) var closed: ConnectionCloseCause?
    /// True once the server ended its direction.
    package private(set) var writeIsShut = false
    /// The number of bytes that the client still accepts; nil for any number.
    package var room: Int?
    private var pending: [UInt8] = []
    private var unread: [UInt8] = []
    private var inputIsOver = false

    /// - Parameter text: What the client sends at once.
    package init(
        limits: HTTPServerLimits = HTTPServerLimits(),
        handler: any HTTPRequestHandler = TestHandler.probe(),
        isOverLimit: Bool = false,
        sending text: String = ""
    ) {
        let start = MonotonicInstant(nanoseconds: 1_000_000_000_000)
        host = ConnectionHost(limits: limits, handler: handler, now: start)
        host.waitingSince = start
        host.unixSeconds = 784_111_777
        connection = Connection(id: 1, descriptor: -1, isOverLimit: isOverLimit, host)
        send(text)
    }

    package var responses: [TestResponse] { TestResponse.parseAll(received) }
    package var statuses: [Int] { responses.map(\.status) }

    /// The bytes of the final responses. Interim responses are left out, because timing decides if they are sent.
    package var finalBytes: [UInt8] {
        Array(received.split(separator: Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)).joined())
    }

    /// Bytes arrive. They are read in pieces of one receive's size, and only while the state machine waits for input.
    package func send(_ bytes: [UInt8]) {
        unread += bytes
        deliver()
    }

    /// Text arrives that may have waited since an earlier moment.
    package func send(_ text: String, waitingSince: MonotonicInstant) {
        host.waitingSince = waitingSince
        receive(Array(text.utf8))
    }

    package func send(_ text: String) { send(Array(text.utf8)) }

    package func endInput() {
        inputIsOver = true
        if closed == nil, connection.interest == .hangUp { perform { _ in connection.inputEnded() } }
        deliver()
    }

    private func deliver() {
        while closed == nil, connection.interest == .input {
            if unread.isEmpty {
                if inputIsOver { perform { _ in connection.inputEnded() } }
                return
            }
            let piece = Array(unread.prefix(connection.room(host.limits)))
            unread.removeFirst(piece.count)
            host.waitingSince = now
            receive(piece)
        }
    }

    private func receive(_ bytes: [UInt8]) {
        perform { connection.received(bytes.span, by: &$0) }
    }

    package func wake() {
        perform { connection.wake(&$0) }
        deliver()
    }

    /// Time passes. Each deadline on the way is handled at its own moment.
    package func advance(by duration: Duration) {
        let end = now + duration
        while closed == nil, connection.deadline <= end {
            host.now = max(now, connection.deadline)
            host.waitingSince = now
            perform { connection.deadlinePassed(&$0) }
            deliver()
        }
        host.now = end
        host.waitingSince = now
    }

    /// The client takes `count` more bytes of the waiting output.
    package func drain(_ count: Int) {
        room = (room ?? 0) + count
        if connection.isWriting {
            transfer()
            perform { _ in }
        }
        deliver()
    }

    /// The worker closes the connection because memory is short.
    /// - Returns: Whether a request was answered.
    package func giveUp() -> Bool {
        var isAnswered = false
        perform { isAnswered = connection.giveUp(&$0) }
        return isAnswered
    }

    private func perform(_ event: (inout ConnectionHost) -> Void) {
        event(&host)
        while true {
            if connection.hasEnded { host.output.removeAll() }
            if !host.output.isEmpty {
                pending += host.output
                host.output.removeAll()
                pending += host.sharedOutput ?? []
                host.sharedOutput = nil
                if !connection.isWriting { transfer() }
            }
            switch connection.next(&host) {
            case .wait: return
            case .resume: connection.resume(&host)
            case .shutdownWrite:
                writeIsShut = true
                return
            case .close(let cause):
                closed = cause
                return
            }
        }
    }

    private func transfer() {
        let count = min(pending.count, room ?? .max)
        received += pending[..<count]
        pending.removeFirst(count)
        if let room { self.room = room - count }
        if !pending.isEmpty {
            connection.outputBlocked(sent: count, host)
        } else if connection.isWriting {
            connection.outputSent(host)
        }
    }
}
