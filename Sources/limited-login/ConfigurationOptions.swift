internal import ArgumentParser
internal import FoundationEssentials
internal import LLService

/// The flags of the service: one for each `ConfigurationKey`, all optional, all above the environment and the file.
///
/// ArgumentParser finds the options of a type by reflection, so that the mirror can make them from the table of settings;
/// each is decoded under the name it has there. Every command takes them all; `--help` shows those of its `Scope`.
struct ConfigurationOptions<Scope: SettingScope>: ParsableArguments, CustomReflectable, Sendable {
    private var file: String?
    /// What was given on the command line, by key.
    private var flags: [ConfigurationKey: String] = [:]

    init() {}

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: OptionName.self)
        file = try container.decode(Option<String?>.self, forKey: .file).wrappedValue
        for key in ConfigurationKey.allCases {
            flags[key] = try container.decode(Option<String?>.self, forKey: OptionName(stringValue: key.rawValue))
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
        // In the order of the scope: the most needed first.
        let shown = Scope.keys
        let flags = (shown + ConfigurationKey.allCases.filter { !shown.contains($0) }).map { key in
            (label: Optional(key.rawValue), value: Self.option(key) as Any)
        }
        return Mirror(self, children: [(label: OptionName.file.stringValue, value: file as Any)] + flags)
    }

    /// What the command line itself says of a setting.
    func given(_ key: ConfigurationKey) -> String? { flags[key] }

    /// Loads the configuration from these flags, this process's environment and the file: the settings of the scope alone
    /// where the command reads no others.
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
            again: known,
            only: Scope.readsOthers ? nil : Scope.keys
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
        let isShown = Scope.keys.contains(key)
        // The short help has no place for a long default.
        let isBrief = isShown && key.defaultText.count > 20
        return Option(
            name: .customLong(key.flagName),
            help: ArgumentHelp(
                isBrief ? "\(key.summary)" : "\(key.summary) (default: \(key.defaultText))",
                valueName: key.definition.kind.wording.placeholder,
                visibility: isShown ? .default : .hidden
            ),
            completion: completion
        )
    }
}

/// The name of an option in the mirror and in the decoder.
private struct OptionName: CodingKey {
    static let file = OptionName(stringValue: "configuration_file")

    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }

    init?(intValue: Int) { nil }
}
