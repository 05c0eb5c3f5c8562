internal import Dispatch
internal import FoundationEssentials
internal import Glibc
package import LLHTTP
internal import LLJOSE
package import Logging
internal import Synchronization

/// Writes log lines to a descriptor on its own queue, so that no other queue waits for the reader of the log. Lines
/// that find no room in the queue or at the descriptor are dropped and counted; a later line reports the number.
package final class LogWriter: Sendable {
    /// The greatest size of the queue in bytes: 1 MiB, about 4,000 audit lines.
    static let byteLimit = 1_048_576
    /// The size of one write: 4 KiB (PIPE_BUF), which a pipe accepts as a whole (pipe(7)). A longer line goes alone.
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

/// Writes each log event as one line on standard error, as a JSON object or as text. In both formats no value can break
/// the line or control a terminal (``TerminalText``).
package struct LineLogHandler: LogHandler {
    package enum Format: String, Sendable { case json, text }

    /// The level of the switch, unless the logger has its own.
    package var logLevel: Logger.Level {
        get { ownLevel ?? levelSwitch.level }
        set { ownLevel = newValue }
    }

    package var metadata: Logger.Metadata = [:]
    private var ownLevel: Logger.Level?
    private let levelSwitch: LogLevelSwitch
    private let label: String
    private let format: Format
    private let write: @Sendable ([UInt8]) -> Void

    package init(label: String, level: LogLevelSwitch, format: Format, write: @escaping @Sendable ([UInt8]) -> Void) {
        self.label = label
        self.format = format
        self.write = write
        levelSwitch = level
    }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    package func log(event: LogEvent) {
        var facts = metadata
        if let own = event.metadata { facts.merge(own) { _, new in new } }
        write(line(event.level, event.message, facts))
    }

    package func line(_ level: Logger.Level, _ message: Logger.Message, _ facts: Logger.Metadata) -> [UInt8] {
        let sorted = facts.sorted { $0.key < $1.key }
        var line: [UInt8] = []
        let moment = Date().formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
        switch format {
        case .json:
            JSONWriter.raw("{", to: &line)
            JSONWriter.member("time", moment, to: &line)
            JSONWriter.member("level", level.rawValue, to: &line)
            JSONWriter.member("logger", label, to: &line)
            JSONWriter.member("message", "\(message)", to: &line)
            for (key, value) in sorted {
                JSONWriter.raw(",", to: &line)
                JSONWriter.string(key, to: &line)
                JSONWriter.raw(":", to: &line)
                JSONWriter.string("\(value)", to: &line)
            }
            JSONWriter.raw("}", to: &line)
        case .text:
            line.append(contentsOf: "\(moment) \(level.rawValue) \(message)".utf8)
            for (key, value) in sorted {
                line.append(contentsOf: " \(key)=".utf8)
                JSONWriter.string("\(value)", to: &line)
            }
        }
        let text = String(decoding: line, as: UTF8.self)
        return Array(((format == .json ? TerminalText.safe(json: text) : TerminalText.safe(text)) + "\n").utf8)
    }
}

/// The lowest level that is logged. All handlers share it, so that a reload can change it.
package final class LogLevelSwitch: Sendable {
    private let place = Atomic<Int>(0)

    package init(_ level: Logger.Level) { set(level) }

    package var level: Logger.Level { Logger.Level.allCases[place.load(ordering: .relaxed)] }

    package func set(_ level: Logger.Level) {
        place.store(Logger.Level.allCases.firstIndex(of: level) ?? 0, ordering: .relaxed)
    }
}

/// Makes text from outside safe: the terminal then obeys no control character and reorders no letters.
package enum TerminalText {
    /// The text on one line, with each control character replaced by U+FFFD.
    package static func safe(_ text: String) -> String { replacing(text) { _ in "\u{fffd}" } }

    /// The text with each control character except the line feed replaced by U+FFFD.
    package static func safe(lines text: String) -> String { replacing(text) { $0 == "\n" ? "\n" : "\u{fffd}" } }

    /// The same JSON with each control character escaped. Strings alone hold such characters, so no value changes.
    package static func safe(json text: String) -> String {
        // All control characters are below U+10000 and need four digits (RFC 8259 section 7).
        replacing(text) { "\\u" + String(0x10000 + $0.value, radix: 16).dropFirst() }
    }

    private static func replacing(_ text: String, _ replacement: (Unicode.Scalar) -> String) -> String {
        guard text.unicodeScalars.contains(where: isControl) else { return text }
        return text.unicodeScalars.reduce(into: "") { safe, scalar in
            safe += isControl(scalar) ? replacement(scalar) : String(scalar)
        }
    }

    /// C0, DEL and C1, line and paragraph separators, and the controls of bidirectional text (UAX #9, 2).
    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7F..<0xA0, 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }
}
