internal import Glibc
package import LLSockets

/// Writes log lines to a descriptor on a thread of its own, so that no other thread ever waits for the reader of the log.
///
/// Lines wait in a bounded queue. A line that does not fit, or that the descriptor does not take, is dropped and counted; one
/// line tells how many, once lines are written again.
package final class LogWriter: Sendable {
    package enum Share: Sendable {
        /// Lines of the audit may fill the queue.
        case audit
        /// Other lines may fill a quarter of it, so that a flood of them leaves room for the audit.
        case other

        var byteLimit: Int { self == .audit ? LogWriter.byteLimit : LogWriter.byteLimit / 4 }
    }

    /// The most bytes that wait: 1 MiB, some 4,000 lines of the audit.
    static let byteLimit = 1_048_576
    /// One write: 4 KiB (PIPE_BUF), which a pipe takes as a whole (pipe(7)). A longer line is written alone.
    private static let chunkBytes = 4_096
    /// Lines that are dropped while others are written are told of once a second.
    private static let tellingPause: Duration = .seconds(1)

    private struct State {
        var chunks: [[UInt8]] = []
        /// Bytes in `chunks`, and those being written.
        var bytes = 0
        var dropped = 0
        var told = 0
        var tellAgainAt = MonotonicInstant(nanoseconds: 0)
        /// True if the last write succeeded.
        var canWrite = true
        var isWriting = false
        /// The thread waits for a line.
        var isAsleep = false
    }

    private enum Work {
        case lines([UInt8])
        /// To tell that so many lines were dropped.
        case telling(Int)
    }

    private let descriptor: Int32
    private let state = Monitor(State())

    package init(descriptor: Int32) { self.descriptor = descriptor }

    /// Starts the thread, which lives as long as the process.
    /// - Parameter line: the line that tells how many were dropped, its line feed included.
    /// - Returns: False if the system has no thread left.
    package func start(tellingOfDropped line: @escaping @Sendable (Int) -> [UInt8]) -> Bool {
        LoopQueue.start("log-writer") { [self] in
            // Whether the last write ended within a line.
            var isWithinLine = false
            while true {
                switch next() {
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

    /// Takes a line, its line feed included; never waits.
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
        if mustWake { state.wake() }
    }

    /// How many lines were dropped since the start.
    package var droppedLines: Int { state.withLock { $0.dropped } }

    /// Waits until all lines are written, or until `deadline`.
    package func flush(until deadline: MonotonicInstant) {
        state.wait { state in
            let isTold = state.told == state.dropped || !state.canWrite
            if state.chunks.isEmpty && !state.isWriting && isTold { return .done(()) }
            return MonotonicClock.now() < deadline ? .wait(until: deadline) : .done(())
        }
    }
}

/// The thread.
extension LogWriter {
    private static let lineFeed: UInt8 = 0x0A

    private func next() -> Work {
        state.wait { state in
            let dropped = state.dropped - state.told
            let mustTell = dropped > 0 && state.canWrite
            if mustTell, state.chunks.isEmpty || MonotonicClock.now() >= state.tellAgainAt {
                state.tellAgainAt = MonotonicClock.now() + Self.tellingPause
                state.isWriting = true
                return .done(.telling(dropped))
            }
            guard let chunk = state.chunks.first else {
                state.isAsleep = true
                return .wait(until: .never)
            }
            state.chunks.removeFirst()
            state.isWriting = true
            return .done(.lines(chunk))
        }
    }

    /// - Parameter told: how many dropped lines were told of; nil where none were, or could not be.
    private func finish(_ bytes: Int, dropped: Int, told: Int? = nil) {
        let isDone = state.withLock { state in
            state.bytes -= bytes
            state.dropped += dropped
            state.told += told ?? 0
            state.canWrite = bytes > 0 ? dropped == 0 : told != nil
            state.isWriting = false
            return state.chunks.isEmpty
        }
        if isDone { state.wake() }
    }

    /// Writes for as long as it takes.
    /// - Returns: How many bytes were written; fewer than all where the descriptor takes no more.
    private func write(_ bytes: [UInt8], after isWithinLine: inout Bool) -> Int {
        if isWithinLine, put([Self.lineFeed]) == 1 { isWithinLine = false }
        let written = put(bytes)
        if written > 0 { isWithinLine = bytes[written - 1] != Self.lineFeed }
        return written
    }

    private func put(_ bytes: [UInt8]) -> Int {
        var written = 0
        while written < bytes.count {
            // Bounds: 0 <= written < count, so the rest of the array is what may be read.
            let count = unsafe bytes.withUnsafeBytes { all in
                unsafe Glibc.write(descriptor, all.baseAddress.map { unsafe $0 + written }, all.count - written)
            }
            if count > 0 {
                written += count
            } else if count < 0, errno == EAGAIN {
                // A user of the descriptor made it non-blocking, and that holds for all its users.
                let interest = (descriptor: descriptor, wantsInput: false, wantsSpace: true)
                _ = BlockingWait.wait(for: [interest], until: .never)
            } else if count == 0 || errno != EINTR {
                return written
            }
        }
        return written
    }
}
