internal import LLHTTP

/// The time since which a server's memory is complete, as a key of the server holds it.
package struct MemoryStart: Hashable, Sendable {
    /// Entries issued at this time or later are known. Milliseconds since 1970. It lies ``ReplayLimits/clockMargin``
    /// after the moment at which the memory began, for clocks that differ.
    package let completeSince: UInt64
    /// True if there was a memory before it.
    package let isAfterLoss: Bool

    /// The date for a nonce that is issued now, so that the memory will know the nonce.
    func nonceDate(_ now: UInt64) -> UInt64 { max(now, completeSince) }

    /// True if an earlier use of this entry would be known. Tokens and proofs come from other services, and tokens live
    /// longer than a nonce's minutes: a first start must not refuse them, so only a known loss makes early ones count as
    /// used.
    func knows(_ entry: ReplayEntry) -> Bool {
        entry.issuedAt >= completeSince || entry.kind != .nonce && !isAfterLoss
    }
}

/// The decision whether a server's memory is whole: a pure function.
///
/// A restarted server may have lost its data, and a server that took over from another may never have had them. Each
/// run of a server therefore has a key with the start of its memory. The first replica that sees a new run writes the
/// key, and all others read it. A second key holds the start for the data as a whole, which may move to other servers.
enum MemoryJudgement: Equatable {
    /// The memory is the one that the run's key tells.
    case continues(MemoryStart)
    /// The server has all data of the memory before it. Its own run has no key yet.
    case movedIntact(MemoryStart)
    /// Data may be lost, or there was no memory: one begins here.
    case lost(MemoryStart)

    /// This process's knowledge of the server that it used last.
    struct Known: Hashable {
        /// The same as ``RedisServerFacts/identity``.
        let identity: String
        let start: MemoryStart
        /// The time of the server's last good answer by this machine's clock, in milliseconds since 1970.
        var answeredAt: UInt64
    }

    /// The facts that the present server tells.
    struct Reported: Hashable {
        var identity: String
        var runID: String
        /// True if the data cannot come from another server by replication.
        var hasOwnData: Bool
        /// True if each write is on the server's disk before its answer.
        var writesThrough = false
        /// True if the server's clock ran ahead of time, so that it forgot entries early.
        var hasJumped = false
        /// The later of the server's time, without a jump, and this machine's. Milliseconds since 1970.
        var now: UInt64
        /// The distance of a new memory's start from the present.
        var lead = ReplayLimits.clockMargin
        /// The key of this run; nil if it holds no start.
        var run: MemoryStart?
        var data: MemoryStart?
        /// The key of the last run that this process knew.
        var last = LastRun.absent
    }

    enum LastRun: Hashable {
        case absent
        case start(MemoryStart)
        /// A replica knew that all data went to the present server.
        case moved
    }

    /// The relation of the present server to the one that this process used last.
    enum Move: CaseIterable {
        /// It has the same place, or no server was used before.
        case none
        /// The last server itself tells that it handed over all data.
        case proven
        case unproven
        /// Entries are known to be lost on the way.
        case broken
    }

    /// The longest time for which a memory of this process counts beyond the present: an hour, the life of an ID token.
    /// This machine's clock may have been far ahead.
    static let greatestLead: UInt64 = 3_600_000

    static func judge(known: Known?, reported: Reported, moved: Move) -> MemoryJudgement {
        let isIntact = !reported.hasJumped && moved != .broken
        // After a loss, a memory must begin after every date of an entry that this process may have seen used.
        let least: UInt64?
        if let known {
            let answered = known.identity == reported.identity ? 0 : known.answeredAt + ReplayLimits.clockMargin
            least = min(max(known.start.completeSince + 1, answered), reported.now + greatestLead)
        } else {
            least = isIntact ? nil : reported.now
        }
        let present = reported.now + reported.lead
        // An older key is from a time when the data were here before.
        let run = reported.run.flatMap { $0.completeSince >= reported.data?.completeSince ?? 0 ? $0 : nil }
        if let run {
            if isIntact, continues(run, known, reported, moved) { return .continues(run) }
            // Another replica noticed the loss first. It may have noticed only an earlier one if the clock jumped since.
            if let least, run.isAfterLoss, run.completeSince >= max(least, isIntact ? 0 : present) {
                return .continues(run)
            }
        } else if isIntact, let data = reported.data, isMovedIntact(known, reported, moved) {
            var all = [data]
            if let known { all.append(known.start) }
            if case .start(let last) = reported.last { all.append(last) }
            let start = all.reduce(0) { max($0, $1.completeSince) }
            return .movedIntact(MemoryStart(completeSince: start, isAfterLoss: all.contains(where: \.isAfterLoss)))
        }
        let start = max(present, least ?? 0, reported.data.map { $0.completeSince + 1 } ?? 0)
        let isAfterLoss = known != nil || reported.data != nil || moved == .broken
        return .lost(MemoryStart(completeSince: start, isAfterLoss: isAfterLoss))
    }

    /// True if the run's key is true also for this process's last memory.
    private static func continues(_ run: MemoryStart, _ known: Known?, _ reported: Reported, _ moved: Move) -> Bool {
        guard let known else { return true }
        if known.identity == reported.identity { return known.start == run }
        switch reported.last {
        case .absent: return false
        case .moved: return true
        case .start:
            if moved == .proven { return true }
            // A primary without replicas drops the name of its history after an hour. Nothing is lost by that.
            if reported.hasOwnData, known.identity.hasPrefix(reported.runID) { return known.start == run }
            return isOnDisk(reported, moved)
        }
    }

    /// True if a new run has all data of the last memory.
    private static func isMovedIntact(_ known: Known?, _ reported: Reported, _ moved: Move) -> Bool {
        let isOnDisk = reported.run == nil && isOnDisk(reported, moved)
        guard known != nil else { return isOnDisk }
        // The data are handed over once: if another replica marked the last run, this run's key was lost since.
        guard case .start = reported.last else { return false }
        return moved == .proven || isOnDisk
    }

    /// True if the server started again with all its data.
    private static func isOnDisk(_ reported: Reported, _ moved: Move) -> Bool {
        reported.hasOwnData && reported.writesThrough && moved == .none
    }
}
