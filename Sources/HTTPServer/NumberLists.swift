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
