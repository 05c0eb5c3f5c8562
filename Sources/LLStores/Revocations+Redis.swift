internal import LLSockets

/// The part of the copy that the store's thread uses.
extension Revocations {
    /// True if a revocation must be written.
    var hasWork: Bool { state.withLock { !$0.waiting.isEmpty || $0.hasUnwritten } }

    func takeWaiting(atMost count: Int) -> [WaitingRevocation] { state.withLock { $0.waiting.take(atMost: count) } }

    /// Sets the state of the connection, which decides whether revocations wait for Redis.
    func setLink(_ link: RedisLink) {
        let waiting = state.withLock { state in
            state.link = link
            return link == .up ? [] : state.waiting.take(atMost: .max)
        }
        if !waiting.isEmpty { fail(waiting) }
    }

    /// Records that these revocations could not be written. They are written later.
    func fail(_ waiting: [WaitingRevocation]) {
        state.withLock { $0.hasUnwritten = true }
        for one in waiting { one.completion(.rememberedHereOnly) }
    }

    /// Begins to read the whole set again. No entry counts as held by Redis any longer.
    func beginReading() {
        state.withLock { state in
            state.mark = state.mark == RevocationValue.markLimit ? 1 : state.mark + 1
            state.hasOverflown = false
        }
    }

    /// Takes over a page of revocations from Redis.
    /// - Parameter serverTime: the server's clock in whole seconds since 1970.
    /// - Returns: The revocations of the page for logins with a newer revocation here.
    func merge(_ page: [Revocation], serverTime: Int64 = 0) -> [Revocation] {
        let now = now
        return state.withLock { state in
            var superseded: [Revocation] = []
            for written in page where !isOutOfTime(written, now) {
                guard let revocation = cut(written, max(now, serverTime), &state) else { continue }
                if revocation.moment < written.moment {
                    let ahead = offset(now) + skewSeconds
                    state.cutDates.note(revocation.moment, offset: ahead, gap: Revocations.greatestLeadSeconds)
                }
                let known = RevocationValue(revocation, mark: state.mark)
                let value = table.value(of: revocation.login)
                if value == nil, table.count >= sharedCapacity {
                    state.hasOverflown = true
                } else if value?.rank ?? .min < revocation.rank {
                    set(known, of: revocation.login, now: now, &state)
                } else if let value, value.rank > revocation.rank {
                    superseded.append(revocation)
                } else if value?.mark != 0 {
                    // An entry that was written without an answer is written again, because other replicas may have
                    // read past it.
                    table.set(known, of: revocation.login)
                }
            }
            return superseded
        }
    }

    /// A revocation as it is accepted here. A replica with a wrong clock may date one ahead, and it would refuse new
    /// logins until then. It is therefore cut to the present plus the skew when first read, and skipped from then on.
    /// - Parameter now: the later of this machine's clock and the server's, because this machine's clock may be the
    ///   late one.
    private func cut(_ written: Revocation, _ now: Int64, _ state: inout State) -> Revocation? {
        if state.cut.contains(written) { return nil }
        let latest = now + skewSeconds
        let isOwn = table.value(of: written.login).map { $0.moment >= written.moment } ?? false
        guard written.moment > latest, !isOwn else { return written }
        // A revocation beyond the limit is cut again at each reading, which refuses more tokens but never fewer.
        if state.cut.count < Self.cutLimit { state.cut.insert(written) }
        var believed = written
        believed.moment = latest
        return believed
    }

    private func isOutOfTime(_ revocation: Revocation, _ now: Int64) -> Bool {
        // A day: a clock that is meant to be right is never farther ahead.
        revocation.moment < now - Self.lifetimeSeconds || revocation.moment > now + 86_400
    }

    /// Records that Redis holds these revocations.
    func confirm(_ all: [Revocation]) {
        state.withLock { state in
            for revocation in all where table.value(of: revocation.login)?.rank == revocation.rank {
                table.set(RevocationValue(revocation, mark: state.mark), of: revocation.login)
            }
        }
    }

    /// Entries that Redis may lack, from the position of the walk on. The walk becomes nil at its end. It starts again
    /// if Redis may lack entries with callers that were already answered.
    func lacking(_ walk: inout RedisRevocations.Walk?, atMost count: Int) -> [Revocation] {
        let oldest = now - Self.lifetimeSeconds
        return state.withLock { state in
            if state.hasUnwritten { walk = RedisRevocations.Walk(table: table) }
            state.hasUnwritten = false
            guard let last = walk else { return [] }
            let table = table
            // The entries had other slots in a table that was replaced.
            var slot = last.table === table ? last.slot : 0
            var found: [Revocation] = []
            while slot < table.slotCount, found.count < count {
                if let (login, value) = table.entry(at: slot), value.mark != state.mark, value.moment >= oldest {
                    let revocation = Revocation(login: login, value)
                    found.append(revocation)
                    // The mark stays 0 until Redis confirms this very write: an entry found by a reading may have a
                    // wrong score.
                    table.set(RevocationValue(revocation, mark: 0), of: login)
                }
                slot += 1
            }
            walk = slot < table.slotCount ? RedisRevocations.Walk(table: table, slot: slot) : nil
            return found
        }
    }

    /// The revocations that Redis need not hold, because it holds a newer one of the same login.
    func superseded(among all: some Sequence<Revocation>) -> [Revocation] {
        state.withLock { state in
            all.filter { old in
                table.value(of: old.login).map { $0.mark == state.mark && $0.rank > old.rank } ?? false
            }
        }
    }
}
