internal import Glibc
internal import LLHTTP
internal import LLService
internal import LLStores
internal import LimitedLoginKeys
internal import Logging

/// Turns events of the service's parts into log lines and metrics.
enum ServiceEvents {
    static func ofKeys(_ logger: Logger) -> JWKSetCache.EventHandler {
        { event in
            logger.log(
                level: Logger.Level(rawValue: event.severity.rawValue) ?? .error,
                "\(event.message)",
                metadata: Logger.Metadata(uniqueKeysWithValues: event.facts.map { ($0.name, "\($0.value)") })
            )
        }
    }

    static func ofReplayStore(
        _ logger: Logger,
        _ registry: PrometheusRegistry
    ) -> @Sendable (ReplayStoreEvent) -> Void {
        let duration = registry.timer("limited_login_replay_store_answer_duration_seconds")
        @Sendable func clockWasSetBack(_ until: UInt64, _ reason: String) {
            logger.error("the clock was set back", metadata: ["reason": "\(reason)", "until": "\(until / 1_000)"])
        }
        return { event in
            switch event {
            case .answered(let nanoseconds):
                duration.recordNanoseconds(Int64(clamping: nanoseconds))
            case .up(let start):
                logger.notice("replay store up", metadata: ["remembers_since": "\(start.completeSince / 1_000)"])
            case .down(let failure):
                logger.error("replay store down", metadata: ["reason": "\(failure)"])
            case .revokedAhead(let until):
                clockWasSetBack(
                    until,
                    "logins were revoked while it was ahead: it cannot be known whether tokens of these people up to that time "
                        + "are older than the revocation, so they are refused with 503; restart the service to end that"
                )
            case .clockSetBack(let until):
                clockWasSetBack(
                    until,
                    "what was used while it was ahead may be forgotten: nonces, tokens and proofs of that time are refused "
                        + "with 503; restart the service to end that"
                )
            }
        }
    }
}

enum LoggingSetup {
    static let writer = LogWriter(descriptor: STDERR_FILENO)
    /// The time for which the program's end waits for the reader of the log: 2 s.
    static let flushTime: Duration = .seconds(2)
    private static let auditLabel = "limited-login.audit"

    static func bootstrap(_ configuration: ServiceConfiguration) -> (logger: Logger, level: LogLevelSwitch) {
        let level = LogLevelSwitch(configuration.logLevel)
        let format =
            configuration.logFormat.flatMap(LineLogHandler.Format.init(rawValue:))
            ?? (isatty(STDERR_FILENO) == 1 ? .text : .json)
        let own = LineLogHandler(label: "limited-login", level: level, format: format) { _ in }
        writer.start { count in
            own.line(.warning, "log lines dropped", ["count": "\(count)"])
        }
        LoggingSystem.bootstrap { label in
            LineLogHandler(label: label, level: level, format: format) {
                writer.write($0, isAudit: label == auditLabel)
            }
        }
        return (Logger(label: "limited-login"), level)
    }

    static var auditLogger: Logger {
        var logger = Logger(label: auditLabel)
        logger.logLevel = .info
        return logger
    }
}
