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

extension SettingKind {
    /// The value of a text, as a flag or a variable has it.
    func value(of text: String) throws(SettingFault) -> ConfigurationValue {
        switch self {
        case .list:
            // The text is empty after `A=$UNSET`.
            guard !text.isEmpty else { throw SettingFault("the value is empty") }
            let parts = text.split(separator: ",", omittingEmptySubsequences: false).map { part in
                String(part.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
            }
            guard !parts.contains("") else { throw SettingFault("the list has an empty element") }
            return .list(parts)
        case .integer, .duration, .size: return .integer(try number(text))
        case .text, .file, .secretFile, .choice: return .text(text)
        }
    }

    /// The number of a text: digits alone, and a unit if the kind has units. `Int("+5")` would be 5, but a sign or a
    /// space is a mistake here.
    private func number(_ text: String) throws(SettingFault) -> Int {
        let unit = units.first { text.hasSuffix($0.suffix) }
        let digits = text.dropLast(unit?.suffix.count ?? 0)
        guard digits.utf8.count <= 12, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let count = Int(digits),
            // Twelve digits of GiB are above the greatest `Int`.
            case let (number, isTooLarge) = count.multipliedReportingOverflow(by: unit?.size ?? 1), !isTooLarge
        else {
            let reason =
                switch self {
                case .duration:
                    "no time: a whole number of seconds is needed, or one with its unit (90s, 5m, 1h, 2d)"
                case .size:
                    "no size: a whole number of bytes is needed, or one with its unit (512KiB, 64MiB, 1GiB)"
                default: "not a whole number"
                }
            throw SettingFault("'\(text)' is \(reason)")
        }
        return number
    }
}

/// The mistakes of a configuration, or of a file that it names. They stop the start.
package struct ConfigurationError: Error, Sendable, Equatable, CustomStringConvertible {
    package private(set) var sentences: [String] = []
    /// The settings at fault, or probably meant.
    private var names: Set<String> = []

    init() {}

    package init(place: String, reason: String) { add(place, reason, nil) }

    mutating func add(_ place: String, _ reason: String, _ row: SettingRow?) {
        sentences.append("\(place): \(reason)")
        if let row { names.insert(row.name) }
    }

    /// Adds a mistake, unless it only follows from another one of the same settings.
    mutating func addNew(_ place: String, _ reason: String, _ row: SettingRow, beside other: SettingRow? = nil) {
        guard names.isDisjoint(with: [row, other].compactMap(\.?.name)) else { return }
        add(place, reason, row)
    }

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
