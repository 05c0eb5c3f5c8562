/// An event of a key cache, for logs and metrics.
///
/// Key IDs are chosen by the source: escape them before they are shown.
@nonexhaustive  // SE-0487
public enum JWKSetEvent: Sendable, Equatable {
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
