internal import FoundationEssentials
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

/// The gauges that are computed when Prometheus reads the metrics, and not in between.
final class ProcessMetrics: Sendable {
    private let registry: PrometheusRegistry
    /// Set once, when all its parts exist.
    let application = Locked<Application?>(nil)
    private let start = WallClock.unixSeconds()

    init(registry: PrometheusRegistry) {
        self.registry = registry
        gauge("limited_login_build_info", [("version", BuildInformation.version)], 1)
        gauge("process_start_time_seconds", [], Double(start))
    }

    func update() {
        if let application = application.withLock(\.self) { update(application) }
        var usage = rusage()
        // It fails for no argument that a program may give.
        unsafe getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        let seconds = Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
        let micros = Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec)
        gauge("process_cpu_seconds_total", [], seconds + micros / 1e6)
        gauge("process_resident_memory_bytes", [], Double(Self.residentBytes()))
        gauge("limited_login_log_lines_dropped_total", [], Double(LoggingSetup.writer.droppedLines))
        gauge("process_open_fds", [], Double(Self.openDescriptors()))
    }

    private func update(_ application: Application) {
        let (status, limits) = (application.core.cache.status, application.server.configuration.limits)
        let (keys, counters) = (status.counters, application.server.counters)
        gauge("jwks_keys", [], status.isUsable ? Double(status.keys.count) : 0)
        gauge("jwks_age_seconds", [], status.age.map { Double($0.components.seconds) } ?? 0)
        gauge("jwks_unknown_key_ids_total", [], Double(keys.unknownKeyIDs))
        for (result, count) in [
            ("replaced", keys.fetchesReplaced), ("unchanged", keys.fetchesUnchanged), ("failed", keys.fetchesFailed),
        ] { gauge("jwks_fetches_total", [("result", result)], Double(count)) }
        for (state, count) in [("active", counters.active), ("idle", counters.idle), ("parked", counters.parked)] {
            gauge("http_server_connections", [("state", state)], Double(count))
        }
        gauge("http_server_connections_limit", [], Double(limits.connections))
        gauge("http_server_connections_memory_bytes", [], Double(counters.heldBytes))
        gauge("http_server_connections_memory_limit_bytes", [], Double(limits.connectionBytes))
        gauge("http_server_overloaded_total", [], Double(counters.overloaded))
        gauge("http_server_workers", [], Double(application.server.workerCount))
        for cause in ConnectionCloseCause.allCases {
            gauge("http_server_connections_closed_total", [("cause", cause.rawValue)], Double(counters.closed(cause)))
        }
        let store = application.core.replayStore
        gauge("limited_login_replay_store_up", [], store.isUp ? 1 : 0)
        gauge("limited_login_revocations", [], Double(store.revocations.count))
        let age = store.revocations.age(at: MonotonicClock.now()).map { Double($0.components.seconds) }
        gauge("limited_login_revocations_age_seconds", [], age ?? Double(WallClock.unixSeconds() - start))
        if case .memory(let memory) = store {
            gauge("limited_login_replay_store_entries", [], Double(memory.count))
            gauge("limited_login_replay_store_capacity", [], Double(memory.capacity))
        }
        if let expiry = application.tls?.value.certificateTimes?.end {
            gauge("limited_login_tls_certificate_expiry_timestamp_seconds", [], Double(expiry))
        }
    }

    private func gauge(_ name: String, _ labels: [(String, String)], _ value: Double) {
        registry.gauge(name, labels).record(value)
    }

    /// Resident memory in bytes; 0 if /proc is not mounted.
    private static func residentBytes() -> Int {
        guard let bytes = try? FileContents.read(path: "/proc/self/statm", limit: 4096) else { return 0 }
        // The second number is the resident set in pages (proc(5)).
        let numbers = String(decoding: bytes, as: UTF8.self).split(separator: " ")
        guard numbers.count > 1, let pages = Int(numbers[1]) else { return 0 }
        return pages * sysconf(Int32(_SC_PAGESIZE))
    }

    /// Number of open descriptors; 0 if /proc is not mounted.
    static func openDescriptors() -> Int {
        let names = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        // The names include the folder's own descriptor.
        return names.map { $0.count - 1 } ?? 0
    }
}
