package import CoreMetrics
internal import Graph
package import HTTP1
internal import LimitedLogin
package import LoginStores
internal import Sockets

/// The service's own metrics, made once; their label values are closed sets of this code, never words from outside.
package final class ServiceMetrics: Sendable {
    /// The sentence of each metric's `# HELP` line.
    package static let help: [String: String] = [
        "limited_login_signature_cache_lookups_total":
            "Looks into the memory of good signatures: hit (no RSA operation) or miss.",
        "limited_login_verifications_total":
            "Verdicts by credential (id_token, access_token) and result: accepted, or the code of the refusal.",
        "limited_login_client_requests_total": "Requests of each configured client.",
        "limited_login_nonces_issued_total": "Nonces issued.",
        "limited_login_replay_store_answers_total":
            "What the memory of used nonces and tokens answered: first, seen, beyond_memory or unavailable.",
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
        "http_server_request_duration_seconds": "Time from a request's first byte to its encoded answer.",
        "http_server_connections": "Connections open now, by state.",
        "http_server_connections_limit": "Connections that may be open at once.",
        "http_server_connections_memory_bytes": "Memory that connections take now.",
        "http_server_connections_memory_limit_bytes": "Memory that connections may take; beyond it the largest close.",
        "http_server_workers": "Event loops that serve requests, each on a core of its own.",
        "http_server_connections_closed_total": "Connections closed, by cause.",
        "jwks_fetches_total": "Fetches of the JWK Set, by result.",
        "jwks_keys": "Keys in force.",
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

    private struct Verdict: Hashable {
        let credential: Credential
        /// Nil for a token that was accepted.
        let refusal: ProblemCode?
    }

    private let verdicts: [Verdict: Counter]
    private let acceptedIDTokens: Counter?
    private let signatureHits: Counter
    private let signatureMisses: Counter
    private let issuedNonces: Counter
    private let replayAnswers: [ReplayAnswer: Counter]
    /// Those of Facebook's callbacks.
    package let callbacks: CallbackMetrics
    private let factory: any MetricsFactory

    package init(factory: any MetricsFactory) {
        self.factory = factory
        verdicts = factory.counters("limited_login_verifications_total", Self.verdicts) { verdict in
            [("credential", verdict.credential.rawValue), ("result", verdict.refusal?.text ?? "accepted")]
        }
        acceptedIDTokens = verdicts[Verdict(credential: .idToken, refusal: nil)]
        let lookups = "limited_login_signature_cache_lookups_total"
        signatureHits = Counter(label: lookups, dimensions: [("result", "hit")], factory: factory)
        signatureMisses = Counter(label: lookups, dimensions: [("result", "miss")], factory: factory)
        issuedNonces = Counter(label: "limited_login_nonces_issued_total", factory: factory)
        replayAnswers = factory.counters("limited_login_replay_store_answers_total", ReplayAnswer.allCases) {
            [("result", $0.rawValue)]
        }
        callbacks = CallbackMetrics(factory: factory)
    }

    /// All that may come of a credential: every series is there from the start.
    private static var verdicts: [Verdict] {
        // Graph's errors are no verdicts on an id token.
        let ofIDTokens = ProblemCode.all.filter {
            if case .graph = $0 { false } else { !ProblemCode.ofAccessTokens.contains($0) }
        }
        let ofAccessTokens =
            ProblemCode.ofAccessTokens + ProblemCode.ofGraphAboutAccessTokens + [
                .rejectedToken(.invalidAudience), .rejectedToken(.subjectMismatch), .rejectedToken(.tokenReplayed),
                .rejectedToken(.loginRevoked),
                .invalidRequest, .invalidPermission, .unknownApp, .overloaded, .replayStoreUnavailable, .internalError,
            ]
        let results = [(Credential.idToken, ofIDTokens), (.accessToken, ofAccessTokens)]
        return results.flatMap { credential, codes in
            ([nil] + codes.map(Optional.some)).map { Verdict(credential: credential, refusal: $0) }
        }
    }

    /// Counts a verdict.
    /// - Parameter refusal: nil for a token that was accepted.
    func count(_ credential: Credential, _ refusal: ProblemCode?) {
        let isAcceptedIDToken = refusal == nil && credential == .idToken
        let counter = isAcceptedIDToken ? acceptedIDTokens : verdicts[Verdict(credential: credential, refusal: refusal)]
        counter?.increment()
    }

    /// Counts a look into a worker's memory of good signatures.
    package func countSignature(isRemembered: Bool) {
        (isRemembered ? signatureHits : signatureMisses).increment()
    }

    package func countIssuedNonce() { issuedNonces.increment() }

    /// Counts what a store said about one question.
    package func countReplayAnswer(_ verdict: ReplayVerdict) { replayAnswers[verdict.answer]?.increment() }

    /// Counts a request of a configured client; the names come from the operator's file, so they are bounded.
    package func countRequest(client: String) {
        Counter(label: "limited_login_client_requests_total", dimensions: [("client", client)], factory: factory)
            .increment()
    }

    /// Those of the calls of Graph; asked for where there are such calls.
    package func graph() -> GraphMetrics { GraphMetrics(factory: factory) }

    /// The durations of one kind of request; kept by the worker, so that the labels are joined once.
    package func duration(of path: StaticString, method: HTTPMethod, status: UInt16) -> Timer {
        Timer(
            label: "http_server_request_duration_seconds",
            dimensions: [
                ("http_request_method", "\(method.name)"),
                ("http_route", "\(path)"),
                ("http_response_status_code", "\(status)"),
            ],
            factory: factory
        )
    }
}

extension MetricsFactory {
    /// A counter for each key.
    fileprivate func counters<Key: Hashable>(
        _ label: String,
        _ keys: [Key],
        _ dimensions: (Key) -> [(String, String)]
    ) -> [Key: Counter] {
        let counters = keys.map { ($0, Counter(label: label, dimensions: dimensions($0), factory: self)) }
        return Dictionary(counters) { first, _ in first }
    }
}

extension ReplayVerdict {
    /// The answer that decided.
    fileprivate var answer: ReplayAnswer {
        switch self {
        case .accepted: .first
        case .nonceUsed, .tokenReplayed, .proofReplayed: .seen
        case .nonceBeyondMemory, .tokenBeyondMemory, .proofBeyondMemory: .beyondMemory
        case .unavailable: .unavailable
        }
    }
}

/// The counts and durations of the calls of Graph; every series is there from the start, so that the first error of its
/// kind is an increase too.
package final class GraphMetrics: Sendable {
    private struct Key: Hashable {
        let operation: GraphCall.Operation
        /// Nil for a call that did as asked.
        let error: GraphError?
    }

    private let counters: [Key: Counter]
    private let timers: [GraphCall.Operation: Timer]

    init(factory: any MetricsFactory) {
        let errors = [nil] + GraphError.allCases.map(Optional.some)
        let keys = GraphCall.Operation.allCases.flatMap { operation in
            errors.map { Key(operation: operation, error: $0) }
        }
        counters = factory.counters("limited_login_graph_requests_total", keys) {
            [("operation", $0.operation.rawValue), ("result", $0.error?.rawValue ?? "ok")]
        }
        var timers: [GraphCall.Operation: Timer] = [:]
        for operation in GraphCall.Operation.allCases {
            timers[operation] = Timer(
                label: "limited_login_graph_request_duration_seconds",
                dimensions: [("operation", operation.rawValue)],
                factory: factory
            )
        }
        self.timers = timers
    }

    /// Makes a call, and counts it and how long it took, tries and pauses included.
    func counted<Answer>(
        _ operation: GraphCall.Operation,
        _ call: () throws(GraphFailure) -> Answer
    ) throws(GraphFailure) -> Answer {
        let began = MonotonicClock.now()
        var failure: GraphError?
        defer {
            counters[Key(operation: operation, error: failure)]?.increment()
            timers[operation]?.recordNanoseconds(Int64(clamping: MonotonicClock.now().nanoseconds(since: began)))
        }
        do throws(GraphFailure) {
            return try call()
        } catch {
            failure = error.error
            throw error
        }
    }
}

/// One worker's timers, found by route, method and status without joining labels again.
final class RequestDurations {
    private struct Key: Hashable {
        let route: Int
        let method: HTTPMethod
        let status: UInt16
    }

    private let metrics: ServiceMetrics
    private var timers: [Key: Timer] = [:]
    /// The timer of the request before: nearly always the next one's too.
    private var latest: (key: Key, timer: Timer)?

    init(metrics: ServiceMetrics) { self.metrics = metrics }

    /// - Parameters:
    ///   - route: a number for each path.
    ///   - path: the label of that number.
    func record(
        _ nanoseconds: UInt64,
        route: Int,
        path: @autoclosure () -> StaticString,
        method: HTTPMethod,
        status: UInt16
    ) {
        let key = Key(route: route, method: method, status: status)
        let amount = Int64(clamping: nanoseconds)
        if let latest, latest.key == key {
            latest.timer.recordNanoseconds(amount)
            return
        }
        let timer = timers[key] ?? metrics.duration(of: path(), method: method, status: status)
        timers[key] = timer
        latest = (key, timer)
        timer.recordNanoseconds(amount)
    }
}

/// The counts of Facebook's callbacks and of the webhooks they cause; every series is there from the start, so that the
/// first failure of its kind is an increase too.
package final class CallbackMetrics: Sendable {
    /// What a callback can be answered: nil is 200.
    private static let answers: [ProblemCode?] = [
        nil, .invalidSignedRequest, .callbackNotDelivered, .replayStoreUnavailable, .overloaded,
    ]

    private let callbacks: [CallbackKind: [ProblemCode?: Counter]]
    private let deliveries: [WebhookFailure.Reason?: Counter]

    package init(factory: any MetricsFactory) {
        var callbacks: [CallbackKind: [ProblemCode?: Counter]] = [:]
        for kind in CallbackKind.allCases {
            callbacks[kind] = factory.counters("limited_login_callbacks_total", Self.answers) {
                [("callback", kind.rawValue), ("result", $0?.text ?? "accepted")]
            }
        }
        self.callbacks = callbacks
        let reasons = [nil] + WebhookFailure.Reason.allCases.map(Optional.some)
        deliveries = factory.counters("limited_login_webhooks_total", reasons) {
            [("result", $0?.rawValue ?? "delivered")]
        }
    }

    /// Counts a callback by its answer; nil is 200. Requests that are no callbacks at all are not counted.
    func count(_ kind: CallbackKind, _ answer: ProblemCode?) { callbacks[kind]?[answer]?.increment() }

    /// Counts a delivery, its attempts together; nil is one that the backend took.
    func countDelivery(_ reason: WebhookFailure.Reason?) { deliveries[reason]?.increment() }
}
