internal import OpenSSL

/// What a start found: the configuration in force, and where each setting came from.
package struct LoadedConfiguration: Sendable {
    package let configuration: ServiceConfiguration
    /// Only what was set; every other key has its default.
    package let settings: [ConfigurationKey: ConfigurationSetting]
    /// The file that was read, if any.
    package let file: String?
}

/// Puts flags over environment over file over defaults, and refuses what it does not know.
package enum ConfigurationLoader {
    /// The file that is read when none is named, if it exists.
    package static let defaultFile = "config/limited-login.json"

    /// - Parameters:
    ///   - flags: the values given on the command line, by key.
    ///   - environment: the process's environment; names with the project's prefix must be known.
    ///   - file: the file named by `--config`, if any; it must then be readable.
    ///   - readsDefaultFile: whether ``defaultFile`` is read where no file is named.
    package static func load(
        flags: [ConfigurationKey: String],
        environment: [String: String],
        file: String?,
        readsDefaultFile: Bool = true
    ) throws(ConfigurationError) -> LoadedConfiguration {
        var settings: [ConfigurationKey: ConfigurationSetting] = [:]
        let named = file ?? environment[ConfigurationKey.fileVariable]
        guard named != "" else {
            throw ConfigurationError(
                place: file == nil ? "environment variable \(ConfigurationKey.fileVariable)" : "--config",
                reason: "the name of the file is empty"
            )
        }
        var readFile: String?
        if named != nil || readsDefaultFile, let (path, bytes) = try contents(named: named) {
            settings = try ConfigurationFile.settings(of: bytes, path: path)
            readFile = path
        }
        for (name, value) in environment.sorted(by: { $0.key < $1.key })
        where name.hasPrefix(ConfigurationKey.environmentPrefix) && name != ConfigurationKey.fileVariable {
            guard let key = ConfigurationKey(environmentName: name) else {
                throw ConfigurationError(
                    place: "environment variable \(name)",
                    reason: "there is no such setting\(hint(name))"
                )
            }
            settings[key] = try ConfigurationSetting(text: value, key: key, origin: .environment(name))
        }
        for (key, value) in flags.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            settings[key] = try ConfigurationSetting(text: value, key: key, origin: .flag(key.flagName))
        }
        return LoadedConfiguration(
            configuration: try ServiceConfiguration(settings: settings),
            settings: settings,
            file: readFile
        )
    }

    private static func contents(named: String?) throws(ConfigurationError) -> (String, [UInt8])? {
        let path = named ?? defaultFile
        do throws(FileContents.Failure) {
            return (path, try FileContents.read(path: path, limit: ConfigurationFile.sizeLimit))
        } catch {
            if named == nil, error.isMissing { return nil }
            throw ConfigurationError(path, error)
        }
    }

    private static func hint(_ name: String) -> String {
        let member = name.dropFirst(ConfigurationKey.environmentPrefix.count).lowercased()
        guard let key = ConfigurationFile.nearest(member).flatMap({ ConfigurationKey(rawValue: $0) }) else { return "" }
        return "; did you mean \(key.environmentName)?"
    }
}
