internal import LLHTTP
internal import LLJOSE

/// Merges the sources: flags override the environment, which overrides the file. Unknown names are refused.
package enum ConfigurationLoader {
    /// The file that is read by default, if it exists. It must belong to this user or root, and no other user may be
    /// able to change it (CWE-427): a folder that others can write to must not decide which logins are accepted.
    package static let defaultFile = "config/limited-login.json"

    /// A variable with this prefix and an unknown name is refused, so that a misspelt one cannot pass for a default.
    package static let environmentPrefix = "LIMITED_LOGIN_"

    /// The variable that names the configuration file; the only one that is no setting.
    static let fileVariable = "LIMITED_LOGIN_CONFIG"

    /// - Parameters:
    ///   - file: The file named by `--config`, if any.
    ///   - known: The file of the previous load, if any. It must still exist: without it, logins that it forbids would
    ///     be allowed.
    ///   - only: The settings to read, if a command needs no others: a fault in the others does not stop it.
    /// - Throws: All mistakes that the sources show; the content of other files is not read.
    package static func load(
        flags: [String: String],
        environment: [String: String],
        file: String?,
        again known: String? = nil,
        only: [SettingRow]? = nil,
        readsDefaultFile: Bool = true
    ) throws(ConfigurationError) -> ServiceConfiguration {
        var given = GivenSettings(rows: only ?? Settings.rows)
        let named = file ?? environment[fileVariable]
        guard named != "" else {
            let origin = file == nil ? ConfigurationOrigin.environment(fileVariable) : .flag("config")
            throw ConfigurationError(place: origin.description, reason: "the name of the file is empty")
        }
        var readFile: String?
        if named != nil || readsDefaultFile, let (path, bytes) = try contents(named: named, known) {
            try given.add(file: bytes, path)
            readFile = path
        }
        given.add(environment: environment)
        for row in given.rows.sorted(by: { $0.name < $1.name }) {
            if let value = flags[row.name] { given.add(value, row, .flag(row.flagName)) }
        }
        given.add(port: environment["PORT"])
        return try ServiceConfiguration(given, file: readFile, only: only)
    }

    private static func contents(named: String?, _ known: String?) throws(ConfigurationError) -> (String, [UInt8])? {
        let path = named ?? known ?? defaultFile
        do throws(FileContents.Failure) {
            let limit = GivenSettings.fileByteLimit
            return (path, try FileContents.read(path: path, limit: limit, mustBeOwn: named == nil))
        } catch {
            if named == nil, known == nil, error.isMissing { return nil }
            throw ConfigurationError(path, error)
        }
    }
}

/// The settings that the sources give, and the mistakes in them. A later source overrides an earlier one.
struct GivenSettings {
    /// A configuration is a few hundred bytes; 100,000 app ids fit into this.
    static let fileByteLimit = 4 * 1024 * 1024

    let rows: [SettingRow]
    private(set) var settings: [String: ConfigurationSetting] = [:]
    private(set) var mistakes = ConfigurationError()

    mutating func add(_ text: String, _ row: SettingRow, _ origin: ConfigurationOrigin) {
        settings[row.name] = nil
        do throws(SettingFault) {
            settings[row.name] = ConfigurationSetting(value: try row.kind.value(of: text), origin: origin)
        } catch {
            mistakes.add(origin.description, error.reason, row)
        }
    }

    mutating func add(environment: [String: String]) {
        let prefix = ConfigurationLoader.environmentPrefix
        for (name, value) in environment.sorted(by: { $0.key < $1.key })
        where name.hasPrefix(prefix) && name != ConfigurationLoader.fileVariable && !Self.isServiceLink(name, value) {
            let origin = ConfigurationOrigin.environment(name)
            if let row = rows.first(where: { $0.environmentName == name }) {
                add(value, row, origin)
            } else if !Settings.rows.contains(where: { $0.environmentName == name }) {
                let word = name.dropFirst(prefix.count).lowercased()
                refuse(unknown: word, origin.description, "there is no such setting") { $0.environmentName }
            }
        }
    }

    /// Adds the port to listen on, as Cloud Run, Heroku, Render and Fly set it.
    mutating func add(port: String?) {
        let listen = Settings.all.listen.row
        guard let port, settings[listen.name] == nil, rows.contains(where: { $0.name == listen.name }) else { return }
        let origin = ConfigurationOrigin.environment("PORT")
        if let number = UInt16(port), number > 0 {
            settings[listen.name] = ConfigurationSetting(value: .text("0.0.0.0:\(number)"), origin: origin)
        } else {
            mistakes.add(origin.description, "a port from 1 to 65535 is needed", listen)
        }
    }

    /// True if Kubernetes made the variable for a Service named `limited-login…` (Kubernetes, "Accessing the Service").
    private static func isServiceLink(_ name: String, _ value: String) -> Bool {
        let words = name.dropFirst(ConfigurationLoader.environmentPrefix.count)
            .split(separator: "_", omittingEmptySubsequences: false)
        let protocols = ["TCP", "UDP", "SCTP"]
        return words.indices.contains { start in
            let rest = Array(words[start...])
            if rest == ["SERVICE", "HOST"] || rest.starts(with: ["SERVICE", "PORT"]) { return true }
            if rest == ["PORT"] { return protocols.contains { value.hasPrefix("\($0.lowercased())://") } }
            return rest.count >= 3 && rest[0] == "PORT" && UInt16(rest[1]) != nil && protocols.contains(String(rest[2]))
        }
    }

    /// Adds the mistake of an unknown name, and asks after the setting that was probably meant: at most two edits away,
    /// with or without `_file`; `-` and `_` count as the same.
    private mutating func refuse(
        unknown name: String,
        _ place: String,
        _ reason: String,
        _ spelling: (SettingRow) -> String
    ) {
        func stem(_ name: String) -> String { name.hasSuffix("_file") ? String(name.dropLast(5)) : name }
        let folded = String(name.lowercased().map { $0 == "-" ? "_" : $0 })
        let nearest =
            Settings.rows.first { Spelling.isNear(folded, $0.name, edits: 2) }
            ?? Settings.rows.first { Spelling.isNear(stem(folded), stem($0.name), edits: 2) }
        let isValue = nearest?.kind == .secretFile && !name.hasSuffix("file")
        let question = nearest.map { "; did you mean \(spelling($0))?\(isValue ? " Secrets stand in files" : "")" }
        mistakes.add(place, reason + (question ?? ""), nearest)
    }

    /// Adds the settings of a configuration file: one JSON object with members named as in ``Settings``. `Codable` would
    /// not detect a repeated member.
    mutating func add(file bytes: [UInt8], _ path: String) throws(ConfigurationError) {
        var document = JSONDocument(limits: JSONLimits(byteCount: Self.fileByteLimit, nodeCount: 262_144))
        do throws(JSONError) {
            try document.parse(bytes.span)
        } catch {
            throw Self.refusal(error, bytes, path)
        }
        guard document.kind(document.root) == .object else {
            throw ConfigurationError(place: path, reason: "the file must hold one JSON object")
        }
        for name in document.children(of: document.root) {
            let member = document.string(name, in: bytes.span)
            guard let row = rows.first(where: { $0.name == member }) else {
                if !Settings.rows.contains(where: { $0.name == member }) {
                    refuse(unknown: member, path, "unknown key '\(member)'") { "'\($0.name)'" }
                }
                continue
            }
            let origin = ConfigurationOrigin.file(path: path, member: member)
            // null and an empty list mean "not set", so that a file can show every key.
            if document.kind(name + 1) == .null { continue }
            do throws(SettingFault) {
                let value = try Self.value(name + 1, of: row.kind, in: document, bytes)
                if value != .list([]) { settings[member] = ConfigurationSetting(value: value, origin: origin) }
            } catch {
                mistakes.add(origin.description, error.reason, row)
            }
        }
    }

    /// The error of the reader: the place in lines and columns from 1, and the reason.
    private static func refusal(_ error: JSONError, _ bytes: [UInt8], _ path: String) -> ConfigurationError {
        let lines = bytes.prefix(error.offset).split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        var reason = "the file is not valid JSON: \(error.reason.rawValue)"
        if error.reason == .unexpectedByte {
            reason +=
                "; names and texts stand in double quotes, no comma stands before a closing bracket, and JSON has no comments"
        } else if error.reason == .repeatedMember {
            let name = bytes.dropFirst(error.offset + 1).prefix { $0 != UInt8(ascii: "\"") }
            reason = "the member '\(String(decoding: name, as: UTF8.self))' comes twice"
        }
        let place = "\(path), line \(lines.count), column \((lines.last?.count ?? 0) + 1)"
        return ConfigurationError(place: place, reason: reason)
    }

    private static func value(
        _ node: Int,
        of kind: SettingKind,
        in document: borrowing JSONDocument,
        _ bytes: [UInt8]
    ) throws(SettingFault) -> ConfigurationValue {
        switch (document.kind(node), kind) {
        case (.string, .list), (.string, .integer): throw SettingFault(kind.wording.need)
        case (.string, _): return try kind.value(of: document.string(node, in: bytes.span))
        case (.number, _) where kind.range != nil:
            guard let number = document.integer(node, in: bytes.span) else {
                throw SettingFault("a whole number is needed")
            }
            return .integer(Int(number))
        case (.array, .list):
            var values: [String] = []
            for element in document.children(of: node) {
                guard document.kind(element) == .string else {
                    throw SettingFault("the list may hold strings alone: write each in double quotes, as in [\"123\"]")
                }
                values.append(document.string(element, in: bytes.span))
            }
            return .list(values)
        default: throw SettingFault(kind.wording.need)
        }
    }
}

package enum Spelling {
    /// True if one word becomes the other by at most `edits` letters added, left out or replaced.
    package static func isNear(_ one: String, _ other: String, edits: Int) -> Bool {
        let (a, b) = (Array(one), Array(other))
        guard abs(a.count - b.count) <= edits else { return false }
        var row = Array(0...b.count)
        for (i, left) in a.enumerated() {
            var previous = row
            previous[0] = i + 1
            for (j, right) in b.enumerated() {
                previous[j + 1] = min(row[j] + (left == right ? 0 : 1), row[j + 1] + 1, previous[j] + 1)
            }
            row = previous
        }
        return row[b.count] <= edits
    }
}
