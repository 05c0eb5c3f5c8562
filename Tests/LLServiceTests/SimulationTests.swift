import FoundationEssentials
import LLStores
import LLTestSupport
import Testing

@Suite("Whole replicas in simulated time", .live)
struct SimulationTests {
    private static func number(_ name: String) -> UInt64? {
        ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) }
    }

    /// `LIMITED_LOGIN_SEEDS` asks for more of them, and `LIMITED_LOGIN_SEED` for one alone.
    private static let seeds = number("LIMITED_LOGIN_SEED").map { $0...$0 } ?? 1...(number("LIMITED_LOGIN_SEEDS") ?? 2)

    @Test("Nothing is accepted twice or though revoked; all get in at last", arguments: SimulatedRedis.Kind.allCases)
    func holds(kind: SimulatedRedis.Kind) throws {
        var logins = 0
        for seed in Self.seeds {
            let run = try Simulation(seed: seed, kind)
            logins += run.logins
            #expect(run.fault == nil, "LIMITED_LOGIN_SEED=\(seed) \(kind): \(run.log.joined(separator: "; "))")
        }
        #expect(logins > 20 * Self.seeds.count)
        if Self.seeds.count > 100 { print("\(kind): \(Self.seeds.count) seeds, \(logins) accepted logins") }
    }

    @Test("A seed gives the same answers at the same times again", arguments: [SimulatedRedis.Kind.onDisk, .sentinel])
    func repeats(kind: SimulatedRedis.Kind) throws {
        let runs = try (0..<2).map { _ in try Simulation(seed: 7, kind) }
        let isSame = runs[0].answers == runs[1].answers
        #expect(isSame && runs[0].log == runs[1].log)
    }

    @Test(
        "The simulation finds what would break: no wait for the other replicas, and revocations that are not read",
        arguments: [(0, 1, "a nonce is accepted twice"), (7, 600, "a revoked login is accepted")]
    )
    func finds(leaving: Int, reading: Int, fault: String) throws {
        var limits = ReplayLimits()
        (limits.leavingTime, limits.revocationPause) = (.seconds(leaving), .seconds(reading))
        let found = try (1...60 as ClosedRange<UInt64>).first { seed in
            try Simulation(seed: seed, .sentinel, limits).fault?.hasSuffix(fault) == true
        }
        #expect(found != nil)
    }
}
