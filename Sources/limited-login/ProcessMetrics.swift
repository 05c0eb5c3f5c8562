internal import Glibc
internal import LLHTTP
internal import LLService
internal import LLStores
internal import LimitedLoginKeys

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
        guard let directory = unsafe opendir("/proc/self/fd") else { return 0 }
        defer { unsafe closedir(directory) }
        var count = 0
        while unsafe readdir(directory) != nil { count += 1 }
        // The count includes ".", ".." and the directory's own descriptor.
        return max(0, count - 3)
    }
}
