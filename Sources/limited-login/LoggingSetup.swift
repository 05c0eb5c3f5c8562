internal import Glibc
internal import Logging
internal import VerificationService

/// Bootstraps swift-log once, as the configuration asks.
enum LoggingSetup {
    /// The logger of the whole program, and the switch of its level.
    static func bootstrap(_ configuration: ServiceConfiguration) -> (logger: Logger, level: LogLevelSwitch) {
        let level = LogLevelSwitch(Logger.Level(rawValue: configuration.logLevel) ?? .info)
        let format: LineLogHandler.Format =
            switch configuration.logFormat {
            case "json": .json
            case "text": .text
            default: isatty(STDERR_FILENO) == 1 ? .text : .json
            }
        LoggingSystem.bootstrap { label in
            LineLogHandler(label: label, level: level, format: format) { line in
                StandardError.write(line: line)
            }
        }
        return (Logger(label: "limited-login"), level)
    }
}
