/// Every limit of the Graph client, with its default and reason.
package struct GraphLimits: Sendable, Equatable {
    /// One call, retries and all. 5 s: Graph answers within one; who waits for the service waits no longer.
    package var callTimeout: Duration = .seconds(5)
    /// Tries of an idempotent call that fails transiently. 3: more would add to the load of a service that is down.
    package var attemptCount = 3
    /// The longest pause before the second try; doubled for each one more, and drawn at random from there down to none.
    /// 200 ms: most transient faults are over by then.
    package var firstPause: Duration = .milliseconds(200)
    /// Bytes of an answer. 64 KiB: a list of a person's permissions takes 2.
    package var bodyBytes = 64 * 1024
    /// Bytes of an answer about a person. 256 KiB: the ids of ``friendCount`` friends take 100.
    package var profileBytes = 256 * 1024
    /// Friends that are asked for. 2,000: their ids fit into one answer of the service, which may be 64 KiB.
    package var friendCount = 2_000
    /// Permissions in an answer. 512: Facebook has fewer.
    package var permissionCount = 512
    /// Bytes of a `fbtrace_id` that are passed on. 64: real ones have 23.
    package var traceIDBytes = 64
    /// Seconds to wait where Graph is asked too often and its answer does not say how long. 60: its windows slide over
    /// an hour, and a minute frees some of it.
    package var defaultRetryAfterSeconds = 60
    /// The most seconds an answer can make callers wait. A day: the longest of Graph's windows.
    package var greatestRetryAfterSeconds = 86_400

    package init() {}
}
