package import LLSockets

/// Deadlines of numbered entries: a wheel of 2,048 slots, one for each tick of 33.6 ms, 68.7 s in all.
///
/// An entry is only moved when its deadline becomes earlier. An entry with a later deadline comes up once at its old
/// time and is put back. A request thus costs one comparison, and an empty wheel needs no wake-up.
package struct TimerWheel: ~Copyable {
    private static let slotCount = 2_048
    /// A tick is 2^25 ns.
    private static let tickShift: UInt64 = 25

    /// The entries of each slot of the wheel.
    private var slots = IndexLists(listCount: slotCount)
    private var occupied = [UInt64](repeating: 0, count: slotCount / 64)
    /// Every entry's tick is behind this one, by less than a turn. Without a timer to fire it falls behind the clock,
    /// by hours on an idle server.
    private var currentTick: UInt64
    /// The tick of the last call of ``popDue(now:)``.
    private var askedTick: UInt64

    package init(now: MonotonicInstant) {
        currentTick = now.nanoseconds >> Self.tickShift
        askedTick = currentTick
    }

    /// Makes the entry come up at `deadline` or at most one tick later; ``MonotonicInstant/never`` leaves it unchanged.
    /// An entry with a deadline beyond the wheel comes up earlier, and the caller sets it again.
    package mutating func schedule(_ entry: Int, at deadline: MonotonicInstant) {
        if deadline == .never { return }
        let (sum, overflow) = deadline.nanoseconds.addingReportingOverflow(1 << Self.tickShift - 1)
        let wanted = (overflow ? UInt64.max : sum) >> Self.tickShift
        // The entry goes behind the last tick asked about, so that one pass over the due entries cannot return it
        // twice.
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

    /// Removes and returns one due entry; nil if there is none (any more) at `now`.
    package mutating func popDue(now: MonotonicInstant) -> Int? {
        let nowTick = now.nanoseconds >> Self.tickShift
        askedTick = max(askedTick, nowTick)
        guard let tick = nextTick(), tick <= nowTick, let entry = slots.first(of: Int(tick % UInt64(Self.slotCount)))
        else {
            currentTick = max(currentTick, nowTick)
            return nil
        }
        // No entry is earlier than this one. The wheel must turn with every entry taken out: if it were more than a
        // turn behind the clock, an entry put back would come up before its time, again and again.
        currentTick = tick - 1
        remove(entry)
        if nextTick() == nil { currentTick = nowTick }
        return entry
    }

    /// The moment of the next call of ``popDue(now:)``; nil if the wheel is empty.
    package func nextDeadline() -> MonotonicInstant? {
        nextTick().map { MonotonicInstant(nanoseconds: $0 << Self.tickShift) }
    }

    /// The first occupied tick behind the current one; entries are less than one turn ahead.
    private func nextTick() -> UInt64? {
        let start = Int((currentTick + 1) % UInt64(Self.slotCount))
        let words = occupied.count
        for step in 0...words {
            let word = (start / 64 + step) % words
            var bits = occupied[word]
            // In the first word only the slots from `start` on count; in the last (the same word) those before it.
            let mask = ~UInt64(0) << UInt64(start % 64)
            if step == 0 { bits &= mask }
            if step == words { bits &= ~mask }
            if bits != 0 {
                return tick(of: word * 64 + bits.trailingZeroBitCount)
            }
        }
        return nil
    }

    /// The tick of the entries in a slot: the first behind the current one that maps to the slot.
    private func tick(of slot: Int) -> UInt64 {
        let next = currentTick + 1
        return next + (UInt64(slot) &- next) % UInt64(Self.slotCount)
    }
}

/// Lists of small numbers in the order of being appended; each number is in one list at most. Every change takes a
/// constant number of steps, however long a list is.
struct IndexLists: ~Copyable {
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

    /// The list that holds `number`; nil if none does.
    func list(of number: Int) -> Int? {
        guard number >= 0, number < nodes.count, nodes[number].list != Self.none else { return nil }
        return Int(nodes[number].list)
    }

    func count(of list: Int) -> Int { Int(lists[list].count) }

    /// The number that has been in a list longest; nil if the list is empty.
    func first(of list: Int) -> Int? {
        let first = lists[list].first
        return first == Self.none ? nil : Int(first)
    }

    /// The numbers of a list, oldest first, at most `most` of them.
    func numbers(of list: Int, atMost most: Int = .max) -> [Int] {
        var result: [Int] = []
        var number = lists[list].first
        while number != Self.none, result.count < most {
            result.append(Int(number))
            number = nodes[Int(number)].next
        }
        return result
    }

    /// Puts `number`, 0 or greater, at the end of a list, after removing it from its present one.
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

    /// Removes `number` from its list; does nothing if it is in none.
    mutating func remove(_ number: Int) {
        guard let list = list(of: number) else { return }
        let (before, after) = (nodes[number].previous, nodes[number].next)
        if before == Self.none { lists[list].first = after } else { nodes[Int(before)].next = after }
        if after == Self.none { lists[list].last = before } else { nodes[Int(after)].previous = before }
        lists[list].count -= 1
        nodes[number] = Node()
    }
}
