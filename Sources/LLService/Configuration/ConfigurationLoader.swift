internal import LLHTTP
internal import LLJOSE

package struct LoadedConfiguration: Sendable {
    package let configuration: ServiceConfiguration
    package let file: String?
}

/// Merges the sources: flags override the environment, which overrides the file, which overrides the defaults. Unknown
/// names are refused.
package enum ConfigurationLoader {
    /// The file that is read by default, if it exists. It must belong to this user or root, and no other user may be
    /// able to change it (CWE-427): a folder that others can write to must not decide which logins are accepted.
    package static let defaultFile = "config/limited-login.json"

    /// The prefix of every environment variable of the service. A variable with this prefix and an unknown name is
    /// refused, so that a misspelt one cannot pass for a default.
    package static let environmentPrefix = "LIMITED_LOGIN_"

    /// The variable that names the configuration file; the only one that is no setting.
    package static let fileVariable = "LIMITED_LOGIN_CONFIG"

    /// The variable with the port to listen on, as Cloud Run, Heroku, Render and Fly set it.
    private static let portVariable = "PORT"

    /// - Parameters:
    ///   - environment: The process's environment; names with the project's prefix must be known. `PORT` is the port of
    ///     `listen` if no other source sets that.
    ///   - file: The file named by `--config`, if any; it must then be readable.
    ///   - known: The file of the previous load, if any. It must still exist: without it, logins that it forbids would
    ///     be allowed.
    ///   - only: The settings to read, if a command needs no others: a fault in the others does not stop it.
    ///   - readsDefaultFile: True if ``defaultFile`` is read when no file is named.
    /// - Throws: All mistakes that the sources show; the content of other files is not read.
    package static func load(
        flags: [String: String],
        environment: [String: String],
        file: String?,
        again known: String? = nil,
        only: [SettingRow]? = nil,
        readsDefaultFile: Bool = true
    ) throws(ConfigurationError) -> LoadedConfiguration {
        var settings: [String: ConfigurationSetting] = [:]
        var mistakes: [ConfigurationError] = []
        let rows = only ?? Settings.rows
        let named = file ?? environment[fileVariable]
        guard named != "" else {
            let origin = file == nil ? ConfigurationOrigin.environment(fileVariable) : .flag("config")
            throw origin.error("the name of the file is empty")
        }
        var readFile: String?
        if named != nil || readsDefaultFile, let (path, bytes) = try contents(named: named, known) {
            settings = try ConfigurationFile.settings(of: bytes, path: path, rows, &mistakes)
            readFile = path
        }
        func add(_ row: SettingRow, _ text: String, _ origin: ConfigurationOrigin) {
            do throws(ConfigurationError) {
                settings[row.name] = try ConfigurationSetting(text: text, row: row, origin: origin)
            } catch {
                settings[row.name] = nil
                mistakes.append(error.of(row))
            }
        }
        for (name, value) in environment.sorted(by: { $0.key < $1.key })
        where name.hasPrefix(environmentPrefix) && name != fileVariable && !isServiceLink(name, value) {
            let origin = ConfigurationOrigin.environment(name)
            if let row = rows.first(where: { $0.environmentName == name }) {
                add(row, value, origin)
            } else if !Settings.rows.contains(where: { $0.environmentName == name }) {
                let word = name.dropFirst(environmentPrefix.count).lowercased()
                let nearest = ConfigurationFile.nearest(word)
                let hint = ConfigurationFile.hint(word, nearest) { $0.environmentName }
                mistakes.append(origin.error("there is no such setting\(hint)").of(nearest))
            }
        }
        for row in rows.sorted(by: { $0.name < $1.name }) {
            if let value = flags[row.name] { add(row, value, .flag(row.flagName)) }
        }
        let listen = Settings.all.listen.row
        if settings[listen.name] == nil, rows.contains(where: { $0.name == listen.name }),
            let port = environment[portVariable]
        {
            let origin = ConfigurationOrigin.environment(portVariable)
            if let number = UInt16(port), number > 0 {
                settings[listen.name] = ConfigurationSetting(value: .text("0.0.0.0:\(number)"), origin: origin)
            } else {
                mistakes.append(origin.error("a port from 1 to 65535 is needed").of(listen))
            }
        }
        let configuration = try configuration(settings, only, mistakes)
        return LoadedConfiguration(configuration: configuration, file: readFile)
    }

    /// Checks the settings. After a mistake it goes on without the setting at fault, to find the others too.
    private static func configuration(
        _ settings: [String: ConfigurationSetting],
        _ only: [SettingRow]?,
        _ mistakes: [ConfigurationError]
    ) throws(ConfigurationError) -> ServiceConfiguration {
        let checked: ServiceConfiguration
        do throws(ConfigurationError) {
            checked = try ServiceConfiguration(settings: settings, only: only)
        } catch {
            let faulty = Set(mistakes.compactMap(\.name))
            // A mistake that only follows from another one is left out.
            let follows = [error.name, error.other].contains { $0.map(faulty.contains) == true }
            let mistakes = follows ? mistakes : mistakes + [error]
            // Every setting but the app ids can be left out.
            let apps = Settings.all.appIDs.row
            let standIn = ConfigurationSetting(value: .list(["0"]), origin: .flag(apps.flagName))
            let instead = error.name == apps.name ? standIn : nil
            guard let name = error.name, settings[name] != instead else {
                throw ConfigurationError(all: mistakes) ?? error
            }
            var rest = settings
            rest[name] = instead
            return try configuration(rest, only, mistakes)
        }
        if let all = ConfigurationError(all: mistakes) { throw all }
        return checked
    }

    /// True if Kubernetes made the variable, for a Service named `limited-login` or `limited-login-redis` (Kubernetes,
    /// "Accessing the Service").
    private static func isServiceLink(_ name: String, _ value: String) -> Bool {
        let words = name.dropFirst(environmentPrefix.count).split(separator: "_", omittingEmptySubsequences: false)
        return words.indices.contains { start in
            let rest = Array(words[start...])
            if rest == ["SERVICE", "HOST"] || rest.starts(with: ["SERVICE", "PORT"]) { return true }
            if rest == ["PORT"] { return serviceProtocols.contains { value.hasPrefix("\($0.lowercased())://") } }
            return rest.count >= 3 && rest[0] == "PORT" && UInt16(rest[1]) != nil
                && serviceProtocols.contains(String(rest[2]))
        }
    }

    private static let serviceProtocols = ["TCP", "UDP", "SCTP"]

    private static func contents(
        named: String?,
        _ known: String?
    ) throws(ConfigurationError) -> (String, [UInt8])? {
        let path = named ?? known ?? defaultFile
        do throws(FileContents.Failure) {
            let limit = ConfigurationFile.sizeLimit
            return (path, try FileContents.read(path: path, limit: limit, mustBeOwn: named == nil))
        } catch {
            if named == nil, known == nil, error.isMissing { return nil }
            throw ConfigurationError(path, error)
        }
    }
}

/// The configuration file: one JSON object with members named as in `Settings`.
///
/// The project's own strict reader reads it, because `Codable` does not detect a repeated member.
enum ConfigurationFile {
    /// A configuration is a few hundred bytes; 100,000 app ids fit into this.
    static let sizeLimit = 4 * 1024 * 1024

    static func settings(
        of bytes: [UInt8],
        path: String,
        _ rows: [SettingRow],
        _ mistakes: inout [ConfigurationError]
    ) throws(ConfigurationError) -> [String: ConfigurationSetting] {
        // The limits hold 100,000 app ids.
        var document = JSONDocument(limits: JSONLimits(byteCount: sizeLimit, nodeCount: 262_144))
        do throws(JSONError) {
            try document.parse(bytes.span)
        } catch {
            throw Self.refusal(error, bytes, path)
        }
        guard document.kind(document.root) == .object else {
            throw ConfigurationError(place: path, reason: "the file must hold one JSON object")
        }
        var settings: [String: ConfigurationSetting] = [:]
        for name in document.children(of: document.root) {
            let member = document.string(name, in: bytes.span)
            guard let row = rows.first(where: { $0.name == member }) else {
                if Settings.rows.contains(where: { $0.name == member }) { continue }
                let nearest = nearest(member)
                let hint = hint(member, nearest) { "'\($0.name)'" }
                mistakes.append(ConfigurationError(place: path, reason: "unknown key '\(member)'\(hint)").of(nearest))
                continue
            }
            let origin = ConfigurationOrigin.file(path: path, member: member)
            // null and an empty list mean "not set", so that a file can show every key.
            if document.kind(name + 1) == .null { continue }
            do throws(ConfigurationError) {
                let value = try value(name + 1, of: row.kind, in: document, bytes, origin)
                if value != .list([]) { settings[member] = ConfigurationSetting(value: value, origin: origin) }
            } catch {
                mistakes.append(error.of(row))
            }
        }
        return settings
    }

    /// The error of the reader: the place in lines and columns from 1, and the reason.
    private static func refusal(_ error: JSONError, _ bytes: [UInt8], _ path: String) -> ConfigurationError {
        let lines = bytes.prefix(error.offset).split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        let place = "\(path), line \(lines.count), column \((lines.last?.count ?? 0) + 1)"
        guard error.reason == .repeatedMember else {
            let cure =
                "; names and texts stand in double quotes, no comma stands before a closing bracket, and JSON has no comments"
            return ConfigurationError(
                place: place,
                reason: "the file is not valid JSON: \(error.reason.rawValue)"
                    + (error.reason == .unexpectedByte ? cure : "")
            )
        }
        let name = bytes.dropFirst(error.offset + 1).prefix { $0 != UInt8(ascii: "\"") }
        let member = String(decoding: name, as: UTF8.self)
        return ConfigurationError(place: place, reason: "the member '\(member)' comes twice")
    }

    private static func value(
        _ node: Int,
        of kind: SettingKind,
        in document: borrowing JSONDocument,
        _ bytes: [UInt8],
        _ origin: ConfigurationOrigin
    ) throws(ConfigurationError) -> ConfigurationValue {
        switch (kind, document.kind(node)) {
        case (.duration, .string), (.size, .string):
            return .integer(try ConfigurationSetting.number(document.string(node, in: bytes.span), kind, origin))
        case (.integer, .number), (.duration, .number), (.size, .number):
            guard let number = document.integer(node, in: bytes.span) else {
                throw origin.error("a whole number is needed")
            }
            return .integer(Int(number))
        case (.text, .string), (.file, .string), (.secretFile, .string), (.choice, .string):
            return .text(document.string(node, in: bytes.span))
        case (.list, .array):
            var values: [String] = []
            for element in document.children(of: node) {
                guard document.kind(element) == .string else {
                    throw origin.error("the list may hold strings alone: write each in double quotes, as in [\"123\"]")
                }
                values.append(document.string(element, in: bytes.span))
            }
            return .list(values)
        default: throw origin.error(kind.wording.need)
        }
    }

    /// The most likely setting for a misspelt name: at most two edits away, with or without `_file`; `-` and `_` count
    /// as the same.
    static func nearest(_ name: String) -> SettingRow? {
        func stem(_ name: String) -> String { name.hasSuffix("_file") ? String(name.dropLast(5)) : name }
        let folded = String(name.lowercased().map { $0 == "-" ? "_" : $0 })
        return Settings.rows.first { Spelling.isNear(folded, $0.name, edits: 2) }
            ?? Settings.rows.first { Spelling.isNear(stem(folded), stem($0.name), edits: 2) }
    }

    /// The question after the meant setting, and the reason if its value was given in place of a file's name.
    static func hint(_ name: String, _ nearest: SettingRow?, _ spelling: (SettingRow) -> String) -> String {
        guard let nearest else { return "" }
        let isValue = nearest.kind == .secretFile && !name.hasSuffix("file")
        return "; did you mean \(spelling(nearest))?\(isValue ? " Secrets stand in files" : "")"
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
