internal import LLHTTP
internal import LLStores
internal import LimitedLogin
internal import Synchronization

/// The service's own metrics, made once. Their label values are closed sets of this code, never text from outside.
package final class ServiceMetrics: Sendable {
    package static let help: [String: String] = [
        "limited_login_signature_cache_lookups_total":
            "Looks into the memory of good signatures: hit (no RSA operation) or miss.",
        "limited_login_verifications_total":
            "Verdicts by credential (id_token, access_token) and result: accepted, or the code of the refusal.",
        "limited_login_exchanges_total":
            "Logins brought to /token, by outcome: issued, refused, or unavailable if no verdict was possible.",
        "limited_login_client_requests_total": "Requests of each configured client.",
        "limited_login_nonces_issued_total": "Nonces issued.",
        "limited_login_weak_nonces_total": "Logins whose nonce has fewer than 16 characters.",
        "limited_login_replay_store_answers_total":
            "What the memory of used nonces and tokens answered: first, seen, beyond_memory, unavailable or too_many.",
        "limited_login_replay_store_answer_duration_seconds": "Time from a question to the store's answer.",
        "limited_login_replay_store_up": "1 while the store answers, else 0.",
        "limited_login_replay_store_entries": "Entries in the store in this process's memory.",
        "limited_login_replay_store_capacity": "Entries that fit into the store in this process's memory.",
        "limited_login_revocations": "Logins that are remembered as revoked.",
        "limited_login_revocations_age_seconds":
            "Time since all that other replicas revoked was known here, or since the start; 0 without Redis.",
        "limited_login_graph_requests_total": "Calls of Graph, by operation and result: ok, or the code of the error.",
        "limited_login_graph_request_duration_seconds": "Time a call of Graph took, tries and pauses included.",
        "limited_login_callbacks_total": "Callbacks of Facebook's, by result: accepted, or the code of the refusal.",
        "limited_login_webhooks_total": "Callbacks passed on to the backend, by result: delivered, or what failed.",
        "limited_login_log_lines_dropped_total": "Log lines that standard error did not take in time.",
        "http_server_request_duration_seconds": "Time from a request's first byte to its encoded answer.",
        "http_server_connections": "Connections open now, by state.",
        "http_server_connections_limit": "Connections that may be open at once.",
        "http_server_connections_memory_bytes": "Memory that connections take now.",
        "http_server_connections_memory_limit_bytes": "Memory that connections may take; then idle ones close.",
        "http_server_overloaded_total": "Requests refused because too many wait or connections hold too much.",
        "http_server_workers": "Event loops that serve requests, each on a core of its own.",
        "http_server_connections_closed_total": "Connections closed, by cause.",
        "jwks_fetches_total": "Fetches of the JWK Set, by result.",
        "jwks_keys": "Keys that may verify tokens now.",
        "jwks_age_seconds": "Time since the source last confirmed the keys.",
        "jwks_unknown_key_ids_total": "Tokens whose key ID was not in the set.",
        "limited_login_tls_certificate_expiry_timestamp_seconds":
            "When the first certificate of the listener's chain ends, since the epoch.",
        "process_resident_memory_bytes": "Resident memory.",
        "process_open_fds": "Open file descriptors.",
        "process_cpu_seconds_total": "User and system time.",
        "process_start_time_seconds": "Start of the process since the epoch.",
        "limited_login_build_info": "Always 1; the labels say what is running.",
    ]

    /// An event that is counted, with the labels that tell its kinds apart.
    enum Event: Hashable {
        /// The code is that of the refusal; nil for an accepted credential or callback.
        case verdict(MetricSubject, Rejection.Code?)
        case signature(isRemembered: Bool)
        case exchange(Rejection.Code?)
        case issuedNonce
        case weakNonce
        case replayAnswer(ReplayAnswer)
        /// The error is nil if Graph did it.
        case graphCall(GraphOperation, Rejection.Code?)
        /// A delivery, all its attempts together; nil means that the backend accepted it.
        case webhook(WebhookFailure.Reason?)
    }

    private let counters: [Event: Counter]
    /// The counters that nearly every request needs: without the look-ups `/auth` takes 600 instructions less, of 25,166.
    private let acceptedIDTokens: Counter?
    private let rememberedSignatures: Counter?
    private let graphTimers: [GraphOperation: Timer]
    private let registry: PrometheusRegistry

    /// Every series exists from the start, so that the first failure of its kind is an increase too.
    package init(registry: PrometheusRegistry) {
        self.registry = registry
        var counters: [Event: Counter] = [:]
        var graphTimers: [GraphOperation: Timer] = [:]
        func add(_ event: Event, _ name: String, _ labels: (String, String)...) {
            counters[event] = registry.counter("limited_login_" + name, labels)
        }
        func addVerdicts(_ subject: MetricSubject, _ codes: [Rejection.Code], _ name: String, _ label: (String, String))
        {
            for code in [nil] + codes {
                add(.verdict(subject, code), name, label, ("result", code?.rawValue ?? "accepted"))
            }
        }
        addVerdicts(.idToken, Self.codesOfIDTokens, "verifications_total", ("credential", "id_token"))
        addVerdicts(.accessToken, Self.codesOfAccessTokens, "verifications_total", ("credential", "access_token"))
        for kind in [CallbackKind.deauthorize, .dataDeletion] {
            addVerdicts(.callback(kind), Self.codesOfCallbacks, "callbacks_total", ("callback", kind.rawValue))
        }
        add(.signature(isRemembered: true), "signature_cache_lookups_total", ("result", "hit"))
        add(.signature(isRemembered: false), "signature_cache_lookups_total", ("result", "miss"))
        add(.issuedNonce, "nonces_issued_total")
        add(.weakNonce, "weak_nonces_total")
        for code in [nil] + Rejection.Code.all {
            let isOutage = code.map { ProblemDialect.exchange.status(of: $0) >= 429 }
            let outcome = isOutage.map { $0 ? "unavailable" : "refused" } ?? "issued"
            add(.exchange(code), "exchanges_total", ("outcome", outcome))
        }
        for answer in ReplayAnswer.allCases {
            add(.replayAnswer(answer), "replay_store_answers_total", ("result", answer.rawValue))
        }
        for operation in GraphOperation.allCases {
            let label = ("operation", operation.rawValue)
            graphTimers[operation] = registry.timer("limited_login_graph_request_duration_seconds", [label])
            for error in [nil] + Rejection.Code.ofGraph {
                add(.graphCall(operation, error), "graph_requests_total", label, ("result", error?.rawValue ?? "ok"))
            }
        }
        for reason in [nil] + WebhookFailure.Reason.allCases {
            add(.webhook(reason), "webhooks_total", ("result", reason?.rawValue ?? "delivered"))
        }
        self.counters = counters
        acceptedIDTokens = counters[.verdict(.idToken, nil)]
        rememberedSignatures = counters[.signature(isRemembered: true)]
        self.graphTimers = graphTimers
    }

    /// Graph's errors are no verdicts on an id token.
    private static let codesOfIDTokens = Rejection.Code.all.filter {
        !(Rejection.Code.ofGraph + Rejection.Code.ofAccessTokens + [.tooManyAccessTokens]).contains($0)
    }
    private static let codesOfAccessTokens =
        Rejection.Code.ofAccessTokens + Rejection.Code.ofGraphAboutAccessTokens + [
            .invalidRequest, .invalidPermission, .unknownApp, .tooManyAccessTokens, .overloaded,
            .replayStoreUnavailable, .internalError,
        ] + Rejection.Code.ofTokens.filter(\.isOfAccessTokens)
    private static let codesOfCallbacks: [Rejection.Code] = [
        .invalidSignedRequest, .callbackNotDelivered, .replayStoreUnavailable, .overloaded,
    ]

    @inline(__always)
    func count(_ event: Event) {
        let counter =
            switch event {
            case .verdict(.idToken, nil): acceptedIDTokens
            case .signature(isRemembered: true): rememberedSignatures
            default: counters[event]
            }
        counter?.increment()
    }

    func count(_ operation: GraphOperation, _ error: Rejection.Code?, since began: MonotonicInstant) {
        count(.graphCall(operation, error))
        graphTimers[operation]?.recordNanoseconds(Int64(clamping: MonotonicClock.now().nanoseconds(since: began)))
    }

    /// The requests of a configured client; the names come from the operator's file, so they are bounded.
    func requests(of client: String) -> Counter {
        registry.counter("limited_login_client_requests_total", [("client", client)])
    }

    func requests(_ method: StaticString, _ path: StaticString, _ status: UInt16) -> Timer {
        let labels = [
            ("http_request_method", "\(method)"), ("http_route", "\(path)"), ("http_response_status_code", "\(status)"),
        ]
        return registry.timer("http_server_request_duration_seconds", labels)
    }
}

/// The metrics of the service. It keeps every series as long as the process, since the code bounds their label sets, and
/// renders them in the Prometheus text format, version 0.0.4.
///
/// Nothing needs escaping: names and label values are this project's words, and a client's name has only `[A-Za-z0-9._-]`.
package final class PrometheusRegistry: Sendable {
    struct Key: Hashable {
        let name: String
        let labels: String

        fileprivate var braces: String { labels.isEmpty ? "" : "{\(labels)}" }
    }

    private let all = Locked<[Key: any PrometheusSeries]>([:])
    private let help: [String: String]

    package init(help: [String: String]) { self.help = help }

    package func counter(_ name: String, _ labels: [(String, String)] = []) -> Counter { series(name, labels) }

    package func gauge(_ name: String, _ labels: [(String, String)] = []) -> Gauge { series(name, labels) }

    package func timer(_ name: String, _ labels: [(String, String)] = []) -> Timer { series(name, labels) }

    private func series<Series: PrometheusSeries>(_ name: String, _ labels: [(String, String)]) -> Series {
        let key = Key(name: name, labels: labels.map { "\($0.0)=\"\($0.1)\"" }.joined(separator: ","))
        return all.withLock { all in
            if let known = all[key] as? Series { return known }
            let made = Series()
            all[key] = made
            return made
        }
    }

    package func render() -> String {
        let all = all.withLock { $0 }
        var text = ""
        var family = ""
        for (key, value) in all.sorted(by: { ($0.key.name, $0.key.labels) < ($1.key.name, $1.key.labels) }) {
            if key.name != family {
                family = key.name
                // A number that is counted elsewhere and only read here comes as a gauge; its name tells its type.
                let type = family.hasSuffix("_total") ? "counter" : type(of: value).type
                text += "# HELP \(family) \(help[family] ?? family)\n# TYPE \(family) \(type)\n"
            }
            text += value.lines(key)
        }
        return text
    }
}

private protocol PrometheusSeries: AnyObject, Sendable {
    static var type: String { get }
    init()
    func lines(_ key: PrometheusRegistry.Key) -> String
}

extension PrometheusSeries {
    fileprivate func number(_ value: Double) -> String {
        value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : "\(value)"
    }
}

package final class Counter: PrometheusSeries {
    fileprivate static let type = "counter"
    private let count = Atomic<Int64>(0)

    fileprivate init() {}

    fileprivate var value: Int64 { count.load(ordering: .relaxed) }

    package func increment() { count.wrappingAdd(1, ordering: .relaxed) }

    fileprivate func lines(_ key: PrometheusRegistry.Key) -> String { "\(key.name)\(key.braces) \(value)\n" }
}

package final class Gauge: PrometheusSeries {
    fileprivate static let type = "gauge"
    private let bits = Atomic<UInt64>(0)

    fileprivate init() {}

    package func record(_ value: Double) { bits.store(value.bitPattern, ordering: .relaxed) }

    fileprivate func lines(_ key: PrometheusRegistry.Key) -> String {
        "\(key.name)\(key.braces) \(number(Double(bitPattern: bits.load(ordering: .relaxed))))\n"
    }
}

package final class Timer: PrometheusSeries {
    fileprivate static let type = "histogram"
    /// Upper bounds in nanoseconds: from 50 µs, because a verdict takes about that, to 10 s.
    private static let boundsNanoseconds: [Int64] = [
        50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000,
        100_000_000, 250_000_000, 500_000_000, 1_000_000_000, 2_500_000_000, 5_000_000_000, 10_000_000_000,
    ]

    private let buckets: [Counter]
    private let sum = Atomic<Int64>(0)

    fileprivate init() { buckets = (0...Self.boundsNanoseconds.count).map { _ in Counter() } }

    package func recordNanoseconds(_ duration: Int64) {
        var index = 0
        while index < Self.boundsNanoseconds.count, duration > Self.boundsNanoseconds[index] { index += 1 }
        buckets[index].increment()
        sum.wrappingAdd(max(0, duration), ordering: .relaxed)
    }

    /// The buckets are cumulative; the last one counts everything.
    fileprivate func lines(_ key: PrometheusRegistry.Key) -> String {
        let prefix = key.labels.isEmpty ? "" : key.labels + ","
        let bounds = Self.boundsNanoseconds.map { number(Double($0) / 1e9) } + ["+Inf"]
        var text = ""
        var total: Int64 = 0
        for (bucket, bound) in zip(buckets, bounds) {
            total += bucket.value
            text += "\(key.name)_bucket{\(prefix)le=\"\(bound)\"} \(total)\n"
        }
        let sum = number(Double(sum.load(ordering: .relaxed)) / 1e9)
        return text + "\(key.name)_sum\(key.braces) \(sum)\n\(key.name)_count\(key.braces) \(total)\n"
    }
}
