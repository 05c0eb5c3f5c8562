internal import FoundationEssentials
internal import LLJOSE
package import Logging
internal import Synchronization

/// Writes each log event as one line on standard error, as a JSON object or as text.
///
/// In both formats no value can break the line or control a terminal (``TerminalText``).
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

/// Makes text from outside safe for a terminal. A claim, a key ID or an argument may contain any character; the
/// terminal must neither obey control characters nor reorder letters.
package enum TerminalText {
    /// The text on one line, with each control character replaced by U+FFFD.
    package static func safe(_ text: String) -> String { replacing(text) { _ in "\u{fffd}" } }

    /// The text with each control character except the line feed replaced by U+FFFD.
    package static func safe(lines text: String) -> String { replacing(text) { $0 == "\n" ? "\n" : "\u{fffd}" } }

    /// The same JSON on one line, with each control character escaped. Control characters are only inside strings, so
    /// that no value changes.
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

    /// C0, DEL and C1, the line and paragraph separators, and the marks, embeddings, overrides and isolates of
    /// bidirectional text (UAX #9, 2).
    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7F..<0xA0, 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }
}
