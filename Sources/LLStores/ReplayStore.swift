internal import LLHTTP

/// The place in which used nonces, tokens and proofs are remembered.
package enum ReplayStore: Sendable {
    /// Memory of this process: for one replica. It answers at once.
    case memory(MemoryReplayStore)
    /// A Redis or Valkey server: for any number of replicas. It answers later, on another thread.
    case redis(RedisReplayStore)

    /// The date for a nonce that is issued now, so that the store will know it; nil until the store was first reached.
    /// - Parameter now: milliseconds since 1970.
    package func nonceDate(now: UInt64) -> UInt64? {
        switch self {
        case .memory(let store): store.nonceDate(now: now)
        case .redis(let store): store.memoryStart?.nonceDate(now)
        }
    }

    package var revocations: Revocations {
        switch self {
        case .memory(let store): store.revocations
        case .redis(let store): store.revocations
        }
    }

    /// True if the store currently answers questions, as far as it knows.
    package var isUp: Bool {
        switch self {
        case .memory(let store): store.count < store.capacity
        case .redis(let store): store.isUp
        }
    }
}

/// Every limit of the stores, with its default and reason. Times are in milliseconds unless a name says otherwise.
package struct ReplayLimits: Sendable, Equatable {
    /// The greatest difference between the clocks of replicas, store and issuer around a loss of memory. 5 s:
    /// synchronised clocks differ by milliseconds. Entries issued up to this long after a memory began count as older
    /// than it.
    static let clockMargin: UInt64 = 5_000
    /// The time for which an entry is remembered after its expiry, besides the verdict's own skew. 60 s: a replica with
    /// a late clock still accepts entries that the others have forgotten.
    static let expiryMargin: UInt64 = 60_000
    /// The least pause between two log lines about a clock that was set back: an hour.
    static let reportPause: UInt64 = 3_600_000
    /// Entries that the memory store holds. 100,000: at 100 bytes each, 10 MB.
    package static let defaultCapacity = 100_000

    /// The time for a name look-up, a connection, TLS and the opening exchange together.
    package var connectTimeout: Duration = .milliseconds(500)
    /// The time from sending a question to its answer. After it the connection is closed.
    package var answerTimeout: Duration = .milliseconds(500)
    /// The time from a request's question to its answer, including waiting. The whole request stays below a second.
    package var questionTimeout: Duration = .milliseconds(750)
    /// Questions that wait to be sent. 8,192: the questions of one second of a busy service.
    package var waitingQuestions = 8_192
    /// Questions sent at once. 512: the answers of a batch arrive together.
    package var batchQuestions = 512
    /// Batches under way. 8: with more the store is the bottleneck, and questions wait here.
    package var batchesUnderWay = 8
    /// The pause after a failed connection: see ``GrowingPause``.
    package var firstPause: Duration = .milliseconds(50)
    package var greatestPause: Duration = .seconds(1)
    /// The age from which a connection is renewed before the next question, so that the server's facts are never older.
    package var connectionAge: Duration = .seconds(60)
    /// The same with Sentinel, and so the pause between two looks at the sentinels.
    package var sentinelAge: Duration = .seconds(3)
    /// The time from the discovery of a new primary until every replica has left the former one. 7 s: a sentinel tells the
    /// others every 2 s (SENTINEL_PUBLISH_PERIOD); a replica that asks one just before takes ``connectTimeout`` to connect,
    /// stays for ``sentinelAge``, and waits ``answerTimeout`` for the answers about each of two entries.
    package var leavingTime: Duration = .seconds(7)
    /// The time since the last good answer of a cluster's node within which it may tell that it handed the keys over.
    /// 10 s: a failover of a third node in between takes longer with the usual settings.
    package var handOverTime: Duration = .seconds(10)

    /// The greatest lead of a revocation from Redis over the clock. 60 s, the default of the setting.
    package var revocationSkew: Duration = .seconds(60)
    /// The pause between two readings of new revocations. With the reading itself they apply everywhere within 2 s.
    package var revocationPause: Duration = .seconds(1)
    /// The overlap of each reading with the one before. 10 s: a writer without an answer gives up and writes again long
    /// before, and synchronised clocks differ by milliseconds.
    package var revocationOverlap: Duration = .seconds(10)
    /// The greatest difference between the server's clock and its estimate. A quarter of the overlap: a writer's error,
    /// a reader's error and the time of an exchange together stay below the overlap.
    var clockTolerance: Duration { revocationOverlap / 4 }
    /// The lead of the server's clock over its estimate from which entries count as forgotten early. 30 s: half of the time
    /// that each is kept longer than it must be (``expiryMargin``), and far more than a slow answer or a drift.
    var clockJump: Duration = .seconds(30)
    /// The pause between two readings of all revocations. 10 minutes: revocations lost without a sign are back by then.
    package var revocationReadingPause: Duration = .seconds(600)

    package init() {}
}

extension MonotonicInstant {
    package var milliseconds: UInt64 { nanoseconds / 1_000_000 }
}

/// The pause after a failure. It doubles each time, up to the greatest pause, until the connection works again.
struct GrowingPause {
    private let limits: ReplayLimits
    private var length: Duration

    init(_ limits: ReplayLimits) { (self.limits, length) = (limits, limits.firstPause) }

    /// The end of a pause that begins now. The next pause is longer.
    mutating func end(from now: MonotonicInstant) -> MonotonicInstant {
        let longest = length.wholeNanoseconds
        length = min(length * 2, limits.greatestPause)
        // Chance spreads the replicas: those that lost the server together must not all return at once.
        return now.adding(nanoseconds: UInt64.random(in: longest / 2...longest))
    }
}
