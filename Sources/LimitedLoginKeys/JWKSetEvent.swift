/// An event of a key cache, for logs and metrics.
///
/// Key IDs are chosen by the source: escape them before they are shown.
@nonexhaustive  // SE-0487
public enum JWKSetEvent: Sendable, Equatable, CustomStringConvertible {
    /// The reason why a fetch was begun.
    @nonexhaustive  // SE-0487
    public enum Reason: String, Sendable, CaseIterable {
        /// The cache was started.
        case start
        /// The keys are near the end of their time to live.
        case refresh
        /// The last attempt failed and its back-off is over.
        case retry
        /// A token named a key ID that is not in the set.
        case unknownKeyID
        /// A person requested it.
        case request
    }

    /// The sources are being asked.
    case fetchStarted(reason: Reason)
    /// One source failed; others may follow.
    case sourceFailed(source: String, reason: String)
    /// A source gave a set or confirmed it.
    case fetchSucceeded(source: String, changed: Bool, duration: Duration, timeToLive: Duration)
    /// No source gave a set; the keys stay as they were.
    case fetchFailed(reason: String, consecutiveFailures: Int, nextAttempt: Duration)
    /// Another key set is in force. `replaced` has the key IDs that now have another key.
    case keySetChanged(source: String, added: [String], removed: [String], replaced: [String])
    /// A key of a new set cannot be used here.
    case keyIgnored(source: String, index: Int, keyID: String?, reason: String)
    /// The cache went from one state to another.
    case phaseChanged(from: JWKSetCachePhase, to: JWKSetCachePhase)
    /// The seed file's keys are in force until a source answers.
    case seedLoaded(file: String, age: Duration)
    /// There is a seed file, but it is damaged or too old.
    case seedIgnored(file: String, reason: String)
    /// The seed file could not be written; the keys are in force nevertheless.
    case seedNotWritten(file: String, reason: String)
}

extension JWKSetEvent {
    /// How serious an event is, by the names of swift-log's levels.
    @nonexhaustive  // SE-0487
    public enum Severity: String, Sendable {
        /// The ordinary course.
        case debug
        /// Other keys are in force.
        case info
        /// The seed file's keys are in force.
        case notice
        /// A part failed; the keys are as good as before.
        case warning
        /// No source gave a set, or the keys have become too old.
        case error
    }

    /// How serious the event is.
    public var severity: Severity { line.severity }

    /// The event in a few words, the same for each of its kind.
    public var message: String { line.message }

    /// The event's facts by their names, for a log.
    public var facts: [(name: String, value: String)] { line.facts.map { ($0.key, $0.value) } }

    /// The message and the facts on one line; a value with white space is quoted.
    public var description: String {
        facts.reduce(message) { line, fact in
            "\(line) \(fact.name)=\(fact.value.contains { $0.isWhitespace } ? fact.value.debugDescription : fact.value)"
        }
    }

    private var line: (severity: Severity, message: String, facts: KeyValuePairs<String, String>) {
        func list(_ keyIDs: [String]) -> String { keyIDs.joined(separator: ",") }
        return switch self {
        case .fetchStarted(let reason): (.debug, "fetching keys", ["reason": reason.rawValue])
        case .sourceFailed(let source, let reason):
            (.warning, "key source failed", ["source": source, "reason": reason])
        case .fetchSucceeded(let source, _, let time, let left):
            (.debug, "keys fetched", ["source": source, "duration": time.inSeconds, "time_to_live": left.inSeconds])
        case .fetchFailed(let reason, let failures, let next):
            (
                .error, "keys could not be fetched",
                ["reason": reason, "consecutive_failures": "\(failures)", "next_attempt_in": next.inSeconds]
            )
        case .keySetChanged(let source, let added, let removed, let replaced):
            (
                .info, "key set changed",
                ["source": source, "added": list(added), "removed": list(removed), "replaced": list(replaced)]
            )
        case .keyIgnored(let source, let index, let keyID, let reason):
            (
                .warning, "key ignored",
                ["source": source, "index": "\(index)", "key_id": keyID ?? "-", "reason": reason]
            )
        case .phaseChanged(_, .expired):
            (.error, "the keys are too old", ["reason": "no source has confirmed them; no token can be judged"])
        case .phaseChanged(let from, let to):
            (.debug, "key cache state changed", ["from": from.rawValue, "to": to.rawValue])
        case .seedLoaded(let file, let age): (.notice, "seed keys loaded", ["file": file, "age": age.inSeconds])
        case .seedIgnored(let file, let reason): (.warning, "seed file ignored", ["file": file, "reason": reason])
        case .seedNotWritten(let file, let reason):
            (.warning, "seed file not written", ["file": file, "reason": reason])
        }
    }
}

extension Duration {
    /// For logs: seconds with three decimals, such as `52.566s`.
    fileprivate var inSeconds: String {
        let (seconds, attoseconds) = components
        let milliseconds = String((attoseconds / 1_000_000_000_000_000).magnitude)
        let zeros = String(repeating: "0", count: max(0, 3 - milliseconds.utf8.count))
        return "\(self < .zero ? "-" : "")\(seconds.magnitude).\(zeros)\(milliseconds)s"
    }
}
