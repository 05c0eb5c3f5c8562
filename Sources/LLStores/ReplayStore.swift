internal import LLBytes
internal import LLHTTP
internal import LLJOSE

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
    static let handOverTime: Duration = .seconds(10)

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
    static let clockJump: Duration = .seconds(30)
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

/// The name of a nonce, a token or a proof in a store: 128 bits of a SHA-256. The original cannot be read from it.
package struct ReplayKey: Hashable, Sendable {
    /// The kind of thing that a key names. The same bytes give different keys for a nonce and for a token.
    package enum Kind: UInt8, Sendable {
        case nonce = 0x6E
        case token = 0x74
        /// A DPoP proof (RFC 9449), named within the thumbprint of its key.
        case proof = 0x70
        /// A login: a person within an app.
        case login = 0x6C
    }

    let high: UInt64
    let low: UInt64
}

extension ReplayKey {
    /// The key of these bytes; nil if OpenSSL fails.
    init?(_ kind: Kind, scope: Span<UInt8>, _ bytes: Span<UInt8>) {
        var message: [UInt8] = [kind.rawValue]
        message.reserveCapacity(scope.count + bytes.count + 9)
        // The length separates the scope from the name.
        for shift in [24, 16, 8, 0] { message.append(UInt8(truncatingIfNeeded: scope.count >> shift)) }
        for index in 0..<scope.count { message.append(scope[index]) }
        for index in 0..<bytes.count { message.append(bytes[index]) }
        guard let digest = try? SHA256.digest(of: message.span) else { return nil }
        self.init(digest.bytes.span)
    }

    /// The key from the first 16 bytes of a longer span.
    init(_ bytes: Span<UInt8>) {
        (high, low) = (bytes.word(at: 0).byteSwapped, bytes.word(at: 8).byteSwapped)
    }

    /// 32 lower-case hexadecimal digits.
    var hexadecimal: String {
        let shifts = stride(from: 56, through: 0, by: -8)
        return Hexadecimal.encode([high, low].flatMap { word in shifts.map { UInt8(truncatingIfNeeded: word >> $0) } })
    }
}

/// A nonce, token or proof that may be used once. Times are milliseconds since 1970.
package struct ReplayEntry: Equatable, Sendable {
    let kind: ReplayKey.Kind
    let key: ReplayKey
    /// The time at which it was issued. It cannot have been used before.
    let issuedAt: UInt64
    /// The time until which it must be remembered. After it, any clock refuses the entry for its age.
    let keepUntil: UInt64
    /// The device key of a proof and its person within the app: each has a number of proofs at most. Otherwise empty.
    var owners: [ReplayKey] = []
}

extension ReplayEntry {
    /// The entry that these bytes name; nil if OpenSSL fails.
    /// - Parameters:
    ///   - scope: the context in which the bytes are a unique name, such as a token's audience.
    ///   - expiresAt: the time from which it is refused for its age. It is remembered for ``ReplayLimits/expiryMargin``
    ///     longer.
    ///   - person: the person of a proof. The scope of a proof is its device key.
    package init?(
        _ kind: ReplayKey.Kind,
        scope: Span<UInt8>,
        _ bytes: Span<UInt8>,
        issuedAt: UInt64,
        expiresAt: UInt64,
        person: (app: String, user: String)? = nil
    ) {
        guard let key = ReplayKey(kind, scope: scope, bytes) else { return nil }
        self.init(kind: kind, key: key, issuedAt: issuedAt, keepUntil: expiresAt + ReplayLimits.expiryMargin)
        guard let person else { return }
        owners = [
            ReplayKey(kind, scope: scope, [UInt8]().span),
            ReplayKey(.login, scope: person.app.utf8.span, person.user.utf8.span),
        ].compactMap(\.self)
        if owners.count < 2 { return nil }
    }
}

/// The last question of a verdict to a store: remember these entries, and say whether any was already there.
package struct ReplayLookup: Equatable, Sendable {
    let entries: [ReplayEntry]

    package init(_ entries: [ReplayEntry]) { self.entries = entries }

    package func has(_ kind: ReplayKey.Kind) -> Bool { entries.contains { $0.kind == kind } }

    /// The owners of the question's proof, and the time until which the proof takes one of the places of each. It is in
    /// milliseconds of the monotonic clock, as `steady` is, and `now` in those since 1970. Nil if the question has no proof.
    func counted(at steady: UInt64, now: UInt64) -> (owners: [ReplayKey], end: UInt64)? {
        guard let entry = entries.first(where: { !$0.owners.isEmpty }) else { return nil }
        return (entry.owners, steady + min(entry.keepUntil > now ? entry.keepUntil - now : 0, ProofQuota.longest))
    }

    /// The answer to the whole question from those about its entries, in order; those after a refusal may be missing.
    func verdict(of answers: [ReplayAnswer]) -> ReplayVerdict {
        // Unavailable takes precedence: a store that failed for one entry has not judged the whole question.
        if answers.contains(.unavailable) { return .unavailable }
        guard let index = answers.firstIndex(where: { $0 != .first }) else {
            return answers.count == entries.count ? .accepted : .unavailable
        }
        return ReplayVerdict(answer: answers[index], kind: entries[index].kind)
    }
}

package enum ReplayAnswer: String, CaseIterable, Sendable {
    /// The entry was not there and is remembered from now on.
    case first
    /// The entry was already there.
    case seen
    /// The entry is older than the store's memory, so the store cannot know.
    case olderThanStore = "beyond_memory"
    /// The store could not be reached, or has no room.
    case unavailable
    /// The proof's key or person already has the greatest allowed number of remembered proofs.
    case tooMany = "too_many"
}

/// A store's answer to a whole question: the deciding answer and the kind of its entry.
package struct ReplayVerdict: Equatable, Sendable {
    package static let accepted = ReplayVerdict(answer: .first, kind: nil)
    package static let unavailable = ReplayVerdict(answer: .unavailable, kind: nil)

    package let answer: ReplayAnswer
    package let kind: ReplayKey.Kind?
    /// Seconds until there is a place again; nil unless there are too many proofs.
    package var retryAfterSeconds: Int?

    static func tooMany(_ retryAfterSeconds: Int) -> ReplayVerdict {
        ReplayVerdict(answer: .tooMany, kind: .proof, retryAfterSeconds: retryAfterSeconds)
    }
}

package enum ReplayStoreEvent: Equatable, Sendable {
    case answered(nanoseconds: UInt64)
    /// The server is usable again.
    case up(MemoryStart)
    /// The server cannot be used, for a reason that was not reported yet.
    case down(RedisFailure)
    /// The clock was ahead and is set back. Some uses cannot be judged until it reaches this moment, in milliseconds
    /// since 1970.
    case clockSetBack(until: UInt64)
    /// Logins were revoked while the clock was ahead. For tokens up to this time, in milliseconds since 1970, the store
    /// cannot tell if they are older than the revocation.
    case revokedAhead(until: UInt64)
}
