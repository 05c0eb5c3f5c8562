internal import Sockets

/// Where it is remembered what was used.
package enum ReplayStore: Sendable {
    /// In this process: for one replica; answers at once.
    case memory(MemoryReplayStore)
    /// In a Redis or Valkey server: for any number of replicas; answers later, on another thread.
    case redis(RedisReplayStore)

    /// What came to be from this moment on is known, in milliseconds since 1970; nil while the store was never reached.
    package var vouchesSince: UInt64? {
        switch self {
        case .memory(let store): store.vouchesSince
        case .redis(let store): store.vouchesSince
        }
    }

    /// The date of a nonce that is issued now, so that the store will know it; nil while the store was never reached.
    /// - Parameter now: milliseconds since 1970.
    package func nonceDate(now: UInt64) -> UInt64? {
        switch self {
        case .memory(let store): store.nonceDate(now: now)
        case .redis(let store): store.vouchesSince.map { max(now, $0) }
        }
    }

    package var revocations: Revocations {
        switch self {
        case .memory(let store): store.revocations
        case .redis(let store): store.revocations
        }
    }

    /// Whether questions are answered now, as far as is known.
    package var isUp: Bool {
        switch self {
        case .memory(let store): store.count < store.capacity
        case .redis(let store): store.isUp
        }
    }
}

/// Every limit of the stores, with its default and reason. Times in milliseconds unless a name says otherwise.
package struct ReplayLimits: Sendable, Equatable {
    /// How far the clocks of replicas, store and issuer may be apart around a loss of memory. 5 s: synchronised clocks
    /// differ by milliseconds. What was issued up to so long after a memory began counts as older than it.
    static let clockMargin: UInt64 = 5_000
    /// How long past its expiry an entry is remembered, besides the verdict's own skew. 60 s: a replica whose clock is
    /// late still takes for good what the others have forgotten.
    static let expiryMargin: UInt64 = 60_000
    /// Entries the memory store holds. 100,000: with 100 bytes for each, 10 MB.
    package static let defaultCapacity = 100_000

    /// From the first byte of a connection to the end of the talk that opens it, name and TLS included. 500 ms.
    package var connectTimeout: Duration = .milliseconds(500)
    /// From the sending of a question to its answer; then the connection is given up. 500 ms.
    package var answerTimeout: Duration = .milliseconds(500)
    /// From a request's question to its answer, waiting and connecting included. 750 ms: with the rest of the request
    /// still below a second.
    package var questionTimeout: Duration = .milliseconds(750)
    /// Questions that wait to be sent. 8,192: what a second of a busy service asks.
    package var waitingQuestions = 8_192
    /// Questions sent at once. 512: the answers of a batch come together.
    package var batchQuestions = 512
    /// Batches under way. 8: beyond that the store is the bottleneck, and questions wait here.
    package var batchesUnderWay = 8
    /// Pause after a failed connection, doubled up to the greatest, less up to a half by chance. 50 ms and 1 s.
    package var firstPause: Duration = .milliseconds(50)
    package var greatestPause: Duration = .seconds(1)
    /// Age from which a connection is made anew before the next question, so that what the server says about itself
    /// (its policy for full memory, above all) is never older. 60 s.
    package var connectionAge: Duration = .seconds(60)

    /// How far ahead of the clock a revocation of Redis may be dated. 60 s, the default of the setting.
    package var revocationSkew: Duration = .seconds(60)
    /// Pause between two looks for new revocations. 1 s: with the look itself they hold everywhere within 2 s.
    package var revocationPause: Duration = .seconds(1)
    /// How far each look goes back behind the one before. 10 s: a writer has given up on an answer long before, and writes
    /// again, and synchronised clocks differ by milliseconds.
    package var revocationOverlap: Duration = .seconds(10)
    /// How far the server's clock may be from what it was reckoned to be. A quarter of the overlap: a writer's error, a
    /// reader's and the time of an exchange are together below it.
    var clockTolerance: Duration { revocationOverlap / 4 }
    /// Pause between two readings of all revocations. 10 minutes: what was lost without a sign is back by then.
    package var revocationReadingPause: Duration = .seconds(600)

    package init() {}
}

extension MonotonicInstant {
    /// Whole milliseconds.
    package var milliseconds: UInt64 { nanoseconds / 1_000_000 }
}

/// The pause after a failure: doubled each time, up to the greatest, until all is well again.
struct GrowingPause {
    private let limits: ReplayLimits
    private var length: Duration

    init(_ limits: ReplayLimits) {
        self.limits = limits
        length = limits.firstPause
    }

    /// When the pause ends that begins now; the next one is longer.
    mutating func end(from now: MonotonicInstant) -> MonotonicInstant {
        let longest = length.wholeNanoseconds
        length = min(length * 2, limits.greatestPause)
        // Replicas that lost the server together must not all come back at one moment.
        return now.adding(nanoseconds: UInt64.random(in: longest / 2...longest))
    }
}
