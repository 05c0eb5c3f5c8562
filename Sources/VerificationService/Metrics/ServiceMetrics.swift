package import CoreMetrics
package import HTTP1
package import ReplayStores

/// The service's own metrics, made once; their label values are closed sets of this code, never words from outside.
package final class ServiceMetrics: Sendable {
    /// The sentence of each metric's `# HELP` line.
    package static let help: [String: String] = [
        "limited_login_verifications_total": "Verdicts on id tokens, by result: accepted, or the code of the refusal.",
        "limited_login_client_requests_total": "Requests of each configured client.",
        "limited_login_nonces_issued_total": "Nonces issued.",
        "limited_login_replay_store_answers_total":
            "What the memory of used nonces and tokens answered: first, seen, beyond_memory or unavailable.",
        "limited_login_replay_store_answer_duration_seconds": "Time from a question to the store's answer.",
        "limited_login_replay_store_up": "1 while the store answers, else 0.",
        "limited_login_replay_store_entries": "Entries in the store in this process's memory.",
        "limited_login_replay_store_capacity": "Entries that fit into the store in this process's memory.",
        "limited_login_graph_requests_total": "Calls of Graph, by operation and result: ok, or the code of the error.",
        "limited_login_graph_request_duration_seconds": "Time a call of Graph took, tries and pauses included.",
        "http_server_request_duration_seconds": "Time from a request's first byte to its encoded answer.",
        "http_server_connections": "Connections open now, by state.",
        "http_server_connections_limit": "Connections that may be open at once.",
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

    private let accepted: Counter
    private let refused: [ProblemCode: Counter]
    private let issuedNonces: Counter
    private let replayAnswers: [ReplayAnswer: Counter]
    private let factory: any MetricsFactory

    package init(factory: any MetricsFactory) {
        self.factory = factory
        let name = "limited_login_verifications_total"
        accepted = Counter(label: name, dimensions: [("result", "accepted")], factory: factory)
        var refused: [ProblemCode: Counter] = [:]
        for code in ProblemCode.all {
            // Graph's errors are no verdicts.
            if case .graph = code { continue }
            refused[code] = Counter(label: name, dimensions: [("result", code.text)], factory: factory)
        }
        self.refused = refused
        issuedNonces = Counter(label: "limited_login_nonces_issued_total", factory: factory)
        var answers: [ReplayAnswer: Counter] = [:]
        for answer in ReplayAnswer.allCases {
            answers[answer] = Counter(
                label: "limited_login_replay_store_answers_total",
                dimensions: [("result", answer.rawValue)],
                factory: factory
            )
        }
        replayAnswers = answers
    }

    package func countAccepted() { accepted.increment() }

    package func countRefused(_ code: ProblemCode) { refused[code]?.increment() }

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
    package func duration(of route: Route, method: HTTPMethod, status: UInt16) -> Timer {
        Timer(
            label: "http_server_request_duration_seconds",
            dimensions: [
                ("http_request_method", "\(method.name)"),
                ("http_route", "\(route.path)"),
                ("http_response_status_code", "\(status)"),
            ],
            factory: factory
        )
    }
}

extension ReplayVerdict {
    /// The answer that decided.
    fileprivate var answer: ReplayAnswer {
        switch self {
        case .accepted: .first
        case .nonceUsed, .tokenReplayed: .seen
        case .nonceBeyondMemory, .tokenBeyondMemory: .beyondMemory
        case .unavailable: .unavailable
        }
    }
}
