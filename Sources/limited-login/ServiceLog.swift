internal import Glibc
internal import LLHTTP
internal import LLService
internal import LLStores
internal import LimitedLoginKeys
internal import Logging

/// Turns events of the service's parts into log lines and metrics.
enum ServiceEvents {
    /// One line for each change of state and of the key set.
    static func ofKeys(_ logger: Logger) -> JWKSetCache.EventHandler {
        { event in
            let (level, message, facts) = line(event)
            logger.log(level: level, message, metadata: facts)
        }
    }

    private static func line(_ event: JWKSetEvent) -> (Logger.Level, Logger.Message, Logger.Metadata) {
        switch event {
        case .fetchStarted(let reason): (.debug, "fetching keys", ["reason": "\(reason.rawValue)"])
        case .sourceFailed(let source, let reason):
            (.warning, "key source failed", ["source": "\(source)", "reason": "\(reason)"])
        case .fetchSucceeded(let source, _, let time, let left):
            (
                .debug, "keys fetched",
                ["source": "\(source)", "duration": "\(time.inSeconds)", "time_to_live": "\(left.inSeconds)"]
            )
        case .fetchFailed(let reason, let failures, let next):
            (
                .error, "keys could not be fetched",
                [
                    "reason": "\(reason)", "consecutive_failures": "\(failures)",
                    "next_attempt_in": "\(next.inSeconds)",
                ]
            )
        case .keySetChanged(let source, let added, let removed, let replaced):
            (
                .info, "key set changed",
                [
                    "source": "\(source)", "added": "\(added.joined(separator: ","))",
                    "removed": "\(removed.joined(separator: ","))", "replaced": "\(replaced.joined(separator: ","))",
                ]
            )
        case .keyIgnored(let source, let index, let keyID, let reason):
            (
                .warning, "key ignored",
                ["source": "\(source)", "index": "\(index)", "key_id": "\(keyID ?? "-")", "reason": "\(reason)"]
            )
        case .phaseChanged(_, .expired):
            (.error, "the keys are too old", ["reason": "no source has confirmed them; every token is answered 503"])
        case .phaseChanged(let from, let to):
            (.debug, "key cache state changed", ["from": "\(from.rawValue)", "to": "\(to.rawValue)"])
        case .seedLoaded(let file, let age):
            (.notice, "seed keys loaded", ["file": "\(file)", "age": "\(age.inSeconds)"])
        case .seedIgnored(let file, let reason):
            (.warning, "seed file ignored", ["file": "\(file)", "reason": "\(reason)"])
        case .seedNotWritten(let file, let reason):
            (.warning, "seed file not written", ["file": "\(file)", "reason": "\(reason)"])
        }
    }

    /// One line for each change of state, and the duration of answers.
    static func ofReplayStore(
        _ logger: Logger,
        _ registry: PrometheusRegistry
    ) -> @Sendable (ReplayStoreEvent) -> Void {
        let duration = registry.timer("limited_login_replay_store_answer_duration_seconds")
        return { event in
            switch event {
            case .answered(let nanoseconds):
                duration.recordNanoseconds(Int64(clamping: nanoseconds))
            case .up(let start):
                logger.notice("replay store up", metadata: ["remembers_since": "\(start.completeSince / 1_000)"])
            case .down(let failure):
                logger.error("replay store down", metadata: ["reason": "\(failure)"])
            case .revokedAhead(let until):
                let reason = """
                    logins were revoked while it was ahead: it cannot be known whether tokens of these people up to that time \
                    are older than the revocation, so they are refused with 503; restart the service to end that
                    """
                clockWasSetBack(reason, until, logger)
            case .clockSetBack(let until):
                let reason = """
                    what was used while it was ahead may be forgotten: nonces, tokens and proofs of that time are refused with \
                    503; restart the service to end that
                    """
                clockWasSetBack(reason, until, logger)
            }
        }
    }

    private static func clockWasSetBack(_ reason: String, _ until: UInt64, _ logger: Logger) {
        logger.error("the clock was set back", metadata: ["reason": "\(reason)", "until": "\(until / 1_000)"])
    }
}

/// Bootstraps swift-log once, as the configuration asks.
enum LoggingSetup {
    /// The writer of all lines.
    static let writer = LogWriter(descriptor: STDERR_FILENO)
    /// The time for which the program's end waits for the reader of the log: 2 s.
    static let flushTime: Duration = .seconds(2)
    private static let auditLabel = "limited-login.audit"

    /// The logger of the whole program, and the switch of its level.
    static func bootstrap(
        _ configuration: ServiceConfiguration
    ) throws(StartError) -> (logger: Logger, level: LogLevelSwitch) {
        let level = LogLevelSwitch(Logger.Level(rawValue: configuration.logLevel) ?? .info)
        let format: LineLogHandler.Format =
            switch configuration.logFormat {
            case "json": .json
            case "text": .text
            default: isatty(STDERR_FILENO) == 1 ? .text : .json
            }
        let own = LineLogHandler(label: "limited-login", level: level, format: format) { _ in }
        writer.start { count in
            own.line(.warning, "log lines dropped", ["count": "\(count)"])
        }
        LoggingSystem.bootstrap { label in
            let share: LogWriter.Share = label == auditLabel ? .audit : .other
            return LineLogHandler(label: label, level: level, format: format) { writer.write($0, share) }
        }
        return (Logger(label: "limited-login"), level)
    }

    /// Writes the audit lines, independent of the level of the others.
    static var auditLogger: Logger {
        var logger = Logger(label: auditLabel)
        logger.logLevel = .info
        return logger
    }
}

extension Duration {
    /// For logs: seconds with three decimals, such as `52.566s`.
    var inSeconds: String {
        let (seconds, attoseconds) = components
        let milliseconds = String((attoseconds / 1_000_000_000_000_000).magnitude)
        let zeros = String(repeating: "0", count: max(0, 3 - milliseconds.utf8.count))
        return "\(self < .zero ? "-" : "")\(seconds.magnitude).\(zeros)\(milliseconds)s"
    }
}
