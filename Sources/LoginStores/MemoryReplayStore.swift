internal import Sockets

/// Remembers what was used in this process's own memory: for one replica.
///
/// It knows nothing of the time before it was made: nonces issued before are refused, tokens are not, or every start
/// would log people out. Bounded: when it is full it says so, and nothing is accepted until
/// entries expire. The one lock is held for a look-up and an insertion, and only by requests that ask.
package final class MemoryReplayStore: Sendable {
    /// The width of a bucket of entries that are forgotten together, in milliseconds: 8 s, so that a day's nonces lie in
    /// ten thousand buckets.
    private static let bucketWidth: UInt64 = 8_192

    private struct State {
        var known: Set<ReplayKey> = []
        /// The entries by the end of the bucket in which they must no longer be remembered.
        var buckets: [UInt64: [ReplayKey]] = [:]
        /// The end of the first bucket, where there is one.
        var firstBucket = UInt64.max
        /// Everything that had to be kept until before this moment may be forgotten.
        var forgottenUntil: UInt64 = 0
    }

    package let capacity: Int
    /// Nonces issued from this moment on are known, in milliseconds since 1970.
    package let vouchesSince: UInt64
    package let revocations: Revocations
    private let state = Locked(State())

    /// - Parameter now: the present in milliseconds since 1970: what came to be before may have been used.
    package init(capacity: Int = ReplayLimits.defaultCapacity, now: UInt64, revocations: Revocations = Revocations()) {
        self.capacity = capacity
        self.revocations = revocations
        vouchesSince = now &+ ReplayLimits.clockMargin
    }

    /// Entries that must be remembered at this moment, in milliseconds since 1970. None is forgotten for the question: a clock
    /// that is wrong just now would have what comes next refused.
    package func count(at now: UInt64) -> Int {
        state.withLock { state in
            guard state.firstBucket <= now else { return state.known.count }
            return state.buckets.reduce(0) { $1.key > now ? $0 + $1.value.count : $0 }
        }
    }

    /// Remembers the entries of a question, unless one cannot be accepted; at once.
    package func remember(_ question: ReplayQuestion, now: UInt64) -> ReplayVerdict {
        state.withLock { state in
            forget(&state, before: now)
            let entries = question.entries
            let areKnown = question.areBorn(nonceSince: vouchesSince, tokenSince: 0)
            let answers = zip(entries, areKnown).map { answer($0, isKnown: $1, state) }
            let verdict = question.verdict(of: answers)
            guard verdict == .accepted else { return verdict }
            // Anybody with a device makes as many proofs as they like: a quarter stays for what the backends ask.
            let room = question.has(.proof) ? capacity - capacity / 4 : capacity
            guard state.known.count + entries.count <= room else { return .unavailable }
            for entry in entries { insert(entry, &state) }
            return .accepted
        }
    }

    private func answer(_ entry: ReplayEntry, isKnown: Bool, _ state: State) -> ReplayAnswer {
        if state.known.contains(entry.key) { return .seen }
        // The clock may have been set back over what was forgotten meanwhile.
        if !isKnown || entry.keepUntil <= state.forgottenUntil { return .beyondMemory }
        return .first
    }

    private func insert(_ entry: ReplayEntry, _ state: inout State) {
        let end = (entry.keepUntil / Self.bucketWidth + 1) &* Self.bucketWidth
        state.known.insert(entry.key)
        state.buckets[end, default: []].append(entry.key)
        state.firstBucket = min(state.firstBucket, end)
    }

    private func forget(_ state: inout State, before now: UInt64) {
        guard state.firstBucket <= now else { return }
        for end in state.buckets.keys.filter({ $0 <= now }) {
            state.forgottenUntil = max(state.forgottenUntil, end)
            for key in state.buckets.removeValue(forKey: end) ?? [] { state.known.remove(key) }
        }
        state.firstBucket = state.buckets.keys.min() ?? .max
    }
}
