import LLHTTP
import LLTestSupport
import Synchronization
import Testing

@testable import LLStores

#if canImport(FoundationEssentials)
import FoundationEssentials
#endif

@Suite("Used once: every order of events, up to a depth")
struct StoreModelTests {
    struct Run: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let depth: Int
        var isSplit = false
        /// The events before the exploration begins.
        var prefix: [StoreModel.Event] = []
        let make: @Sendable () -> StoreModel

        func explore(more: Int = 0, recovery: Int? = nil) -> Finding {
            var start = make()
            for event in prefix { start.apply(event) }
            return StoreModelTests.explore(start, depth: depth + more, isSplit: isSplit, recovery: recovery)
        }
    }

    struct Finding: Equatable {
        var states = 0
        var fault: String?
    }

    /// Visits every state within a number of events, the nearest first, until one breaks a promise.
    /// - Parameter recovery: the seconds after the last fault within which new logins are accepted; asked of each 50th state.
    fileprivate static func explore(_ start: StoreModel, depth: Int, isSplit: Bool, recovery: Int?) -> Finding {
        var finding = Finding()
        var seen: Set<Int> = [start.hashValue]
        var states: [(model: StoreModel, events: [StoreModel.Event])] = [(start, [])]
        for level in 1...depth {
            var next: [(model: StoreModel, events: [StoreModel.Event])] = []
            for (model, events) in states {
                for event in model.events(isSplit: isSplit) {
                    var later = model
                    later.apply(event)
                    guard seen.insert(later.hashValue).inserted else { continue }
                    finding.states += 1
                    let trace = events + [event]
                    if later.nonces.contains(where: { $0.accepted > 1 }) {
                        finding.fault = "accepted twice: \(trace)"
                        return finding
                    }
                    if let recovery, finding.states.isMultiple(of: 50), !later.recovers(within: recovery) {
                        finding.fault = "no new logins: \(trace)"
                        return finding
                    }
                    if level < depth { next.append((later, trace)) }
                }
            }
            states = next
        }
        return finding
    }

    private static let sentinel = ReplayStoreURL.Kind.sentinel(master: "main")
    /// One replica has found the server that the sentinels chose; the other one has not.
    private static let switched: [StoreModel.Event] = [.takeOver, .look(0)]

    static let runs: [Run] = [
        Run(testDescription: "single", depth: 5) { StoreModel(.single, skew: 90) },
        Run(testDescription: "single, late answers", depth: 5, isSplit: true) { StoreModel(.single, skew: 90) },
        Run(testDescription: "single, on disk", depth: 5) { StoreModel(.single, skew: 90, writesThrough: true) },
        Run(testDescription: "cluster", depth: 5) { StoreModel(.cluster, skew: 90) },
        Run(testDescription: "cluster, a slot moves", depth: 5) { StoreModel(.cluster, skew: 90, isMoving: true) },
        Run(testDescription: "cluster, a slot moves to a node that took over", depth: 5) {
            StoreModel(.cluster, skew: 90, isMoving: true, tookOver: true)
        },
        Run(testDescription: "sentinel", depth: 4) { StoreModel(sentinel) },
        Run(testDescription: "sentinel, late answers", depth: 4, isSplit: true) { StoreModel(sentinel) },
        Run(testDescription: "sentinel, a clock 4 s ahead", depth: 4, prefix: switched) {
            StoreModel(sentinel, skew: 4_000)
        },
        Run(testDescription: "sentinel, a clock 4 s late", depth: 4, prefix: switched) {
            StoreModel(sentinel, skew: -4_000)
        },
    ]

    /// Events beyond the usual number, for longer runs. With one more, the runs visit 4,514,371 states in seven minutes.
    private static let more =
        ProcessInfo.processInfo.environment["LIMITED_LOGIN_MODEL_DEPTH"].flatMap { Int($0) } ?? 0

    @Test("No nonce is accepted twice, and new logins are accepted 15 s after the last fault", arguments: runs)
    func explored(run: Run) {
        let finding = run.explore(more: Self.more, recovery: 15)
        if Self.more > 0 { print("\(run.testDescription): depth \(run.depth + Self.more), \(finding.states) states") }
        #expect(finding.fault == nil)
        #expect(finding.states > 1_000)
    }

    @Test("Where the promise ends: two losses follow each other faster than the clocks differ")
    func tooSoon() {
        let run = Run(testDescription: "", depth: 5) { StoreModel(.single, skew: 4_000) }
        #expect(run.explore().fault?.hasPrefix("accepted twice") == true)
    }

    @Test("A slot that moves there and back loses nothing, also if a node took over from another one before")
    func moves() {
        var model = StoreModel(.cluster, skew: 90, isMoving: true, tookOver: true)
        let starts = model.services.map(\.memory.start)
        let events: [StoreModel.Event] = [.new(issuer: 0, at: 1), .beginMove, .pass(1_000), .endMove, .pass(1_000)]
        for round in 0..<4 {
            for event in events { model.apply(event) }
            for service in 0..<2 { model.apply(.again(round, at: service)) }
        }
        #expect(model.services.map(\.memory.start) == starts)
        #expect(model.nonces.map(\.accepted) == [1, 1, 1, 1])
    }

    @Test(
        "With a shorter wait for the other replicas the model finds the nonce that two servers accept",
        arguments: [(0, 0, []), (3, 4_000, switched)] as [(Int, Int64, [StoreModel.Event])]
    )
    func tooShort(seconds: Int, skew: Int64, prefix: [StoreModel.Event]) {
        let run = Run(testDescription: "", depth: 5, prefix: prefix) {
            StoreModel(Self.sentinel, leaving: .seconds(seconds), skew: skew)
        }
        #expect(run.explore().fault?.hasPrefix("accepted twice") == true)
    }
}
