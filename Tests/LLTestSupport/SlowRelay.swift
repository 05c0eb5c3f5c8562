internal import Dispatch
internal import Glibc
internal import LLSockets

/// Passes connections on to a port of 127.0.0.1. The answers come back one byte at a time, with a pause after each.
package final class SlowRelay: Sendable {
    package var port: UInt16 { listener.port }
    private let listener: ScriptedListener
    private let target: UInt16
    private let pause: Locked<Duration>
    private let isStopped = Locked(false)

    package init(to target: UInt16, pause: Duration) throws {
        listener = try ScriptedListener()
        self.target = target
        self.pause = Locked(pause)
        listener.accept { connection in
            let client = connection.release()
            DispatchQueue(label: "slow-relay-connection").async { self.relay(client) }
        }
    }

    /// Sets another pause. With zero everything is passed on at once.
    package func setPause(_ duration: Duration) { pause.withLock { $0 = duration } }

    package func stop() {
        isStopped.withLock { $0 = true }
        listener.stop()
    }

    private func relay(_ client: Int32) {
        defer { _ = close(client) }
        guard let server = try? BlockingClient(SocketAddress.loopback(port: target)) else { return }
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while !isStopped.withLock({ $0 }) {
            var waiting = [
                pollfd(fd: client, events: Int16(POLLIN), revents: 0),
                pollfd(fd: server.descriptor, events: Int16(POLLIN), revents: 0),
            ]
            // The system fills in the two entries the array holds.
            _ = unsafe waiting.withUnsafeMutableBufferPointer { unsafe poll($0.baseAddress, 2, 100) }
            if waiting[0].revents != 0 {
                let count = receive(client, &buffer, buffer.count)
                guard count > 0, server.send(Array(buffer[..<count])) else { return }
            }
            if waiting[1].revents != 0 {
                let wait = pause.withLock { $0 }
                let count = receive(server.descriptor, &buffer, wait == .zero ? buffer.count : 1)
                guard count > 0, send(client, buffer, count) else { return }
                if wait > .zero { usleep(UInt32(clamping: wait.wholeNanoseconds / 1_000)) }
            }
        }
    }

    private func receive(_ descriptor: Int32, _ buffer: inout [UInt8], _ count: Int) -> Int {
        // Receives at most `count` bytes, and no more than the array holds.
        unsafe buffer.withUnsafeMutableBytes { unsafe Glibc.recv(descriptor, $0.baseAddress, min(count, $0.count), 0) }
    }

    private func send(_ descriptor: Int32, _ buffer: [UInt8], _ count: Int) -> Bool {
        unsafe buffer.withUnsafeBytes { bytes in
            unsafe Glibc.send(descriptor, bytes.baseAddress, min(count, bytes.count), Int32(MSG_NOSIGNAL))
                == count
        }
    }
}
