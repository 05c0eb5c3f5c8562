internal import ArgumentParser
internal import VerificationService

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
