internal import ArgumentParser
internal import FoundationEssentials
internal import LLService

/// A command with settings: `--help` shows these, `--help-all` also the others. A command without `app_ids` among
/// these reads no others, so that a fault in them does not stop it.
protocol SettingScope {
    static func settings(of all: Settings) -> [any AnySetting]
}

/// The flags of the service: one for each row of `Settings`, all optional, all above the environment and the file.
///
/// ArgumentParser finds the options of a type by reflection, so the mirror can make them from the table of settings.
/// Each is decoded under its name there. Every command accepts all of them; `--help` shows those of its `Scope`.
struct ConfigurationOptions<Scope: SettingScope>: ParsableArguments, CustomReflectable, Sendable {
    private var file: String?
    private var flags: [String: String] = [:]

    private static var shown: [SettingRow] { Scope.settings(of: .all).map { $0.row } }

    init() {}

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: OptionName.self)
        file = try container.decode(Option<String?>.self, forKey: .file).wrappedValue
        for name in Settings.rows.map(\.name) {
            flags[name] = try container.decode(Option<String?>.self, forKey: OptionName(stringValue: name)).wrappedValue
        }
    }

    var customMirror: Mirror {
        let text = "The configuration file (default: \(ConfigurationLoader.defaultFile), if there)."
        let help = ArgumentHelp(text, valueName: "file")
        let file = Option<String?>(name: .customLong("config"), help: help, completion: .file())
        // The options have the order of the scope: the most needed first.
        let shown = Self.shown
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
        let shown = Self.shown
        return try ConfigurationLoader.load(
            flags: flags.filter { $0.key != setting?.row.name },
            environment: ProcessInfo.processInfo.environment,
            file: file,
            again: known,
            only: shown.contains { $0.name == Settings.all.appIDs.row.name } ? nil : shown
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

struct CheckConfig: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check-config",
        abstract: "Prints the configuration in force, each value with its origin.",
        discussion: """
            It tells all mistakes. Exit code 0 when a start with the same settings would accept them, 64 usage, 78 when it \
            would not.
            """
    )

    @Flag(help: "Print one JSON object: the settings, their origins and the warnings, or the mistakes.")
    var json = false

    @OptionGroup var options: ConfigurationOptions<Serve>

    func run() throws {
        let configuration: ServiceConfiguration
        do throws(ConfigurationError) {
            configuration = try options.load()
        } catch { throw refuse(error.sentences) }
        let mistakes = Self.mistakesInFiles(configuration)
        guard mistakes.isEmpty else { throw refuse(mistakes) }
        let warnings = configuration.warnings
        let rows = Settings.rows.map { row in
            let setting = configuration.settings[row.name]
            let value = setting.map { row.shown($0.value) } ?? row.defaultText
            return (name: row.name, value: value, origin: setting?.origin.description ?? "default")
        }
        if json {
            let settings = rows.map { ($0.name, ["value": JSON($0.value), "origin": JSON($0.origin)] as JSON) }
            let warnings = warnings.map { JSON($0) }
            return StandardOutput.write(json: ["settings": JSON(settings), "warnings": JSON(warnings)])
        }
        for warning in warnings { StandardError.write("limited-login: warning: \(warning)") }
        let width = rows.map(\.name.count).max() ?? 0
        for row in rows {
            let padding = String(repeating: " ", count: width - row.name.count)
            StandardOutput.write(line: "\(row.name)\(padding) = \(row.value)  (\(row.origin))")
        }
    }

    /// Builds the parts, which opens the files and checks the URLs as a start would.
    private static func mistakesInFiles(_ configuration: ServiceConfiguration) -> [String] {
        var mistakes: [String] = []
        func check<Part>(_ part: @autoclosure () throws -> Part) {
            do {
                _ = try part()
            } catch {
                // Two parts may read one file.
                if !mistakes.contains("\(error)") { mistakes.append("\(error)") }
            }
        }
        check(try ServiceFactory.keyCache(configuration) { _ in })
        check(try ServiceFactory.clients(configuration))
        check(try ServiceFactory.verifier(configuration))
        check(try ServiceFactory.appSecrets(configuration))
        check(try ServiceFactory.webhook(configuration))
        check(try ServiceFactory.tokens(configuration))
        check(try ServiceFactory.settings(configuration))
        check(try ServiceFactory.tlsContext(configuration))
        check(try ServiceFactory.graphClient(configuration))
        check(try ServiceFactory.replayStore(configuration) { _ in })
        return mistakes
    }

    private func refuse(_ mistakes: [String]) -> ExitCode {
        if json {
            StandardOutput.write(json: ["mistakes": JSON(mistakes.map { JSON($0) })])
        } else {
            for mistake in mistakes { StandardError.write("limited-login: \(mistake)") }
        }
        return Exit.configuration
    }
}
