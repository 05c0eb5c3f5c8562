/// All there is to say about a setting: flags, environment, file, `check-config`, the reload, the configuration page and
/// the manual page follow from it.
package struct ConfigurationDefinition: Sendable {
    /// The shape and the bounds of the value.
    package let kind: ConfigurationKind
    /// What holds where it is not set.
    package let standard: ConfigurationDefault
    /// What a reload does with a new value.
    package let reload: ConfigurationReload
    /// One sentence on what it is for.
    package let summary: String

    init(
        _ kind: ConfigurationKind,
        default standard: ConfigurationDefault,
        reload: ConfigurationReload = .needsRestart,
        _ summary: String
    ) {
        self.kind = kind
        self.standard = standard
        self.reload = reload
        self.summary = summary
    }
}

/// What a setting's value looks like, and what bounds it.
package enum ConfigurationKind: Sendable, Equatable {
    /// Strings; separated by commas in flags and the environment, an array in the file.
    case list
    /// One string.
    case text
    /// The path of a file.
    case file
    /// The path of a file that nobody but the service's user should read or write.
    case secretFile
    /// A whole number within a range.
    case integer(ClosedRange<Int>)
    /// A time in whole seconds within a range; a number, or one with its unit: `90s`, `5m`, `1h`, `2d`.
    case duration(ClosedRange<Int>)
    /// A size in bytes within a range; a number, or one with its unit: `KiB`, `MiB`, `GiB`.
    case size(ClosedRange<Int>)
    /// One of a few words.
    case choice([String])

    /// The bounds of a number, a time or a size; nil for other kinds.
    var range: ClosedRange<Int>? {
        switch self {
        case .integer(let range), .duration(let range), .size(let range): range
        case .list, .text, .file, .secretFile, .choice: nil
        }
    }

    /// What stands for the value in the usage.
    package var placeholder: String {
        switch self {
        case .list: "list"
        case .text: "text"
        case .file, .secretFile: "file"
        case .integer: "number"
        case .duration: "time"
        case .size: "size"
        case .choice(let words): words.joined(separator: "|")
        }
    }

    /// A value as a person reads it.
    func text(of value: ConfigurationValue) -> String {
        switch value {
        case .list(let values): values.joined(separator: ",")
        case .text(let text): text
        case .integer(let bytes):
            if case .size = self, let unit = Self.sizeUnits.last(where: { bytes % $0.bytes == 0 && bytes > 0 }) {
                "\(bytes / unit.bytes)\(unit.suffix)"
            } else {
                String(bytes)
            }
        }
    }

    /// The units of a size, from the least.
    static let sizeUnits: [(suffix: String, bytes: Int)] = [
        ("KiB", 1_024), ("MiB", 1_048_576), ("GiB", 1_073_741_824),
    ]
}

/// What holds where a setting is not set.
package enum ConfigurationDefault: Sendable, Equatable {
    case value(ConfigurationValue)
    /// Nothing, and what that means.
    case nothing(String)

    static func list(_ values: [String]) -> Self { .value(.list(values)) }
    static func text(_ text: String) -> Self { .value(.text(text)) }
    static func number(_ number: Int) -> Self { .value(.integer(number)) }
    /// A time of whole seconds.
    static func time(_ time: Duration) -> Self { .number(Int(clamping: time.components.seconds)) }
}

/// What a reload (SIGHUP) does with a setting.
package enum ConfigurationReload: String, Sendable, CaseIterable {
    /// The new value is in force for what begins after the reload.
    case takesEffect = "at once"
    /// The file is read again, under another name if it has one. Whether there is one is settled at the start.
    case rereads = "content at once, on or off by a restart"
    /// The same, but a reload may also begin to use one. None may take it away: it guards the service.
    case guards = "content at once, taken away by a restart"
    /// A change is refused.
    case needsRestart = "by a restart"

    /// Why a reload may not change the setting so; nil where it may.
    func refusal(_ key: ConfigurationKey, from old: ConfigurationValue?, to new: ConfigurationValue?) -> String? {
        switch self {
        case .takesEffect: return nil
        case .rereads where (old == nil) == (new == nil): return nil
        case .needsRestart where old == new: return nil
        case .guards:
            guard old != nil, new == nil else { return nil }
            return "the reload would take away \(key.rawValue), which guards the service: that takes a restart"
        case .rereads, .needsRestart: return "a changed \(key.rawValue) takes effect with a restart alone"
        }
    }
}
