internal import Dispatch
internal import Glibc
package import LLHTTP

/// Writes log lines to a descriptor on its own queue, so that no other queue waits for the reader of the log.
///
/// Lines wait in a bounded queue. A line that does not fit, or that the descriptor does not accept, is dropped and
/// counted. When writing succeeds again, one line reports the number of dropped lines.
package final class LogWriter: Sendable {
    package enum Share: Sendable {
        /// Audit lines may fill the whole queue.
        case audit
        /// Other lines may fill a quarter of the queue, so that a flood of them leaves room for audit lines.
        case other

        var byteLimit: Int { self == .audit ? LogWriter.byteLimit : LogWriter.byteLimit / 4 }
    }

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
        var isWriting = false
        var isAsleep = false
        var flushes: [DispatchSemaphore] = []

        /// True if no line waits, and the reader knows of all that were dropped or reads no more.
        var isFlushed: Bool { chunks.isEmpty && !isWriting && (told == dropped || !canWrite) }
    }

    private enum Work {
        case lines([UInt8])
        case telling(Int)
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
                switch next() {
                case nil: hasLine.wait()
                case .lines(let bytes):
                    let written = write(bytes, after: &isWithinLine)
                    finish(bytes.count, dropped: bytes[written...].count { $0 == Self.lineFeed })
                case .telling(let count):
                    let bytes = line(count)
                    let isTold = write(bytes, after: &isWithinLine) == bytes.count
                    finish(0, dropped: 0, told: isTold ? count : nil)
                }
            }
        }
    }

    /// Queues a line, including its line feed; never waits.
    package func write(_ line: [UInt8], _ share: Share) {
        let mustWake = state.withLock { state in
            guard state.bytes + line.count <= share.byteLimit else {
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
            defer { state.isAsleep = false }
            return state.isAsleep
        }
        if mustWake { hasLine.signal() }
    }

    package var droppedLines: Int { state.withLock { $0.dropped } }

    package func flush(until deadline: MonotonicInstant) {
        let flushed = DispatchSemaphore(value: 0)
        let waits = state.withLock { state in
            if !state.isFlushed { state.flushes.append(flushed) }
            return !state.isFlushed
        }
        let left = deadline.nanoseconds(since: MonotonicClock.now())
        if waits { _ = flushed.wait(timeout: .now() + .nanoseconds(Int(clamping: left))) }
    }
}

extension LogWriter {
    private static let lineFeed: UInt8 = 0x0A

    private func next() -> Work? {
        state.withLock { state in
            let dropped = state.dropped - state.told
            let mustTell = dropped > 0 && state.canWrite
            if mustTell, state.chunks.isEmpty || MonotonicClock.now() >= state.tellAgainAt {
                state.tellAgainAt = MonotonicClock.now() + Self.tellingPause
                state.isWriting = true
                return .telling(dropped)
            }
            guard let chunk = state.chunks.first else {
                state.isAsleep = true
                return nil
            }
            state.chunks.removeFirst()
            state.isWriting = true
            return .lines(chunk)
        }
    }

    /// - Parameter told: The number of dropped lines that were reported; nil if the write was no report, or failed.
    private func finish(_ bytes: Int, dropped: Int, told: Int? = nil) {
        let flushes = state.withLock { state -> [DispatchSemaphore] in
            state.bytes -= bytes
            state.dropped += dropped
            state.told += told ?? 0
            state.canWrite = bytes > 0 ? dropped == 0 : told != nil
            state.isWriting = false
            guard state.isFlushed else { return [] }
            defer { state.flushes = [] }
            return state.flushes
        }
        for flush in flushes { flush.signal() }
    }

    /// Writes all bytes, and waits until the descriptor accepts them.
    /// - Returns: The number of bytes written; fewer than all if the descriptor accepts no more.
    private func write(_ bytes: [UInt8], after isWithinLine: inout Bool) -> Int {
        if isWithinLine, put([Self.lineFeed]) == 1 { isWithinLine = false }
        let written = put(bytes)
        if written > 0 { isWithinLine = bytes[written - 1] != Self.lineFeed }
        return written
    }

    private func put(_ bytes: [UInt8]) -> Int {
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
