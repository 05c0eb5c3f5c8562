/// Why a cache cannot be made or has no keys to give.
public enum JWKSetCacheError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The limits contradict each other; the sentence says which.
    case invalidLimits(String)
    /// No source was named.
    case noSources
    /// No usable keys, or not the one asked for, and none came within ``JWKSetCacheLimits/waitForFetch``; the sentence
    /// is the last failure's, or says when the sources can be asked again.
    case unavailable(String)

    /// One sentence.
    public var description: String {
        switch self {
        case .invalidLimits(let reason): "the key cache's limits are invalid: \(reason)"
        case .noSources: "the key cache has no source"
        case .unavailable(let reason): "no keys are available: \(reason)"
        }
    }
}
