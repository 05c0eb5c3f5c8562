package import LLHTTP

/// The origin of a value. The order of precedence is flags, environment, file, default.
package enum ConfigurationOrigin: Sendable, Equatable {
    case flag(String)
    case environment(String)
    case file(path: String, member: String)

    package var description: String {
        switch self {
        case .flag(let name): "--\(name)"
        case .environment(let name): "environment variable \(name)"
        case .file(let path, let member): "\(path): \(member)"
        }
    }

    func error(_ reason: String) -> ConfigurationError { ConfigurationError(place: description, reason: reason) }
}

package enum ConfigurationValue: Sendable, Equatable {
    case list([String])
    case text(String)
    case integer(Int)

    var payload: any Sendable {
        switch self {
        case .list(let texts): texts
        case .text(let text): text
        case .integer(let number): number
        }
    }
}

package struct ConfigurationSetting: Sendable, Equatable {
    package let value: ConfigurationValue
    package let origin: ConfigurationOrigin
}

extension ConfigurationSetting {
    package init(text: String, row: SettingRow, origin: ConfigurationOrigin) throws(ConfigurationError) {
        let value: ConfigurationValue
        switch row.kind {
        case .list:
            // The text is empty after `A=$UNSET`.
            guard !text.isEmpty else { throw origin.error("the value is empty") }
            let parts = text.split(separator: ",", omittingEmptySubsequences: false).map { Self.trimmed($0) }
            guard !parts.contains("") else { throw origin.error("the list has an empty element") }
            value = .list(parts)
        case .integer, .duration, .size: value = .integer(try Self.number(text, row.kind, origin))
        case .text, .file, .secretFile, .choice: value = .text(text)
        }
        self.init(value: value, origin: origin)
    }

    /// A decimal number with digits only. `Int("+5")` would be 5, but a sign or a space is a mistake here.
    static func decimal(_ text: String) -> Int? {
        guard !text.isEmpty, text.utf8.count <= 12, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        return Int(text)
    }

    static func number(
        _ text: String,
        _ kind: SettingKind,
        _ origin: ConfigurationOrigin
    ) throws(ConfigurationError) -> Int {
        let unit = kind.units.first { text.hasSuffix($0.suffix) }
        guard let count = decimal(String(text.dropLast(unit?.suffix.count ?? 0))),
            // Twelve digits of GiB are above the greatest `Int`.
            case let (number, isTooLarge) = count.multipliedReportingOverflow(by: unit?.size ?? 1), !isTooLarge
        else {
            let reason =
                switch kind {
                case .duration:
                    "no time: a whole number of seconds is needed, or one with its unit (90s, 5m, 1h, 2d)"
                case .size:
                    "no size: a whole number of bytes is needed, or one with its unit (512KiB, 64MiB, 1GiB)"
                default: "not a whole number"
                }
            throw origin.error("'\(text)' is \(reason)")
        }
        return number
    }

    private static func trimmed(_ part: Substring) -> String {
        let start = part.drop { $0 == " " }
        guard let end = start.lastIndex(where: { $0 != " " }) else { return "" }
        return String(start[...end])
    }
}

/// A mistake that stops the start, and the other mistakes of the same configuration.
package struct ConfigurationError: Error, Sendable, Equatable, CustomStringConvertible {
    package let place: String
    package let reason: String
    /// The name of the setting at fault, or probably meant; nil if the mistake is of none.
    var name: String?
    /// The name of the setting that the one at fault depends on, if the two do not go together.
    var other: String?
    private var others: [ConfigurationError] = []

    package init(place: String, reason: String, name: String? = nil, other: String? = nil) {
        self.place = place
        self.reason = reason
        self.name = name
        self.other = other
    }

    /// All mistakes of a configuration as one error; nil if there are none.
    init?(all: [ConfigurationError]) {
        guard let first = all.first else { return nil }
        self = first
        others = Array(all.dropFirst())
    }

    func of(_ row: SettingRow?) -> ConfigurationError {
        ConfigurationError(place: place, reason: reason, name: row?.name)
    }

    package var sentences: [String] { ["\(place): \(reason)"] + others.flatMap(\.sentences) }

    package init(_ path: String, _ failure: FileContents.Failure) {
        guard Self.isPath(path) else {
            self.init(
                place: "the value",
                reason: "it names no file; it is not shown, because it may be the secret itself: write that into a "
                    + "file of mode 0600, and name the file"
            )
            return
        }
        self.init(place: path, reason: "the file cannot be read: \(failure.reason)")
    }

    /// True if a text is certainly a path and no secret. Base64 and hexadecimal digits are none.
    private static func isPath(_ text: String) -> Bool {
        guard text.utf8.count <= 1_024, !text.hasSuffix("="), !text.contains(where: \.isWhitespace) else {
            return false
        }
        if ["/", "./", "../"].contains(where: text.hasPrefix) { return true }
        return text.contains { "/.".contains($0) } || !text.contains(where: \.isNumber) && text.utf8.count < 32
    }

    package var description: String { sentences.joined(separator: "; ") }
}
