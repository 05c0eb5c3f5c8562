internal import ArgumentParser
internal import LLService

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

    @OptionGroup var options: ConfigurationOptions<ServiceSettings>

    func run() throws {
        let configuration: ServiceConfiguration
        do throws(ConfigurationError) {
            configuration = try options.load()
        } catch {
            throw refuse(error.sentences)
        }
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
