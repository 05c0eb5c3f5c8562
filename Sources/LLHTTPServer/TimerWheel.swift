package import LLSockets

/// Deadlines of numbered entries: a wheel of 2,048 slots, one for each tick of 33.6 ms, 68.7 s in all.
///
/// An entry is only moved when its deadline comes nearer; one that moved away is looked at once at its old time and put
/// back. So a request costs a comparison, and a wheel without entries asks for no wake-up at all.
package struct TimerWheel: ~Copyable {
    private static let slotCount = 2_048
    /// A tick is 2^25 ns.
    private static let tickShift: UInt64 = 25

    /// For each slot of the wheel its entries.
    private var slots = NumberLists(listCount: slotCount)
    private var occupied = [UInt64](repeating: 0, count: slotCount / 64)
    /// Every entry's tick lies behind this one, by less than a turn. Where nothing asks for a time it stays behind the
    /// clock, by hours on an idle server.
    private var currentTick: UInt64
    /// The last moment ``popDue(now:)`` was asked about.
    private var askedTick: UInt64

    package init(now: MonotonicInstant) {
        currentTick = now.nanoseconds >> Self.tickShift
        askedTick = currentTick
    }

    /// Sees to it that the entry comes up at `deadline` or, at most one tick, later; ``MonotonicInstant/never`` leaves
    /// it where it is. Deadlines beyond the wheel come up earlier, to be set again.
    package mutating func schedule(_ entry: Int, at deadline: MonotonicInstant) {
        if deadline == .never { return }
        let (sum, overflow) = deadline.nanoseconds.addingReportingOverflow(1 << Self.tickShift - 1)
        let wanted = (overflow ? UInt64.max : sum) >> Self.tickShift
        // Behind the last moment asked about, so that one look at what is due cannot bring an entry up twice.
        let tick = min(max(wanted, askedTick + 1), currentTick + UInt64(Self.slotCount) - 1)
        if let slot = slots.list(of: entry) {
            if self.tick(of: slot) <= tick { return }
            remove(entry)
        }
        let slot = Int(tick % UInt64(Self.slotCount))
        slots.append(entry, to: slot)
        occupied[slot / 64] |= 1 << UInt64(slot % 64)
    }

    package mutating func remove(_ entry: Int) {
        guard let slot = slots.list(of: entry) else { return }
        slots.remove(entry)
        if slots.count(of: slot) == 0 { occupied[slot / 64] &= ~(1 << UInt64(slot % 64)) }
    }

    /// Takes out one entry whose time has come; nil where there is none (any more) at `now`.
    package mutating func popDue(now: MonotonicInstant) -> Int? {
        let nowTick = now.nanoseconds >> Self.tickShift
        askedTick = max(askedTick, nowTick)
        guard let tick = nextTick(), tick <= nowTick, let entry = slots.first(of: Int(tick % UInt64(Self.slotCount)))
        else {
            currentTick = max(currentTick, nowTick)
            return nil
        }
        // No entry is earlier than this one. The wheel must turn with every entry taken out: where it is more than a
        // turn behind the clock, an entry put back stands before its time, and would come up for ever.
        currentTick = tick - 1
        remove(entry)
        if nextTick() == nil { currentTick = nowTick }
        return entry
    }

    /// When ``popDue(now:)`` must be asked next; nil where the wheel is empty.
    package func nextDeadline() -> MonotonicInstant? {
        nextTick().map { MonotonicInstant(nanoseconds: $0 << Self.tickShift) }
    }

    /// The first occupied tick behind the current one; entries lie less than one turn ahead.
    private func nextTick() -> UInt64? {
        let start = Int((currentTick + 1) % UInt64(Self.slotCount))
        let words = occupied.count
        for step in 0...words {
            let word = (start / 64 + step) % words
            var bits = occupied[word]
            // In the first word only the slots from `start` on; in the last (the same word) those before it.
            let mask = ~UInt64(0) << UInt64(start % 64)
            if step == 0 { bits &= mask }
            if step == words { bits &= ~mask }
            if bits != 0 {
                return tick(of: word * 64 + bits.trailingZeroBitCount)
            }
        }
        return nil
    }

    /// The tick of the entries in a slot: the first behind the current one that falls there.
    private func tick(of slot: Int) -> UInt64 {
        let next = currentTick + 1
        return next + (UInt64(slot) &- next) % UInt64(Self.slotCount)
    }
}

/// Lists of small numbers, each number in one list at most, in the order of being appended. Every change takes the same
/// few steps, however long a list is.
struct NumberLists: ~Copyable {
    private static let none: Int32 = -1

    private struct Node {
        var list = none
        var next = none
        var previous = none
    }

    private struct Ends {
        var first = none
        var last = none
        var count: Int32 = 0
    }

    private var nodes: [Node] = []
    private var lists: [Ends]

    init(listCount: Int) { lists = Array(repeating: Ends(), count: listCount) }

    /// Adds an empty list.
    /// - Returns: Its number.
    mutating func makeList() -> Int {
        lists.append(Ends())
        return lists.count - 1
    }

    /// The list that holds `number`; nil where none does.
    func list(of number: Int) -> Int? {
        guard number >= 0, number < nodes.count, nodes[number].list != Self.none else { return nil }
        return Int(nodes[number].list)
    }

    func count(of list: Int) -> Int { Int(lists[list].count) }

    /// The number that has been in a list longest; nil where it is empty.
    func first(of list: Int) -> Int? {
        let first = lists[list].first
        return first == Self.none ? nil : Int(first)
    }

    /// The numbers of a list, oldest first, at most so many.
    func numbers(of list: Int, atMost most: Int = .max) -> [Int] {
        var result: [Int] = []
        var number = lists[list].first
        while number != Self.none, result.count < most {
            result.append(Int(number))
            number = nodes[Int(number)].next
        }
        return result
    }

    /// Puts `number`, 0 or greater, at the end of a list, out of the one it is in.
    mutating func append(_ number: Int, to list: Int) {
        remove(number)
        while nodes.count <= number { nodes.append(Node()) }
        let last = lists[list].last
        nodes[number] = Node(list: Int32(truncatingIfNeeded: list), previous: last)
        if last == Self.none {
            lists[list].first = Int32(truncatingIfNeeded: number)
        } else {
            nodes[Int(last)].next = Int32(truncatingIfNeeded: number)
        }
        lists[list].last = Int32(truncatingIfNeeded: number)
        lists[list].count += 1
    }

    /// Takes `number` out of its list; nothing happens where it is in none.
    mutating func remove(_ number: Int) {
        guard let list = list(of: number) else { return }
        let (before, after) = (nodes[number].previous, nodes[number].next)
        if before == Self.none { lists[list].first = after } else { nodes[Int(before)].next = after }
        if after == Self.none { lists[list].last = before } else { nodes[Int(after)].previous = before }
        lists[list].count -= 1
        nodes[number] = Node()
    }
}
