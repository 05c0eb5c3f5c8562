internal import LLBytes
internal import Synchronization

/// A table of values by login. Any number of threads read while one at a time writes; readers never lock or wait.
///
/// It uses open addressing with linear probing. A slot has three words, and the person's is written last: a reader that
/// sees it also sees the other two. Entries are never removed; a smaller table is a new one. `words` is only accessed
/// through its atomics and lives as long as this object. `@unchecked Sendable` is sound for these reasons.
@safe final class RevocationTable: @unchecked Sendable {
    static let wordsPerSlot = 3

    /// The number of slots, a power of two.
    let slotCount: Int
    /// The seed makes a login's slot unpredictable, so an attacker cannot choose ids that all fall into one slot.
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

    /// The number of logins in the table.
    var count: Int { filled.load(ordering: .acquiring) }
    /// The number of logins that fit.
    var capacity: Int { slotCount / 5 * 4 }

    /// The value of a login; nil if it has none.
    func value(of login: RevokedLogin) -> RevocationValue? {
        let (slot, isFree) = slot(of: login)
        return isFree ? nil : RevocationValue(bits: load(.value, slot))
    }

    /// Sets the value of a login. Only one thread may call it at a time, and only while ``count`` is below
    /// ``capacity``.
    func set(_ value: RevocationValue, of login: RevokedLogin) {
        let (slot, isFree) = slot(of: login)
        precondition(!isFree || count < capacity, "the table is full")
        store(value.bits, .value, slot)
        guard isFree else { return }
        store(login.app, .app, slot)
        store(login.user, .person, slot)
        filled.add(1, ordering: .releasing)
    }

    /// The content of a slot, for walks over the whole table.
    func entry(at slot: Int) -> (login: RevokedLogin, value: RevocationValue)? {
        let user = load(.person, slot)
        guard user != 0 else { return nil }
        return (RevokedLogin(user: user, app: load(.app, slot)), RevocationValue(bits: load(.value, slot)))
    }

    /// A table with the wanted entries and with room for `capacity` logins.
    func copy(capacity: Int, where isWanted: (RevocationValue) -> Bool = { _ in true }) -> RevocationTable {
        let copy = RevocationTable(capacity: capacity, seed: seed)
        for slot in 0..<slotCount {
            if let (login, value) = entry(at: slot), isWanted(value) { copy.set(value, of: login) }
        }
        return copy
    }

    /// The slot of a login, or the free slot in which it belongs. Another login may take the free slot meanwhile.
    private func slot(of login: RevokedLogin) -> (slot: Int, isFree: Bool) {
        var slot = home(of: login)
        // The loop ends because at least one slot in five is free.
        while true {
            let user = load(.person, slot)
            if user == 0 { return (slot, true) }
            if user == login.user, load(.app, slot) == login.app { return (slot, false) }
            slot = (slot + 1) & (slotCount - 1)
        }
    }

    private func home(of login: RevokedLogin) -> Int {
        // The finalizer of MurmurHash3 (https://github.com/aappleby/smhasher): every bit of the key affects every bit
        // of the hash.
        var hash = (login.user ^ seed) &+ (login.app &* 0x9E37_79B9_7F4A_7C15)
        hash ^= hash >> 33
        hash &*= 0xFF51_AFD7_ED55_8CCD
        hash ^= hash >> 33
        hash &*= 0xC4CE_B9FE_1A85_EC53
        hash ^= hash >> 33
        return Int(truncatingIfNeeded: hash) & (slotCount - 1)
    }

    /// The words of a slot.
    private enum Word: Int { case person, app, value }

    private func place(_ word: Word, _ slot: Int) -> UnsafeMutablePointer<Atomic<UInt64>> {
        precondition(slot >= 0 && slot < slotCount)
        // In bounds: the slot was checked, and a slot has three words.
        return unsafe words + (slot * Self.wordsPerSlot + word.rawValue)
    }

    private func load(_ word: Word, _ slot: Int) -> UInt64 {
        unsafe place(word, slot).pointee.load(ordering: .acquiring)
    }

    private func store(_ value: UInt64, _ word: Word, _ slot: Int) {
        unsafe place(word, slot).pointee.store(value, ordering: .releasing)
    }
}

/// The name of a login among the revocations: a person and an app, in 16 bytes.
///
/// Two ids of digits, as Facebook's are, are stored as numbers. Any other pair is stored as a hash of 127 bits.
package struct RevokedLogin: Hashable, Sendable {
    /// The first bit marks a hash.
    private static let hashMark: UInt64 = 1 << 63

    /// The person's number, or the first half of the hash; never 0.
    let user: UInt64
    /// The app's number, or the second half of the hash.
    let app: UInt64

    fileprivate var isHash: Bool { user & Self.hashMark != 0 }
}

extension RevokedLogin {
    /// The name of a person's login to an app; nil if OpenSSL fails.
    init?(app: Span<UInt8>, user: Span<UInt8>) {
        if let userNumber = DecimalNumber.parse(user, user.indices), userNumber > 0,
            let appNumber = DecimalNumber.parse(app, app.indices), appNumber > 0
        {
            self.init(user: UInt64(userNumber), app: UInt64(appNumber))
        } else {
            guard let hash = ReplayKey(.login, scope: app, user) else { return nil }
            self.init(user: hash.high | Self.hashMark, app: hash.low)
        }
    }
}

/// The cause of a revocation. It matters for access tokens for which Graph does not report the time of issue.
package enum RevocationKind: Int64, Sendable {
    /// Facebook's own callback reported it. From then on Graph calls no earlier token valid.
    case callback = 0
    /// An operator or backend ordered it here. Graph may still call earlier tokens valid.
    case order = 1
}

/// A revocation: every token of the login that was issued in this second or before is refused.
struct Revocation: Hashable, Sendable {
    let login: RevokedLogin
    /// Whole seconds since 1970.
    var moment: Int64
    var kind = RevocationKind.order

    /// The order among the revocations of one login. A later one wins; within one second `order` wins over `callback`.
    var rank: Int64 { moment << 1 | kind.rawValue }
}

/// The form of a revocation in Redis: `app:user:moment` in decimal, or with `#` and 32 hexadecimal digits for the
/// login. A revocation from a callback ends with `:c`.
extension Revocation {
    private static let hashSign = UInt8(ascii: "#")
    private static let colon = UInt8(ascii: ":")

    var member: [UInt8] {
        let end = kind == .callback ? ":\(moment):c" : ":\(moment)"
        guard login.isHash else { return Array("\(login.app):\(login.user)\(end)".utf8) }
        return [Self.hashSign] + ReplayKey(high: login.user, low: login.app).hexadecimal + Array(end.utf8)
    }

    /// The revocation of a member; nil for bytes that ``member`` would not have written.
    init?(member: [UInt8]) {
        var parts = member.split(separator: Self.colon, omittingEmptySubsequences: false)
        if parts.last == [UInt8(ascii: "c")] {
            kind = .callback
            parts.removeLast()
        }
        guard let last = parts.last, let moment = Self.number(last) else { return nil }
        if member.first == Self.hashSign {
            guard parts.count == 2, parts[0].count == 33, let bytes = Hexadecimal.decode(parts[0].dropFirst())
            else { return nil }
            let key = ReplayKey(bytes.span)
            login = RevokedLogin(user: key.high, app: key.low)
            guard login.isHash else { return nil }
        } else {
            guard parts.count == 3, let app = Self.number(parts[0]), let user = Self.number(parts[1]), app > 0, user > 0
            else { return nil }
            login = RevokedLogin(user: UInt64(user), app: UInt64(app))
        }
        self.moment = Int64(moment)
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> Int? {
        DecimalNumber.parse(digits.span, 0..<digits.count)
    }
}
