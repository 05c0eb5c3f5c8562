internal import ArgumentParser
internal import LLService

struct CheckConfig: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check-config",
        abstract: "Prints the configuration in force, each value with its origin.",
        discussion: "Exit code 0 when a start with the same settings would accept them, 64 usage, 78 when it would not."
    )

    @Flag(help: "Print one JSON object: the settings, each with its value and origin, and the warnings.")
    var json = false

    @OptionGroup var options: ConfigurationOptions<ServiceSettings>

    func run() throws {
        let loaded = try options.load()
        // Building the parts opens the files and checks the URLs, as a start would.
        _ = try ServiceParts.keyCache(loaded.configuration) { _ in }
        _ = try ServiceParts.settings(loaded.configuration)
        _ = try ServiceParts.tlsContext(loaded.configuration)
        _ = try ServiceParts.graphClient(loaded.configuration)
        _ = try ServiceParts.replayStore(loaded.configuration) { _ in }
        let warnings = loaded.configuration.doubts
        if json { return StandardOutput.write(json: Self.json(loaded, warnings)) }
        for warning in warnings { StandardError.write("limited-login: warning: \(warning)") }
        let width = ConfigurationKey.allCases.map(\.rawValue.count).max() ?? 0
        for key in ConfigurationKey.allCases {
            let (value, origin) = Self.inForce(key, loaded)
            let padding = String(repeating: " ", count: width - key.rawValue.count)
            StandardOutput.write(line: "\(key.rawValue)\(padding) = \(value)  (\(origin))")
        }
    }

    /// The value in the form that may be shown, and its origin.
    private static func inForce(_ key: ConfigurationKey, _ loaded: LoadedConfiguration) -> (String, String) {
        guard let setting = loaded.settings[key] else { return (key.defaultText, "default") }
        return (key.shown(setting.value), setting.origin.description)
    }

    private static func json(_ loaded: LoadedConfiguration, _ warnings: [String]) -> JSON {
        let settings = ConfigurationKey.allCases.map { key -> JSON.Member in
            let (value, origin) = inForce(key, loaded)
            return (key.rawValue, ["value": JSON(value), "origin": JSON(origin)])
        }
        return ["settings": JSON(settings), "warnings": JSON(warnings.map { JSON($0) })]
    }
}
