internal import Dispatch
internal import Glibc
package import LLHTTP

/// Writes log lines to a descriptor on its own queue, so that no other queue waits for the reader of the log. A line that
/// does not fit into the queue, or that the descriptor does not accept, is dropped and counted; when writing succeeds
/// again, one line reports their number.
package final class LogWriter: Sendable {
    /// The greatest size of the queue in bytes: 1 MiB, about 4,000 audit lines.
    static let byteLimit = 1_048_576
    /// The size of one write: 4 KiB (PIPE_BUF), which a pipe accepts as a whole (pipe(7)). A longer line is written
    /// alone.
    private static let chunkBytes = 4_096
    /// While other lines are written, dropped lines are reported once a second.
    private static let tellingPause: Duration = .seconds(1)

    private struct State {
        var chunks: [[UInt8]] = []
        /// The bytes in `chunks` and those being written.
        var bytes = 0
        var dropped = 0
        var told = 0
        var tellAgainAt = MonotonicInstant(nanoseconds: 0)
        var canWrite = true

        /// True if no line waits, and the reader knows of all that were dropped or reads no more.
        var isFlushed: Bool { bytes == 0 && (told == dropped || !canWrite) }
    }

    private let descriptor: Int32
    private let state = Locked(State())
    private let hasLine = DispatchSemaphore(value: 0)

    package init(descriptor: Int32) { self.descriptor = descriptor }

    /// Starts the queue, which keeps its thread as long as the process lives: a line never waits for a new thread.
    /// - Parameter line: Makes the line that reports the number of dropped lines, including its line feed.
    package func start(tellingOfDropped line: @escaping @Sendable (Int) -> [UInt8]) {
        DispatchQueue(label: "log-writer").async { [self] in
            // True if the last write ended inside a line.
            var isWithinLine = false
            while true {
                guard let (chunk, told) = next() else {
                    hasLine.wait()
                    continue
                }
                let bytes = chunk ?? line(told)
                if isWithinLine, Self.write([Self.lineFeed], to: descriptor) == 1 { isWithinLine = false }
                let written = Self.write(bytes, to: descriptor)
                if written > 0 { isWithinLine = bytes[written - 1] != Self.lineFeed }
                let lost = bytes[written...].count { $0 == Self.lineFeed }
                state.withLock { state in
                    state.bytes -= chunk?.count ?? 0
                    state.dropped += chunk == nil ? 0 : lost
                    state.told += lost == 0 ? told : 0
                    state.canWrite = lost == 0
                }
            }
        }
    }

    /// Queues a line, including its line feed; never waits. Audit lines may fill the whole queue, and others a quarter of
    /// it, so that a flood of them leaves room for audit lines.
    package func write(_ line: [UInt8], isAudit: Bool) {
        let isTaken = state.withLock { state in
            guard state.bytes + line.count <= (isAudit ? Self.byteLimit : Self.byteLimit / 4) else {
                state.dropped += 1
                return false
            }
            let last = state.chunks.count - 1
            if last >= 0, state.chunks[last].count + line.count <= Self.chunkBytes {
                state.chunks[last].append(contentsOf: line)
            } else {
                state.chunks.append(line)
            }
            state.bytes += line.count
            return true
        }
        if isTaken { hasLine.signal() }
    }

    package var droppedLines: Int { state.withLock { $0.dropped } }

    package func flush(until deadline: MonotonicInstant) {
        // 1 ms: only the program's end waits here.
        while !state.withLock({ $0.isFlushed }), MonotonicClock.now() < deadline { usleep(1_000) }
    }

    private static let lineFeed: UInt8 = 0x0A

    /// The lines to write, or the number of dropped lines to report in their place; nil if there is nothing to do.
    private func next() -> (chunk: [UInt8]?, told: Int)? {
        state.withLock { state in
            let dropped = state.dropped - state.told
            let mustTell = dropped > 0 && state.canWrite
            if mustTell, state.chunks.isEmpty || MonotonicClock.now() >= state.tellAgainAt {
                state.tellAgainAt = MonotonicClock.now() + Self.tellingPause
                return (nil, dropped)
            }
            return state.chunks.isEmpty ? nil : (state.chunks.removeFirst(), 0)
        }
    }

    /// Writes all bytes without a buffer, and waits until the descriptor accepts them.
    /// - Returns: The number of bytes written; fewer than all if the descriptor accepts no more.
    package static func write(_ bytes: [UInt8], to descriptor: Int32) -> Int {
        var written = 0
        while written < bytes.count {
            // Bounds: 0 <= written < count, so the pointer and the length stay inside the array.
            let count = unsafe bytes.withUnsafeBytes { all in
                unsafe Glibc.write(descriptor, all.baseAddress.map { unsafe $0 + written }, all.count - written)
            }
            if count > 0 {
                written += count
            } else if count < 0, errno == EAGAIN {
                // Another process made the descriptor non-blocking; the flag applies to all processes that share it.
                let interest = (descriptor: descriptor, wantsInput: false, wantsSpace: true)
                _ = BlockingWait.wait(for: [interest], until: .never)
            } else if count == 0 || errno != EINTR {
                return written
            }
        }
        return written
    }
}
