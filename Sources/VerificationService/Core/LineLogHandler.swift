internal import FoundationEssentials
package import Logging
internal import Synchronization

/// Writes each log event as one line on standard error, as a JSON object or as text.
///
/// With every value the line stays one line that a terminal may show (``TerminalText``), in both formats.
package struct LineLogHandler: LogHandler {
    /// How a line looks.
    package enum Format: Sendable, Equatable {
        case json
        case text
    }

    /// The switch's level, unless a logger was given one of its own.
    package var logLevel: Logger.Level {
        get { ownLevel ?? levelSwitch.level }
        set { ownLevel = newValue }
    }

    package var metadata: Logger.Metadata = [:]
    package var metadataProvider: Logger.MetadataProvider?
    private var ownLevel: Logger.Level?
    private let levelSwitch: LogLevelSwitch
    private let label: String
    private let format: Format
    private let write: @Sendable ([UInt8]) -> Void

    /// - Parameter write: takes one whole line, its line feed included.
    package init(
        label: String,
        level: LogLevelSwitch,
        format: Format,
        write: @escaping @Sendable ([UInt8]) -> Void
    ) {
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
        if let provided = metadataProvider?.get() { facts.merge(provided) { _, new in new } }
        if let own = event.metadata { facts.merge(own) { _, new in new } }
        var line: [UInt8] = []
        let moment = Date().formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
        switch format {
        case .json: Self.json(moment, event, label, facts, to: &line)
        case .text: Self.text(moment, event, facts, to: &line)
        }
        let text = String(decoding: line, as: UTF8.self)
        write(Array(((format == .json ? TerminalText.safe(json: text) : TerminalText.safe(text)) + "\n").utf8))
    }

    private static func json(
        _ moment: String,
        _ event: LogEvent,
        _ label: String,
        _ facts: Logger.Metadata,
        to line: inout [UInt8]
    ) {
        JSONWriter.raw("{", to: &line)
        JSONWriter.member("time", moment, to: &line)
        JSONWriter.raw(",", to: &line)
        JSONWriter.member("level", event.level.rawValue, to: &line)
        JSONWriter.raw(",", to: &line)
        JSONWriter.member("logger", label, to: &line)
        JSONWriter.raw(",", to: &line)
        JSONWriter.member("message", "\(event.message)", to: &line)
        for (key, value) in facts.sorted(by: { $0.key < $1.key }) {
            JSONWriter.raw(",", to: &line)
            JSONWriter.string(key, to: &line)
            JSONWriter.raw(":", to: &line)
            JSONWriter.string("\(value)", to: &line)
        }
        JSONWriter.raw("}", to: &line)
    }

    private static func text(
        _ moment: String,
        _ event: LogEvent,
        _ facts: Logger.Metadata,
        to line: inout [UInt8]
    ) {
        line.append(contentsOf: "\(moment) \(event.level.rawValue) \(event.message)".utf8)
        for (key, value) in facts.sorted(by: { $0.key < $1.key }) {
            line.append(contentsOf: " \(key)=".utf8)
            JSONWriter.string("\(value)", to: &line)
        }
    }
}

/// The least severity that is logged, shared by all handlers, so that a reload can change it.
package final class LogLevelSwitch: Sendable {
    private let position: Atomic<Int>

    package init(_ level: Logger.Level) { position = Atomic(Self.position(of: level)) }

    /// The level in force.
    package var level: Logger.Level {
        let all = Logger.Level.allCases
        let index = position.load(ordering: .relaxed)
        return all.indices.contains(index) ? all[index] : .info
    }

    /// Puts another level in force.
    package func set(_ level: Logger.Level) { position.store(Self.position(of: level), ordering: .relaxed) }

    private static func position(of level: Logger.Level) -> Int { Logger.Level.allCases.firstIndex(of: level) ?? 0 }
}
