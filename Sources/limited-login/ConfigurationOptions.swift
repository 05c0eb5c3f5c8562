internal import ArgumentParser
internal import FoundationEssentials
internal import VerificationService

/// The flags of the service: one for each `ConfigurationKey`, all optional, all above the environment and the file.
///
/// ArgumentParser finds the options of a type by reflection, so that the mirror can make them from the table of settings;
/// each is decoded under the name it has there.
struct ConfigurationOptions: ParsableArguments, CustomReflectable, Sendable {
    private var file: String?
    /// What was given on the command line, by key.
    private var flags: [ConfigurationKey: String] = [:]

    init() {}

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Name.self)
        file = try container.decode(Option<String?>.self, forKey: .file).wrappedValue
        for key in ConfigurationKey.allCases {
            flags[key] = try container.decode(Option<String?>.self, forKey: Name(stringValue: key.rawValue))
                .wrappedValue
        }
    }

    var customMirror: Mirror {
        let file = Option<String?>(
            name: .customLong("config"),
            help: ArgumentHelp(
                "The configuration file (default: \(ConfigurationLoader.defaultFile), if there).",
                valueName: "file"
            ),
            completion: .file()
        )
        let flags = ConfigurationKey.allCases.map { key in
            (label: Optional(key.rawValue), value: Self.option(key) as Any)
        }
        return Mirror(self, children: [(label: Name.file.stringValue, value: file as Any)] + flags)
    }

    /// What the command line itself says of a setting.
    func given(_ key: ConfigurationKey) -> String? { flags[key] }

    /// Loads the configuration from these flags, this process's environment and the file.
    ///
    /// - Parameters:
    ///   - known: the file that was read before. It must still be there: without it, what it forbids is allowed.
    ///   - key: the flag that says something else than the service's setting.
    func load(
        again known: String? = nil,
        without key: ConfigurationKey? = nil
    ) throws(ConfigurationError) -> LoadedConfiguration {
        try ConfigurationLoader.load(
            flags: flags.filter { $0.key != key },
            environment: ProcessInfo.processInfo.environment,
            file: file,
            again: known
        )
    }

    /// The same, with the apps' secrets, which must be configured.
    func loadWithAppSecrets() throws -> (configuration: ServiceConfiguration, secrets: AppSecrets) {
        let configuration = try load().configuration
        guard let secrets = try ServiceParts.appSecrets(configuration) else {
            throw StartError("this needs the app's secret: set \(ConfigurationKey.appSecretsFile.environmentName)")
        }
        return (configuration, secrets)
    }

    private static func option(_ key: ConfigurationKey) -> Option<String?> {
        let completion: CompletionKind? =
            switch key.definition.kind {
            case .file, .secretFile: .file()
            case .choice(let words): .list(words)
            default: nil
            }
        return Option(
            name: .customLong(key.flagName),
            help: ArgumentHelp(
                "\(key.summary) (default: \(key.defaultText))",
                valueName: key.definition.kind.wording.placeholder
            ),
            completion: completion
        )
    }

    /// The name of an option in the mirror and in the decoder.
    private struct Name: CodingKey {
        static let file = Name(stringValue: "configuration_file")

        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }

        init?(intValue: Int) { nil }
    }
}

struct CheckConfig: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check-config",
        abstract: "Prints the configuration in force, each value with its origin.",
        discussion: "Exit code 0 when a start with the same settings would accept them, else 78."
    )

    @OptionGroup var options: ConfigurationOptions

    func run() throws {
        let loaded = try options.load()
        // Building the parts opens the files and judges the URLs, as a start would.
        _ = try ServiceParts.keyCache(loaded.configuration) { _ in }
        _ = try ServiceParts.settings(loaded.configuration)
        _ = try ServiceParts.tlsContext(loaded.configuration)
        _ = try ServiceParts.graphClient(loaded.configuration)
        _ = try ServiceParts.replayStore(loaded.configuration) { _ in }
        for doubt in loaded.configuration.doubts { StandardError.write("limited-login: warning: \(doubt)") }
        let width = ConfigurationKey.allCases.map(\.rawValue.count).max() ?? 0
        for key in ConfigurationKey.allCases {
            let setting = loaded.settings[key]
            let padding = String(repeating: " ", count: width - key.rawValue.count)
            let value = setting.map { key.shown($0.value) } ?? key.defaultText
            let origin = setting?.origin.description ?? "default"
            StandardOutput.write(line: "\(key.rawValue)\(padding) = \(value)  (\(origin))")
        }
    }
}
