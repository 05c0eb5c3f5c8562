internal import KeySets
internal import Networking

/// What a request does whose token cannot be judged with the keys at hand: it waits, looks again, or is answered.
struct KeyWait {
    enum Outcome {
        /// Park the request, at most until this moment.
        case until(MonotonicInstant)
        /// The keys have changed since the look.
        case lookAgain
    }

    let cache: JWKSetCache
    let workerKeys: WorkerKeys

    /// No keys at all: wait for the fetch under way, or say that there are none.
    func forAnyKey(_ visit: RequestVisit, _ context: RequestContext) throws(Problem) -> Outcome {
        var retryAfter: Int?
        if visit != .expired {
            switch cache.keysUnavailable(
                seenEpoch: workerKeys.snapshot.epoch,
                waitingSince: context.firstByteAt,
                now: context.now
            ) {
            case .wait(let moment): return .until(moment)
            case .lookAgain: return .lookAgain
            case .unavailable(let seconds): retryAfter = seconds
            }
        }
        throw Problem(
            .keysUnavailable,
            "The issuer's keys could not be fetched; try again shortly.",
            retryAfter: retryAfter
        )
    }

    /// A key ID that is not in the set: the issuer may have rotated, so its set is asked for once more, within a
    /// budget. `problem` is what the token is refused with when the issuer has no such key.
    func forKey(
        _ keyID: Span<UInt8>,
        _ problem: Problem,
        _ visit: RequestVisit,
        _ context: RequestContext
    ) throws(Problem) -> Outcome {
        var retryAfter: Int?
        if visit != .expired {
            switch cache.unknownKeyID(
                keyID,
                seenEpoch: workerKeys.snapshot.epoch,
                waitingSince: context.firstByteAt,
                now: context.now
            ) {
            case .wait(let moment): return .until(moment)
            case .lookAgain: return .lookAgain
            case .unknown: throw problem
            case .unavailable(let seconds): retryAfter = seconds
            }
        }
        // Nobody could tell whether the key exists: an outage is never the token's fault.
        throw Problem(
            .keysUnavailable,
            "The token's key is not cached and the issuer's keys could not be fetched.",
            retryAfter: retryAfter
        )
    }

    /// The keys changed with every look.
    static var restless: Problem {
        Problem(.keysUnavailable, "The issuer's keys are changing; try again shortly.")
    }
}
