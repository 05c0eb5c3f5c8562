internal import ArgumentParser
internal import FoundationEssentials
internal import LLService

/// The flags of the service: one for each row of `Settings`, all optional, all above the environment and the file.
///
/// ArgumentParser finds the options of a type by reflection, so the mirror can make them from the table of settings.
/// Each is decoded under its name there. Every command accepts all of them; `--help` shows those of its `Scope`.
struct ConfigurationOptions<Scope: SettingScope>: ParsableArguments, CustomReflectable, Sendable {
    private var file: String?
    private var flags: [String: String] = [:]

    init() {}

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: OptionName.self)
        file = try container.decode(Option<String?>.self, forKey: .file).wrappedValue
        for name in Settings.rows.map(\.name) {
            flags[name] = try container.decode(Option<String?>.self, forKey: OptionName(stringValue: name)).wrappedValue
        }
    }

    var customMirror: Mirror {
        let help = "The configuration file (default: \(ConfigurationLoader.defaultFile), if there)."
        let file = Option<String?>(
            name: .customLong("config"),
            help: ArgumentHelp(help, valueName: "file"),
            completion: .file()
        )
        // The options have the order of the scope: the most needed first.
        let shown = Scope.settings.map { $0.row }
        let hidden = Settings.rows.filter { row in !shown.contains { $0.name == row.name } }
        let flags = (shown + hidden).enumerated().map { index, row in
            (label: Optional(row.name), value: Self.option(row, isShown: index < shown.count) as Any)
        }
        return Mirror(self, children: [(label: OptionName.file.stringValue, value: file as Any)] + flags)
    }

    func given(_ setting: any AnySetting) -> String? { flags[setting.row.name] }

    /// Loads the configuration from these flags, this process's environment and the file, which may be that of the
    /// previous load. The flag of one setting may have another meaning here.
    func load(
        again known: String? = nil,
        without setting: (any AnySetting)? = nil
    ) throws(ConfigurationError) -> ServiceConfiguration {
        try ConfigurationLoader.load(
            flags: flags.filter { $0.key != setting?.row.name },
            environment: ProcessInfo.processInfo.environment,
            file: file,
            again: known,
            only: Scope.readsOthers ? nil : Scope.settings.map { $0.row }
        )
    }

    /// Does the same, and also reads the apps' secrets, which must be configured.
    func loadWithAppSecrets() throws -> (configuration: ServiceConfiguration, secrets: AppSecrets) {
        let configuration = try load()
        guard let secrets = try ServiceFactory.appSecrets(configuration) else {
            throw StartError("this needs the app's secret: set \(Settings.all.appSecretsFile.row.environmentName)")
        }
        return (configuration, secrets)
    }

    private static func option(_ row: SettingRow, isShown: Bool) -> Option<String?> {
        let completion: CompletionKind? =
            switch row.kind {
            case .file, .secretFile: .file()
            case .choice(let words): .list(words)
            default: nil
            }
        // The short help has no space for a long default.
        let isBrief = isShown && row.defaultText.count > 20
        return Option(
            name: .customLong(row.flagName),
            help: ArgumentHelp(
                isBrief ? "\(row.summary)" : "\(row.summary) (default: \(row.defaultText))",
                valueName: row.kind.wording.placeholder,
                visibility: isShown ? .default : .hidden
            ),
            completion: completion
        )
    }
}

private struct OptionName: CodingKey {
    static let file = OptionName(stringValue: "configuration_file")

    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }

    init?(intValue: Int) { nil }
}
