import LLHTTP
import Testing

@testable import LLStores

@Suite("The judgement whether a server's memory is whole")
struct MemoryJudgementTests {
    typealias Reported = MemoryJudgement.Reported
    typealias Known = MemoryJudgement.Known

    /// One row of the table. Times are in milliseconds.
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var known: Known? = Known(identity: "a", start: start(1_000), answeredAt: 90_000)
        var reported = Reported(identity: "b", hasOwnData: true, now: now)
        var moved = MemoryJudgement.Move.none
        let judgement: MemoryJudgement

        init(
            _ name: String,
            _ judgement: MemoryJudgement,
            moved: MemoryJudgement.Move = .none,
            known: (inout Known?) -> Void = { _ in },
            _ reported: (inout Reported) -> Void
        ) {
            testDescription = name
            self.judgement = judgement
            self.moved = moved
            known(&self.known)
            reported(&self.reported)
        }
    }

    private static let now: UInt64 = 100_000
    /// The start of a memory that begins now.
    private static let fresh = now + ReplayLimits.clockMargin
    private static let hour: UInt64 = 3_600_000

    private static func start(_ moment: UInt64, isAfterLoss: Bool = false) -> MemoryStart {
        MemoryStart(completeSince: moment, isAfterLoss: isAfterLoss)
    }

    private static func lost(_ moment: UInt64 = fresh) -> MemoryJudgement { .lost(start(moment, isAfterLoss: true)) }

    private static func forget(_ known: inout Known?) { known = nil }

    /// The keys of a server with all data of the last run, but without one of its own run.
    private static func inherited(_ reported: inout Reported) {
        (reported.data, reported.last) = (start(1_000), .start(start(1_000)))
    }

    private static func onDisk(_ reported: inout Reported) {
        inherited(&reported)
        reported.writesThrough = true
    }

    static let firstMeetings: [Row] = [
        Row("an empty server", .lost(start(fresh)), known: forget) { _ in },
        Row("another replica began", .continues(start(7_000)), known: forget) { $0.run = start(7_000) },
        Row("data of a former run", lost(), known: forget) { $0.data = start(1_000) },
        Row("data of a former run, on disk", .movedIntact(start(1_000)), known: forget) {
            ($0.data, $0.writesThrough) = (start(1_000), true)
        },
        Row("data by replication, on disk", lost(), known: forget) {
            ($0.data, $0.writesThrough, $0.hasOwnData) = (start(1_000), true, false)
        },
        Row("data dated ahead", lost(500_001), known: forget) { $0.data = start(500_000) },
        Row("the run's key is older than the data's", lost(500_001), known: forget) {
            ($0.run, $0.data) = (start(7_000), start(500_000))
        },
        Row("entries were lost on the way", lost(), moved: .broken, known: forget) { _ in },
        Row(
            "entries were lost on the way, and another replica noticed",
            .continues(start(fresh, isAfterLoss: true)),
            moved: .broken,
            known: forget
        ) { $0.run = start(fresh, isAfterLoss: true) },
    ]

    static let sameRuns: [Row] = [
        Row("nothing happened", .continues(start(1_000))) { ($0.identity, $0.run) = ("a", start(1_000)) },
        Row("emptied", lost()) { $0.identity = "a" },
        Row("emptied, and a new replica was first", lost()) { ($0.identity, $0.run) = ("a", start(99_000)) },
        Row("emptied, and another replica noticed", .continues(start(99_000, isAfterLoss: true))) {
            ($0.identity, $0.run) = ("a", start(99_000, isAfterLoss: true))
        },
        Row("another replica noticed a loss before the last start", lost()) {
            ($0.identity, $0.run) = ("a", start(1_000, isAfterLoss: true))
        },
        Row("its clock jumped", lost()) { ($0.identity, $0.run, $0.hasJumped) = ("a", start(1_000), true) },
        Row("its clock jumped, and another replica noticed", .continues(start(fresh, isAfterLoss: true))) {
            ($0.identity, $0.run, $0.hasJumped) = ("a", start(fresh, isAfterLoss: true), true)
        },
        Row("its clock jumped after a loss that another replica noticed", lost()) {
            ($0.identity, $0.run, $0.hasJumped) = ("a", start(99_000, isAfterLoss: true), true)
        },
        Row("dated ahead, then emptied", lost(600_001), known: { $0 = Known("a", start(600_000)) }) {
            $0.identity = "a"
        },
        Row("dated a day ahead, then emptied", lost(now + hour), known: { $0 = Known("a", start(24 * hour)) }) {
            $0.identity = "a"
        },
        Row("its move was cancelled", lost(), moved: .broken) { ($0.identity, $0.run) = ("a", start(1_000)) },
        Row(
            "it had replicas, and dropped the name of its history",
            .continues(start(1_000)),
            known: { $0 = Known("b:c", start(1_000)) }
        ) { ($0.run, $0.last) = (start(1_000), .start(start(1_000))) },
        Row(
            "it dropped the name of its history, and lost data",
            lost(),
            known: { $0 = Known("b:c", start(1_000)) }
        ) { ($0.run, $0.last) = (start(2_000), .start(start(1_000))) },
    ]

    static let newRuns: [Row] = [
        Row("empty", lost()) { _ in },
        Row("restarted with its data", lost(), inherited),
        Row("restarted with its data, on disk", .movedIntact(start(1_000)), onDisk),
        Row("another server with its data, on disk", lost(), moved: .unproven, onDisk),
        Row("another replica found it whole, on disk", .continues(start(1_000))) {
            onDisk(&$0)
            $0.run = start(1_000)
        },
        Row("another replica says that it is whole", lost(), moved: .unproven) {
            inherited(&$0)
            $0.run = start(1_000)
        },
        Row("another replica noticed the loss", .continues(start(95_000, isAfterLoss: true)), moved: .unproven) {
            inherited(&$0)
            ($0.data, $0.run) = (start(95_000, isAfterLoss: true), start(95_000, isAfterLoss: true))
        },
        Row("another replica noticed, before the last answer elsewhere", lost(), moved: .unproven) {
            inherited(&$0)
            $0.run = start(94_999, isAfterLoss: true)
        },
        Row(
            "the last answer is dated a day ahead",
            lost(now + hour),
            moved: .unproven,
            known: { $0?.answeredAt = 24 * hour },
            inherited
        ),
    ]

    static let moves: [Row] = [
        Row("proven", .movedIntact(start(1_000)), moved: .proven, inherited),
        Row("proven, but entries were lost on the way", lost(), moved: .broken, inherited),
        Row("proven, but the server's clock jumped", lost(), moved: .proven) {
            inherited(&$0)
            $0.hasJumped = true
        },
        Row("proven, but the last run's key is not there", lost(), moved: .proven) { $0.data = start(1_000) },
        Row("proven, but this run's key was lost after another replica moved it", lost(), moved: .proven) {
            ($0.data, $0.last) = (start(1_000), .moved)
        },
        Row("proven, and written by another replica", .continues(start(1_000)), moved: .proven) {
            inherited(&$0)
            $0.run = start(1_000)
        },
        Row("proven, and this run's key is from an earlier stay", .movedIntact(start(1_000)), moved: .proven) {
            inherited(&$0)
            $0.run = start(500)
        },
        Row("not proven, and this run's key is from an earlier stay", lost(), moved: .unproven) {
            inherited(&$0)
            $0.run = start(500)
        },
        Row("marked by another replica", .continues(start(1_000)), moved: .unproven) {
            ($0.run, $0.data, $0.last) = (start(1_000), start(1_000), .moved)
        },
        Row("marked by another replica, but entries were lost on the way", lost(), moved: .broken) {
            ($0.run, $0.data, $0.last) = (start(1_000), start(1_000), .moved)
        },
        Row("the last run's key is the latest", .movedIntact(start(2_000, isAfterLoss: true)), moved: .proven) {
            ($0.data, $0.last) = (start(1_000), .start(start(2_000, isAfterLoss: true)))
        },
        Row(
            "this process knows the latest",
            .movedIntact(start(3_000)),
            moved: .proven,
            known: { $0 = Known("a", start(3_000)) },
            inherited
        ),
    ]

    @Test(
        "What is reported is judged by what was known",
        arguments: [firstMeetings, sameRuns, newRuns, moves].joined()
    )
    func table(row: Row) {
        #expect(MemoryJudgement.judge(known: row.known, reported: row.reported, moved: row.moved) == row.judgement)
    }

    @Test(
        "A slot arrives whole only at its target, if that had no restart and took over from no server since",
        arguments: [
            (true, nil, nil, 12, true), (false, nil, nil, 100, false), (true, nil, nil, 11, false),
            (true, nil, nil, 0, false), (true, "c", "b:c", 12, true), (true, "c", nil, 100, false),
            (true, "c", "b", 100, false), (true, "c", "b:d", 100, false), (true, "c", "a:c", 100, false),
            (true, "c", "b:c", 11, false), (false, "c", "b:c", 100, false),
        ] as [(Bool, String?, String?, UInt64, Bool)]
    )
    func slots(isTarget: Bool, history: String?, identity: String?, uptime: UInt64, isWhole: Bool) {
        let (target, other) = (RedisNode(host: "a", port: 1), RedisNode(host: "a", port: 2))
        let begun = MonotonicInstant(nanoseconds: 1_000_000_000)
        var move = SlotMove(target: target, identity: identity, since: begun)
        func isBroken() -> Bool {
            let node = isTarget ? target : other
            let facts = RedisServerFacts("b", history: history, uptime: uptime)
            return move.isBroken(at: node, facts, now: begun + .seconds(10))
        }
        #expect(isBroken() != isWhole)
        move.isBroken = true
        #expect(isBroken())
    }

    @Test("A slot that is on its way to another target than before was lost in between")
    func otherTarget() {
        var memory = RedisMemory(.cluster, ReplayLimits())
        let (owner, now) = (RedisNode(host: "a", port: 1), MonotonicInstant(nanoseconds: 0))
        for (port, isBroken) in [(2, false), (2, false), (3, true), (2, true)] as [(UInt16, Bool)] {
            let target = RedisNode(host: "a", port: port)
            memory.noteMove(from: owner, to: target, identity: nil, now: now)
            #expect(memory.slotMove?.isBroken == isBroken)
        }
    }

    @Test("Entries from before the memory are known if they are tokens or proofs and no loss is known; no nonce is")
    func knowledge() {
        let (before, since) = (UInt64(999), UInt64(1_000))
        for (kind, issuedAt, known, afterLoss) in [
            (.nonce, since, true, true), (.token, since, true, true), (.proof, since, true, true),
            (.nonce, before, false, false), (.token, before, true, false), (.proof, before, true, false),
        ] as [(ReplayKey.Kind, UInt64, Bool, Bool)] {
            let key = ReplayKey(high: 1, low: 2)
            let entry = ReplayEntry(kind: kind, key: key, issuedAt: issuedAt, keepUntil: .max)
            #expect(Self.start(since).knows(entry) == known)
            #expect(Self.start(since, isAfterLoss: true).knows(entry) == afterLoss)
        }
    }

    @Test("A start is read from its key, and other texts are not")
    func texts() {
        for start in [Self.start(0), Self.start(1_700_000_000_000, isAfterLoss: true)] {
            #expect(MemoryStart(.string(Array(start.text.utf8))) == start)
        }
        for text in ["", "moved", "-1", "1 after", "1 after loss ", "1234567890123456789", "x"] {
            #expect(MemoryStart(.string(Array(text.utf8))) == nil, "\(text)")
        }
        #expect(MemoryStart(.null) == nil)
    }
}

extension RedisServerFacts {
    /// The facts of a server with enough room and no file.
    init(_ runID: String, history: String? = nil, uptime: UInt64 = 1_000_000, formerReplicationID: String? = nil) {
        self.init(
            runID: runID,
            history: history,
            hasRoomForProofs: true,
            appendsToFile: false,
            uptime: uptime,
            replicationID: runID + "a",
            formerReplicationID: formerReplicationID
        )
    }
}

extension MemoryJudgement.Known {
    fileprivate init(_ identity: String, _ start: MemoryStart) {
        self.init(identity: identity, start: start, answeredAt: 90_000)
    }
}
