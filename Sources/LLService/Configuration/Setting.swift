internal import LLHTTP

/// A setting with a value of the type `Value`. ``Settings`` has all settings.
package struct Setting<Value: Sendable>: AnySetting {
    package var row: SettingRow
    let standard: Value
}

package protocol AnySetting: Sendable {
    var row: SettingRow { get }
}

/// The facts of a setting. Flags, environment, file, `check-config`, reload and the documents follow from them.
package struct SettingRow: Sendable {
    /// The name in the file. The environment variable and the flag are derived from it.
    package let name: String
    package let kind: SettingKind
    let standard: ConfigurationValue?
    fileprivate(set) var none = "none"
    package fileprivate(set) var reload = SettingReload.needsRestart
    package fileprivate(set) var summary = ""
    /// The feature without which the setting has no effect.
    fileprivate(set) var feature: SettingFeature?
    /// The words of a choice from the strictest, if a verdict rests on it.
    fileprivate(set) var strictness: [String] = []
    /// The form of a value that may be shown: without secrets.
    fileprivate var hiding: @Sendable (String) -> String = { $0 }
    let read: @Sendable (ConfigurationValue) throws(SettingFault) -> any Sendable

    package var environmentName: String { ConfigurationLoader.environmentPrefix + name.uppercased() }

    package var flagName: String { String(name.map { $0 == "_" ? "-" : $0 }) }

    package var defaultText: String { standard.map(kind.text) ?? none }

    /// The value in the form that may be shown: its secret parts are left out.
    package func shown(_ value: ConfigurationValue) -> String { hiding(kind.text(of: value)) }
}

/// Reads the text of a value.
typealias SettingReader<Value> = @Sendable (String) throws(SettingFault) -> Value

struct SettingFault: Error {
    let reason: String

    init(_ reason: String) { self.reason = reason }

    /// A reason that quotes the value except for its secret part.
    init(_ value: String, _ reason: String) { self.init("'\(value.withoutUserInformation)' \(reason)") }
}

/// A feature that several settings belong to. The text is the state of a service without it.
package enum SettingFeature: String, Sendable {
    case gateway = "gateway is not enabled: no route uses it"
    case webhook = "callbacks_url is not: the backend is told of no callback"
    case tokens = "issuer is not: no tokens are issued"
}

package enum SettingKind: Sendable, Equatable {
    /// Strings; separated by commas in flags and the environment, an array in the file.
    case list
    case text
    case file
    /// The path of a file that only the service's user should read or write.
    case secretFile
    case integer(ClosedRange<Int>)
    /// A time in whole seconds within a range; a number, or one with its unit: `90s`, `5m`, `1h`, `2d`.
    case duration(ClosedRange<Int>)
    /// A size in bytes within a range; a number, or one with its unit: `KiB`, `MiB`, `GiB`, `TiB`.
    case size(ClosedRange<Int>)
    case choice([String])

    /// The message for a value of another kind in the file, and the placeholder of the value in the usage.
    package var wording: (need: String, placeholder: String) {
        switch self {
        case .list: ("a list of strings is needed, as in [\"123\"]", "list")
        case .text: ("a string is needed", "text")
        case .file, .secretFile: ("a string is needed", "file")
        case .integer: ("a whole number without quotation marks is needed", "number")
        case .duration: ("a time is needed: 90, or \"90s\"", "time")
        case .size: ("a size is needed: \"64MiB\", or its bytes", "size")
        case .choice(let words):
            ("one of these strings is needed: \(words.joined(separator: ", "))", words.joined(separator: "|"))
        }
    }

    package func text(of value: ConfigurationValue) -> String {
        switch value {
        case .list(let values): values.joined(separator: ",")
        case .text(let text): text
        case .integer(let number):
            if case .size = self { withUnit(number) } else { String(number) }
        }
    }

    package var range: ClosedRange<Int>? {
        switch self {
        case .integer(let range), .duration(let range), .size(let range): range
        default: nil
        }
    }

    func withUnit(_ number: Int) -> String {
        guard let unit = units.last(where: { number % $0.size == 0 && number > 0 }) else { return String(number) }
        return "\(number / unit.size)\(unit.suffix)"
    }

    var units: [(suffix: String, size: Int)] {
        switch self {
        case .duration: [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400)]
        case .size: [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)]
        default: []
        }
    }
}

/// The effect of a reload; the raw value is the word of the page `config/settings.md`.
package enum SettingReload: String, Sendable, CaseIterable {
    /// The new value applies to all that begins after the reload.
    case takesEffect = "yes"
    /// The file is read again, under another name if it has one. A reload can neither add nor remove the file.
    case rereads = "content"
    /// The same, but a reload may add the file. It may not remove it, because the file guards the service.
    case guards = "content, added"
    case needsRestart = ""

    /// The reason why a reload may not make this change; nil if it may.
    func refusal(_ name: String, from old: ConfigurationValue?, to new: ConfigurationValue?) -> String? {
        switch self {
        case .takesEffect: return nil
        case .rereads where (old == nil) == (new == nil): return nil
        case .needsRestart where old == new: return nil
        case .guards:
            guard old != nil, new == nil else { return nil }
            return "the reload would take away \(name), which guards the service: that takes a restart"
        case .rereads, .needsRestart: return "a changed \(name) takes effect with a restart alone"
        }
    }
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

    /// The number of a text: digits, and a unit if the kind has units. Unlike in `Int("+5")`, a sign is a mistake here.
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

    func check(_ value: ConfigurationValue) throws(SettingFault) {
        switch value {
        case .list(let values):
            var seen = Set<String>()
            for value in values {
                guard !value.isEmpty else { throw SettingFault("the list has an empty element") }
                guard seen.insert(value).inserted else { throw SettingFault(value, "stands in the list twice") }
            }
        case .text(let text):
            guard !text.isEmpty else { throw SettingFault("the value is empty; leave the key out instead") }
            guard !text.utf8.contains(0) else { throw SettingFault("the value holds a NUL byte") }
            if case .choice(let words) = self, !words.contains(text) {
                throw SettingFault(text, "is none of \(words.joined(separator: ", "))")
            }
        case .integer(let number):
            if let range, !range.contains(number) {
                let bounds = "\(withUnit(range.lowerBound)) to \(withUnit(range.upperBound))"
                throw SettingFault("\(number) is outside \(bounds)")
            }
        }
    }
}

extension Setting {
    private init<Payload>(
        _ name: String,
        _ kind: SettingKind,
        _ standard: Value,
        _ text: ConfigurationValue?,
        _ read: @escaping @Sendable (Payload) throws(SettingFault) -> Value?
    ) {
        row = SettingRow(name: name, kind: kind, standard: text) { value throws(SettingFault) in
            try kind.check(value)
            guard let payload = value.payload as? Payload, let read = try read(payload) else {
                throw SettingFault(kind.wording.need)
            }
            return read
        }
        self.standard = standard
    }

    init(_ name: String, _ kind: SettingKind, _ standard: Int) where Value == Int {
        self.init(name, kind, standard, .integer(standard)) { (number: Int) in number }
    }

    /// A time within a range of seconds.
    init(_ name: String, _ range: ClosedRange<Int>, _ standard: Duration) where Value == Duration {
        self.init(name, .duration(range), standard, .integer(seconds(standard))) { (number: Int) in .seconds(number) }
    }

    init<Some: Sendable>(_ name: String, _ kind: SettingKind) where Value == Some? {
        self.init(name, kind, nil, nil) { (value: Some) in .some(value) }
    }

    /// A text with a default.
    /// - Parameter text: The default's text; nil for its description.
    init(_ name: String, _ standard: Value, text: String? = nil, _ read: @escaping SettingReader<Value>) {
        self.init(name, .text, standard, .text(text ?? "\(standard)"), read)
    }

    init<Some: Sendable>(_ name: String, _ read: @escaping SettingReader<Some>) where Value == Some? {
        self.init(name, .text, nil, nil, read)
    }

    init<Element: Sendable>(_ name: String, _ standard: [Element] = [], each read: @escaping SettingReader<Element>)
    where Value == [Element] {
        let text = standard.isEmpty ? nil : ConfigurationValue.list(standard.map { "\($0)" })
        self.init(name, .list, standard, text) { (texts: [String]) throws(SettingFault) in try texts.map(read) }
    }

    /// A choice of words; the first is the default.
    init(_ name: String, _ words: [String], isTrueIf word: String) where Value == Bool {
        self.init(name, .choice(words), word == words[0], .text(words[0])) { (text: String) in text == word }
    }

    init(_ name: String, _ standard: Value) where Value: RawRepresentable<String> & CaseIterable {
        let kind = SettingKind.choice(Value.allCases.map(\.rawValue))
        self.init(name, kind, standard, .text(standard.rawValue), Value.init(rawValue:))
    }

    // The effect of a reload, and the purpose in one sentence.
    func atOnce(_ summary: String) -> Setting { with { ($0.reload, $0.summary) = (.takesEffect, summary) } }
    func reread(_ summary: String) -> Setting { with { ($0.reload, $0.summary) = (.rereads, summary) } }
    func guarding(_ summary: String) -> Setting { with { ($0.reload, $0.summary) = (.guards, summary) } }
    func restart(_ summary: String) -> Setting { with { $0.summary = summary } }

    /// The text in place of a value, for a setting without one.
    func ifUnset(_ text: String) -> Setting { with { $0.none = text } }

    func part(of feature: SettingFeature) -> Setting { with { $0.feature = feature } }

    func fromStrictest(_ words: [String]) -> Setting { with { $0.strictness = words } }

    func hiding(_ hiding: @escaping @Sendable (String) -> String) -> Setting { with { $0.hiding = hiding } }

    private func with(_ change: (inout SettingRow) -> Void) -> Setting {
        var setting = self
        change(&setting.row)
        return setting
    }
}

func seconds(_ time: Duration) -> Int { Int(clamping: time.components.seconds) }
