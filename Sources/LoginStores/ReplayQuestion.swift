internal import Bytes
internal import OpenSSL
internal import Sockets

/// What stands for a nonce, a token or a proof in a store: 128 bits of a SHA-256, from which neither can be read.
package struct ReplayKey: Hashable, Sendable {
    /// What a key is made of; the same bytes as a nonce and as a token's name are two keys.
    package enum Kind: UInt8, Sendable {
        case nonce = 0x6E
        case token = 0x74
        /// A DPoP proof (RFC 9449), within the thumbprint of its key.
        case proof = 0x70
        /// A login: a person within an app.
        case login = 0x6C
    }

    let high: UInt64
    let low: UInt64
}

extension ReplayKey {
    /// The key of these bytes; nil where OpenSSL fails.
    init?(_ kind: Kind, scope: Span<UInt8>, _ bytes: Span<UInt8>) {
        var message: [UInt8] = [kind.rawValue]
        message.reserveCapacity(scope.count + bytes.count + 9)
        // The length keeps scope and name apart.
        for shift in [24, 16, 8, 0] { message.append(UInt8(truncatingIfNeeded: scope.count >> shift)) }
        for index in 0..<scope.count { message.append(scope[index]) }
        for index in 0..<bytes.count { message.append(bytes[index]) }
        guard let digest = try? SHA256.digest(of: message.span) else { return nil }
        self.init(digest.bytes.span)
    }

    /// The key of 16 bytes or more.
    init(_ bytes: Span<UInt8>) {
        (high, low) = (bytes.word(at: 0).byteSwapped, bytes.word(at: 8).byteSwapped)
    }

    /// 32 lower-case hexadecimal digits in ASCII.
    var hexadecimal: [UInt8] {
        [high, low].flatMap { word in
            stride(from: 60, through: 0, by: -4).map { Hexadecimal.digit(UInt8(truncatingIfNeeded: word >> $0)) }
        }
    }
}

/// One thing that may be used once. Times are milliseconds since 1970.
package struct ReplayEntry: Equatable, Sendable {
    let kind: ReplayKey.Kind
    let key: ReplayKey
    /// When it came to be: it cannot have been used before.
    let bornAt: UInt64
    /// Until when it must be remembered: from then on it is refused for its age, by whatever clock.
    let keepUntil: UInt64
    /// The device key of a proof: each may have so many. Nil for what is not counted.
    var owner: ReplayKey?
}

extension ReplayEntry {
    /// What these bytes name; nil where OpenSSL fails.
    /// - Parameters:
    ///   - scope: what the bytes are a name within, such as a token's audience.
    ///   - expiresAt: from when on it is refused for its age; it is remembered for ``ReplayLimits/expiryMargin`` longer.
    package init?(_ kind: ReplayKey.Kind, scope: Span<UInt8>, _ bytes: Span<UInt8>, bornAt: UInt64, expiresAt: UInt64) {
        guard let key = ReplayKey(kind, scope: scope, bytes) else { return nil }
        var owner: ReplayKey?
        if kind == .proof {
            owner = ReplayKey(kind, scope: scope, [UInt8]().span)
            if owner == nil { return nil }
        }
        let keepUntil = expiresAt + ReplayLimits.expiryMargin
        self.init(kind: kind, key: key, bornAt: bornAt, keepUntil: keepUntil, owner: owner)
    }
}

/// What a verdict asks a store last of all: remember these, and say whether any was there already.
package struct ReplayQuestion: Equatable, Sendable {
    let entries: [ReplayEntry]

    /// - Parameter entries: in the order in which they are asked about; a refused one leaves those behind it unused.
    package init(_ entries: [ReplayEntry]) { self.entries = entries }

    package func has(_ kind: ReplayKey.Kind) -> Bool { entries.contains { $0.kind == kind } }

    /// The key of the proof in the question, and until when the proof takes one of its places, in milliseconds of the
    /// monotonic clock; nil where there is no proof.
    /// - Parameters:
    ///   - steady: the present by that clock.
    ///   - now: the present in milliseconds since 1970.
    func counted(at steady: UInt64, now: UInt64) -> (owner: ReplayKey, end: UInt64)? {
        for entry in entries {
            guard let owner = entry.owner else { continue }
            return (owner, steady + (entry.keepUntil > now ? entry.keepUntil - now : 0))
        }
        return nil
    }

    /// For each entry, in their order, whether it came to be at these moments or later.
    /// - Parameter tokenSince: also a proof's. It is made elsewhere too, so that only a known loss of memory makes those
    ///   from before count as used.
    func areBorn(nonceSince: UInt64, tokenSince: UInt64) -> [Bool] {
        entries.map { $0.bornAt >= ($0.kind == .nonce ? nonceSince : tokenSince) }
    }

    /// The answer for the whole, from those about each entry, in their order; none need follow a refusal.
    func verdict(of answers: [ReplayAnswer]) -> ReplayVerdict {
        // What cannot be known comes first: a store that failed for one half has not judged the whole.
        if answers.contains(.unavailable) { return .unavailable }
        guard let index = answers.firstIndex(where: { $0 != .first }) else {
            return answers.count == entries.count ? .accepted : .unavailable
        }
        return ReplayVerdict(answer: answers[index], kind: entries[index].kind)
    }
}

/// What a store says about one entry.
package enum ReplayAnswer: String, CaseIterable, Sendable {
    /// It was not there, and is from now on.
    case first
    /// It was there.
    case seen
    /// It is older than the store's memory, which therefore cannot know.
    case beyondMemory = "beyond_memory"
    /// The store could not be asked, or has no room.
    case unavailable
    /// The proof's key has as many remembered proofs as one key may have.
    case tooMany = "too_many"
}

/// What a store says about a whole question: the answer that decided, and about what.
package struct ReplayVerdict: Equatable, Sendable {
    package static let accepted = ReplayVerdict(answer: .first, kind: nil)
    package static let unavailable = ReplayVerdict(answer: .unavailable, kind: nil)

    package let answer: ReplayAnswer
    package let kind: ReplayKey.Kind?
    /// When there will be a place again, in seconds; nil unless there are too many.
    package var retryAfterSeconds: Int?

    static func tooMany(_ retryAfterSeconds: Int) -> ReplayVerdict {
        ReplayVerdict(answer: .tooMany, kind: .proof, retryAfterSeconds: retryAfterSeconds)
    }
}

/// A question on its way through the store, and what to do with its answer.
struct WaitingQuestion: Sendable {
    let question: ReplayQuestion
    let askedAt: MonotonicInstant
    let deadline: MonotonicInstant
    let observe: @Sendable (ReplayStoreEvent) -> Void
    let completion: @Sendable (ReplayVerdict) -> Void

    /// Gives the answer, once.
    /// - Parameter answers: one for each entry, up to a refusal; none where the store could not be asked.
    func answer(_ answers: [ReplayAnswer], now: MonotonicInstant) {
        let all = answers.isEmpty ? question.entries.map { _ in .unavailable } : answers
        for _ in all { observe(.answered(nanoseconds: now.nanoseconds(since: askedAt))) }
        completion(question.verdict(of: all))
    }
}

/// What happens in a store, for logs and metrics.
package enum ReplayStoreEvent: Equatable, Sendable {
    /// One entry was asked about.
    case answered(nanoseconds: UInt64)
    /// The server can be relied on again.
    case up(RedisLife)
    /// The server cannot be used, for a reason that was not told yet.
    case down(RedisFailure)
    /// The clock was ahead and is set back: until this moment of it, in milliseconds since 1970, some uses cannot be judged.
    case clockSetBack(until: UInt64)
}
