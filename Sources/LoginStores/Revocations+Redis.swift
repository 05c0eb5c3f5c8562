internal import Sockets

/// What the store's thread does with the copy.
extension Revocations {
    /// Whether a revocation is to be written.
    var hasWork: Bool { state.withLock { !$0.waiting.isEmpty || $0.hasUnwritten } }

    func takeWaiting(atMost count: Int) -> [WaitingRevocation] { state.withLock { $0.waiting.take(atMost: count) } }

    /// From now on revocations wait for Redis, or do not.
    func setLink(_ link: RedisLink) {
        let waiting = state.withLock { state in
            state.link = link
            return link == .up ? [] : state.waiting.take(atMost: .max)
        }
        if !waiting.isEmpty { fail(waiting) }
    }

    /// These could not be written, and will be later.
    func fail(_ waiting: [WaitingRevocation]) {
        state.withLock { $0.hasUnwritten = true }
        for one in waiting { one.completion(.rememberedHereOnly) }
    }

    /// Everything is read anew: of no entry it is known any longer that Redis holds it.
    func beginReading() {
        state.withLock { state in
            state.mark = state.mark == RevocationValue.markLimit ? 1 : state.mark + 1
            state.hasOverflown = false
        }
    }

    /// Takes over what Redis holds.
    /// - Parameter serverTime: the server's clock in whole seconds since 1970.
    /// - Returns: those for whose logins a newer one is known here.
    func merge(_ page: [Revocation], serverTime: Int64 = 0) -> [Revocation] {
        let now = now
        return state.withLock { state in
            var superseded: [Revocation] = []
            for written in page where !isOutOfTime(written, now) {
                guard let revocation = cut(written, max(now, serverTime), &state) else { continue }
                let known = RevocationValue(revocation, mark: state.mark)
                let value = table.value(of: revocation.login)
                if value == nil, table.count >= sharedCapacity {
                    state.hasOverflown = true
                } else if value?.rank ?? .min < revocation.rank {
                    set(known, of: revocation.login, now: now, &state)
                } else if let value, value.rank > revocation.rank {
                    superseded.append(revocation)
                } else if value?.mark != 0 {
                    // What was written without an answer is written again, for others may have read past it.
                    table.set(known, of: revocation.login)
                }
            }
            return superseded
        }
    }

    /// A revocation as it is believed here. One that a replica with a wrong clock dated ahead would refuse people's new
    /// logins until then. So it is cut to the present and the skew when it is first read, and passed over from then on.
    /// - Parameter now: the later of this machine's clock and the server's: the clock that is late may be this one.
    private func cut(_ written: Revocation, _ now: Int64, _ state: inout State) -> Revocation? {
        if state.cut.contains(written) { return nil }
        let latest = now + skewSeconds
        let isOwn = table.value(of: written.login).map { $0.moment >= written.moment } ?? false
        guard written.moment > latest, !isOwn else { return written }
        // One that does not fit is cut anew each time: that refuses more, never less.
        if state.cut.count < Self.cutLimit { state.cut.insert(written) }
        var believed = written
        believed.moment = latest
        return believed
    }

    private func isOutOfTime(_ revocation: Revocation, _ now: Int64) -> Bool {
        // A day: no clock that is meant to be right is farther ahead.
        revocation.moment < now - Self.lifetimeSeconds || revocation.moment > now + 86_400
    }

    /// Redis holds these.
    func confirm(_ all: [Revocation]) {
        state.withLock { state in
            for revocation in all where table.value(of: revocation.login)?.rank == revocation.rank {
                table.set(RevocationValue(revocation, mark: state.mark), of: revocation.login)
            }
        }
    }

    /// Entries that Redis is not known to hold, from where the walk has come to; it is nil at its end. It begins anew where
    /// Redis may lack entries whose callers were answered already.
    func lacking(_ walk: inout RedisRevocations.Walk?, atMost count: Int) -> [Revocation] {
        let oldest = now - Self.lifetimeSeconds
        return state.withLock { state in
            if state.hasUnwritten { walk = RedisRevocations.Walk(table: table) }
            state.hasUnwritten = false
            guard let last = walk else { return [] }
            let table = table
            // In a table that was replaced the entries had other slots.
            var slot = last.table === table ? last.slot : 0
            var found: [Revocation] = []
            while slot < table.slotCount, found.count < count {
                if let (login, value) = table.entry(at: slot), value.mark != state.mark, value.moment >= oldest {
                    let revocation = Revocation(login: login, value)
                    found.append(revocation)
                    // Until Redis confirms this very writing: found by a reading, its score may be a wrong one.
                    table.set(RevocationValue(revocation, mark: 0), of: login)
                }
                slot += 1
            }
            walk = slot < table.slotCount ? RedisRevocations.Walk(table: table, slot: slot) : nil
            return found
        }
    }

    /// Those in whose place Redis holds a newer one.
    func superseded(among all: some Sequence<Revocation>) -> [Revocation] {
        state.withLock { state in
            all.filter { old in
                table.value(of: old.login).map { $0.mark == state.mark && $0.rank > old.rank } ?? false
            }
        }
    }
}
