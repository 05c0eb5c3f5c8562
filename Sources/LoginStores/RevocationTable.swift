internal import Synchronization

/// Numbers by login, which any number of threads read while one at a time writes: no reader locks or waits.
///
/// Open addressing with linear probing. A slot is three words, the person's last: a reader that sees it sees the other two.
/// Nothing is ever removed; who wants less makes a new table. `words` is only accessed through its atomics, and lives as
/// long as this object; hence `@unchecked Sendable`.
@safe final class RevocationTable: @unchecked Sendable {
    private static let wordsPerSlot = 3
    static let bytesPerSlot = wordsPerSlot * MemoryLayout<UInt64>.stride

    /// A power of two.
    let slotCount: Int
    /// Which slot a login belongs to cannot be guessed, so nobody can choose ids that all belong to one.
    private let seed: UInt64
    private let filled = Atomic<Int>(0)
    private let words: UnsafeMutablePointer<Atomic<UInt64>>

    /// A table with room for this many logins: at most four of five slots are filled, so that a probe ends soon.
    init(capacity: Int, seed: UInt64 = .random(in: .min ... .max)) {
        var slotCount = 64
        while slotCount / 5 * 4 < capacity { slotCount *= 2 }
        self.slotCount = slotCount
        self.seed = seed
        let wordCount = slotCount * Self.wordsPerSlot
        unsafe words = .allocate(capacity: wordCount)
        for index in 0..<wordCount { unsafe (words + index).initialize(to: Atomic(0)) }
    }

    deinit {
        unsafe words.deinitialize(count: slotCount * Self.wordsPerSlot)
        unsafe words.deallocate()
    }

    /// Logins in the table.
    var count: Int { filled.load(ordering: .acquiring) }
    /// Logins that fit.
    var capacity: Int { slotCount / 5 * 4 }

    /// The number of a login; nil where it has none.
    func value(of login: RevokedLogin) -> UInt64? {
        var slot = home(of: login)
        // Ends: at least one slot in five is free.
        while true {
            let user = person(slot)
            if user == login.user, app(slot) == login.app { return value(slot) }
            if user == 0 { return nil }
            slot = (slot + 1) & (slotCount - 1)
        }
    }

    /// Gives a login its number. One thread at a time, and only while ``count`` is below ``capacity``.
    func set(_ value: UInt64, of login: RevokedLogin) {
        var slot = home(of: login)
        while true {
            let user = person(slot)
            if user == 0 { break }
            if user == login.user, app(slot) == login.app { return setValue(value, slot) }
            slot = (slot + 1) & (slotCount - 1)
        }
        precondition(count < capacity, "the table is full")
        setApp(login.app, slot)
        setValue(value, slot)
        setPerson(login.user, slot)
        filled.add(1, ordering: .releasing)
    }

    /// What a slot holds, for walks over the whole table.
    func entry(at slot: Int) -> (login: RevokedLogin, value: UInt64)? {
        let user = person(slot)
        guard user != 0 else { return nil }
        return (RevokedLogin(user: user, app: app(slot)), value(slot))
    }

    /// A table with the same entries, as far as they are wanted, and room for as many logins.
    func copy(capacity: Int, where isWanted: (UInt64) -> Bool = { _ in true }) -> RevocationTable {
        let copy = RevocationTable(capacity: capacity, seed: seed)
        for slot in 0..<slotCount {
            if let (login, value) = entry(at: slot), isWanted(value) { copy.set(value, of: login) }
        }
        return copy
    }

    private func home(of login: RevokedLogin) -> Int {
        // The finalizer of MurmurHash3 (https://github.com/aappleby/smhasher): every bit of the key moves every bit of it.
        var hash = (login.user ^ seed) &+ (login.app &* 0x9E37_79B9_7F4A_7C15)
        hash ^= hash >> 33
        hash &*= 0xFF51_AFD7_ED55_8CCD
        hash ^= hash >> 33
        hash &*= 0xC4CE_B9FE_1A85_EC53
        hash ^= hash >> 33
        return Int(truncatingIfNeeded: hash) & (slotCount - 1)
    }

    /// The place of a slot's word: 0 for the person, 1 for the app, 2 for the number.
    private func place(_ slot: Int, _ word: Int) -> UnsafeMutablePointer<Atomic<UInt64>> {
        precondition(slot >= 0 && slot < slotCount)
        // In bounds: the slot was checked, and no word is beyond 2.
        return unsafe words + (slot * Self.wordsPerSlot + word)
    }

    private func person(_ slot: Int) -> UInt64 { unsafe place(slot, 0).pointee.load(ordering: .acquiring) }
    private func app(_ slot: Int) -> UInt64 { unsafe place(slot, 1).pointee.load(ordering: .relaxed) }
    private func value(_ slot: Int) -> UInt64 { unsafe place(slot, 2).pointee.load(ordering: .relaxed) }

    private func setPerson(_ user: UInt64, _ slot: Int) {
        unsafe place(slot, 0).pointee.store(user, ordering: .releasing)
    }
    private func setApp(_ app: UInt64, _ slot: Int) { unsafe place(slot, 1).pointee.store(app, ordering: .relaxed) }
    private func setValue(_ value: UInt64, _ slot: Int) {
        unsafe place(slot, 2).pointee.store(value, ordering: .relaxed)
    }
}
