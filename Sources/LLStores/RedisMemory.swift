internal import LLBytes
internal import LLHTTP

/// One replica's knowledge of its server's memory, and every decision that follows from it: a state machine without a
/// clock and without a connection. ``MemoryJudgement`` is its central table.
///
/// A connection begins with ``meet(_:ask:)``. Each batch of questions ends with ``checks``. They ask whether the start of the
/// memory and the history of the data are still the known ones, and whether the server's clock has jumped ahead. The other
/// answers of a batch count only if all is well. Data that were emptied, replaced or forgotten early meanwhile therefore
/// never make a used nonce look new. The checks are needed because a connection stays open while its server becomes a
/// replica and then a primary again.
struct RedisMemory: Hashable {
    struct Meeting: Hashable {
        let node: RedisNode
        let facts: RedisServerFacts
        /// The name of the last owner's history, if it handed the keys over; see ``RedisFinder``.
        var handedOverBy: String?
        var writesThrough = false
        let clock: ServerClock
        /// This machine's clock.
        let unixMilliseconds: UInt64
    }

    let keys: RedisKeys
    let isInCluster: Bool
    /// With Sentinel the same as ``ReplayLimits/leavingTime``, otherwise zero: a cluster's nodes hand a slot over in one
    /// step, and a single server has no successor.
    private let leavingTime: Duration
    /// The server that this process used last, or uses.
    private(set) var last: RedisLastServer?
    private(set) var slotMove: SlotMove?
    /// A new server that is not trusted yet, because other replicas may still use the former one. `answeredAt` is the
    /// time of its first answer.
    private var arrival: RedisLastServer?
    /// True if the last server's clock jumped, so that it forgot entries, which no move brings back.
    private var hasJumped = false

    init(_ kind: ReplayStoreURL.Kind, _ limits: ReplayLimits) {
        keys = RedisKeys(kind)
        isInCluster = kind == .cluster
        if case .sentinel = kind { leavingTime = limits.leavingTime } else { leavingTime = .zero }
    }

    /// The start by which nonces are dated: the memory of the server that will judge them.
    var start: MemoryStart? { (arrival ?? last)?.known.start }

    /// The last server if no third one can have had the keys since.
    func recent(at now: MonotonicInstant) -> RedisLastServer? {
        last.flatMap { now < $0.answeredAt + ReplayLimits.handOverTime ? $0 : nil }
    }

    /// The answer about an entry if the server need not be asked.
    func answer(about entry: ReplayEntry, now: UInt64) -> ReplayAnswer? {
        guard let start = last?.known.start else { return .unavailable }
        guard start.knows(entry) else { return .olderThanStore }
        // The nonce was made for the memory of a successor, which this replica has not found yet.
        let isAhead = entry.kind == .nonce && entry.issuedAt > max(now, start.completeSince) + ReplayLimits.clockMargin
        return leavingTime > .zero && isAhead ? .unavailable : nil
    }

    /// The commands that end each batch.
    var checks: [[String]] {
        // The owner of a slot that moves has no answer about a missing key.
        (isInCluster ? [["GET", keys.absent]] : [])
            + [["GET", keys.run(last?.known.identity ?? "")], ["TIME"], ["INFO", "replication"]]
    }

    /// The node tells that the slot of the keys is on its way to another, which has this identity if it tells one.
    mutating func noteMove(from node: RedisNode, to target: RedisNode, identity: String?, now: MonotonicInstant) {
        if slotMove == nil {
            let first = recent(at: now) == nil ? nil : identity
            slotMove = SlotMove(target: target, identity: first, since: last?.answeredAt ?? now)
        } else if slotMove?.target != target {
            slotMove?.isBroken = true
        }
        // The owner still has the slot, so no third server can have had it since.
        if last?.node == node { last?.answeredAt = now }
    }

    // MARK: The beginning of a connection

    /// Judges the server, and writes its keys until they tell the judgement: the other replicas read them.
    /// - Throws: the reason why the server is not trusted, or not yet.
    mutating func meet(
        _ meeting: Meeting,
        ask: (_ words: [String]) throws(RedisFailure) -> RedisReply
    ) throws(RedisFailure) {
        let (facts, moved) = (meeting.facts, moved(meeting))
        let (run, former) = (keys.run(facts.identity), last.map { keys.run($0.known.identity) })
        var reported = reported(meeting)
        for reading in 1...5 {
            if let former { reported.last = MemoryJudgement.LastRun(try ask(["GET", former])) }
            let found = try ask(["GET", run])
            reported.run = MemoryStart(found)
            reported.data = MemoryStart(try ask(["GET", keys.data]))
            // One of several replicas that see a new run at once writes the key.
            let onlyIfMissing = found == .null ? ["NX"] : []
            switch MemoryJudgement.judge(known: last?.known, reported: reported, moved: moved) {
            case .continues(let start):
                let server = RedisLastServer(start, meeting)
                try settle(server)
                (last, slotMove, arrival, hasJumped) = (server, nil, nil, false)
                guard reported.data != start else { return }
                // The server may drop the name of its history later.
                let names = [keys.data] + (facts.history == nil ? [] : [keys.run(facts.runID)])
                for name in names { _ = try ask(["SET", name, start.text]) }
                return
            case .movedIntact(let start):
                _ = try ask(["SET", run, start.text] + onlyIfMissing)
                if let former { _ = try ask(["SET", former, RedisKeys.movedMark]) }
            // At first another replica may know better, and be about to write.
            case .lost(let start):
                if reading > 1 { _ = try ask(["SET", run, start.text] + onlyIfMissing) }
            }
        }
        throw .memoryLost
    }

    /// With Sentinel, waits until every replica must have left the former server, which may take writes for longer. A
    /// memory that began long ago needs no wait.
    private mutating func settle(_ server: RedisLastServer) throws(RedisFailure) {
        let (known, since) = (server.known, arrival?.answeredAt)
        guard leavingTime > .zero, last?.known.identity != known.identity,
            known.start.completeSince > known.answeredAt + ReplayLimits.clockMargin
        else { return }
        let isWaiting = arrival?.known.identity == known.identity
        arrival = server
        if let since, isWaiting { arrival?.answeredAt = since }
        guard isWaiting, let since, server.answeredAt >= since + leavingTime else { throw .newPrimary }
    }

    private func reported(_ meeting: Meeting) -> MemoryJudgement.Reported {
        // Another server's clock may differ.
        let isSame = last?.node == meeting.node || last?.known.identity == meeting.facts.identity
        let (before, clock) = (isSame ? last?.clock : nil, meeting.clock)
        let hasJumped = self.hasJumped || before?.hasJumped(to: clock) ?? false
        let serverTime = hasJumped ? before?.time(at: clock.at) ?? 0 : clock.milliseconds
        return MemoryJudgement.Reported(
            identity: meeting.facts.identity,
            hasOwnData: meeting.facts.history == nil,
            writesThrough: meeting.writesThrough,
            hasJumped: hasJumped,
            now: max(meeting.unixMilliseconds, serverTime),
            lead: leavingTime == .zero
                ? ReplayLimits.clockMargin : ReplayLimits.clockMargin * 2 + leavingTime.wholeNanoseconds / 1_000_000
        )
    }

    private func moved(_ meeting: Meeting) -> MemoryJudgement.Move {
        if let slotMove, slotMove.isBroken(at: meeting.node, meeting.facts, now: meeting.clock.at) { return .broken }
        // A replica of the last owner would have taken over that server's history.
        if let name = meeting.handedOverBy, meeting.facts.formerReplicationID != name { return .proven }
        return last?.node ?? meeting.node == meeting.node ? .none : .unproven
    }

    // MARK: A batch of questions

    /// Takes the answers of a batch, with those to ``checks`` at its end.
    /// - Throws: the reason why none of them counts.
    mutating func check(
        _ replies: [RedisReply],
        sentAt: MonotonicInstant,
        now: MonotonicInstant,
        unixMilliseconds: UInt64
    ) throws(RedisFailure) {
        let own = Array(replies.suffix(3))
        guard let last, own.count == 3, let time = own[1].serverMicroseconds, let info = own[2].text else {
            throw .malformedAnswer
        }
        // The server read its clock after the question was sent.
        let clock = ServerClock(milliseconds: time / 1_000, at: sentAt)
        guard !last.clock.hasJumped(to: ServerClock(milliseconds: clock.milliseconds, at: now)) else {
            hasJumped = true
            throw .clockChanged
        }
        // Entries that are made while the clock is set back are forgotten early when it is set right.
        if clock.time(at: now) < last.clock.time(at: now) { self.last?.clock = clock }
        guard try RedisServerFacts.history(RedisServerFacts.fields(info)) == last.history,
            MemoryStart(own[0]) == last.known.start,
            !isInCluster || replies.dropLast(3).last == .null
        else { throw .memoryLost }
        guard replies.allSatisfy({ $0.redirection == nil }) else { return }
        self.last?.answeredAt = now
        self.last?.known.answeredAt = unixMilliseconds
    }
}

/// The server that a replica used last, or uses.
struct RedisLastServer: Hashable {
    let node: RedisNode
    /// The same as ``RedisServerFacts/history``.
    let history: String?
    var known: MemoryJudgement.Known
    /// The server's clock, as far behind as it ever was since the beginning of the connection.
    var clock: ServerClock
    /// The time of its last good answer.
    var answeredAt: MonotonicInstant

    init(_ start: MemoryStart, _ meeting: RedisMemory.Meeting) {
        let (facts, present) = (meeting.facts, meeting.unixMilliseconds)
        known = MemoryJudgement.Known(identity: facts.identity, start: start, answeredAt: present)
        (node, history) = (meeting.node, facts.history)
        (clock, answeredAt) = (meeting.clock, meeting.clock.at)
    }

    /// The name of the server's history if it still is the primary that it was; nil otherwise.
    func handedOver(_ facts: RedisServerFacts) -> String? {
        facts.identity == known.identity ? facts.replicationID : nil
    }
}

/// A server's clock at a moment of this machine's monotonic clock.
struct ServerClock: Hashable {
    /// Milliseconds since 1970.
    let milliseconds: UInt64
    let at: MonotonicInstant

    /// The time of this clock at `now`, unless it was set meanwhile.
    func time(at now: MonotonicInstant) -> UInt64 { milliseconds &+ now.nanoseconds(since: at) / 1_000_000 }

    /// True if the clock is so far ahead later that entries were forgotten before their time.
    func hasJumped(to later: ServerClock) -> Bool {
        later.milliseconds > time(at: later.at) &+ ReplayLimits.clockJump.wholeNanoseconds / 1_000_000
    }
}

/// The way of a cluster's slot from its owner to another node, as far as this process saw it.
///
/// The cluster moves a slot key by key. Meanwhile the owner lacks entries, so nothing is accepted. The memory is whole
/// again once the target owns the slot, if it had no restart and took over from no other server since.
struct SlotMove: Hashable {
    let target: RedisNode
    /// The target's run and history when the move was noticed; nil if unknown.
    let identity: String?
    /// The last time at which the slot was not on its way, by the monotonic clock.
    let since: MonotonicInstant
    /// True if the owner named another target meanwhile, so an earlier move was cancelled.
    var isBroken = false

    /// True if entries may be lost on the way to this node.
    func isBroken(at node: RedisNode, _ facts: RedisServerFacts, now: MonotonicInstant) -> Bool {
        let needed = now.nanoseconds(since: since) / 1_000_000_000 + 2
        let tookOver = facts.history != nil && facts.identity != identity
        return isBroken || node != target || tookOver || facts.uptime < needed
    }
}

extension MemoryStart {
    private static let lossMark = " after loss"

    var text: String { "\(completeSince)\(isAfterLoss ? Self.lossMark : "")" }

    /// The start that a key stores; nil if the value has another form.
    init?(_ reply: RedisReply) {
        guard let text = reply.text else { return nil }
        isAfterLoss = text.hasSuffix(Self.lossMark)
        let digits = text.dropLast(isAfterLoss ? Self.lossMark.count : 0)
        guard let moment = DecimalNumber.parse(Array(digits.utf8)) else { return nil }
        completeSince = UInt64(moment)
    }
}

extension RedisReply {
    /// The server's clock in microseconds since 1970, if this is the answer to TIME; nil otherwise.
    var serverMicroseconds: UInt64? {
        guard let parts = elements, parts.count == 2, let seconds = parts[0].number, let micros = parts[1].number,
            (0..<1 << 40).contains(seconds), (0..<1_000_000).contains(micros)
        else { return nil }
        return UInt64(seconds) * 1_000_000 + UInt64(micros)
    }
}
