import Dispatch
import LLHTTP
import LLTestSupport
import Testing

@testable import LLStores

extension ReplayLimits {
    /// Limits so large that no time runs out, even on a slow machine.
    static var patient: ReplayLimits {
        var limits = ReplayLimits()
        limits.connectTimeout = .seconds(60)
        limits.answerTimeout = .seconds(60)
        limits.questionTimeout = .seconds(60)
        limits.connectionAge = .seconds(3_600)
        limits.revocationOverlap = .seconds(3_600)
        return limits
    }

    /// The default times if times are measured, else five seconds, within which a slow machine answers.
    static var brief: ReplayLimits {
        var limits = ReplayLimits()
        limits.connectTimeout = timeBound(limits.connectTimeout)
        limits.answerTimeout = timeBound(limits.answerTimeout)
        limits.questionTimeout = timeBound(limits.questionTimeout)
        return limits
    }
}

/// A store with a connection to a server, and its events.
final class StoreUnderTest: Sendable {
    let store: RedisReplayStore
    private let log: Locked<[ReplayStoreEvent]>

    init(
        _ url: String,
        password: String? = nil,
        authorities: String? = nil,
        identity: TestCertificates.Identity? = nil,
        adjust: (inout ReplayLimits) -> Void = { _ in }
    ) throws {
        var configuration = RedisReplayStore.Configuration(url: try ReplayStoreURL(parsing: url))
        if let password { configuration.password = Array(password.utf8) }
        configuration.tls = try authorities.map {
            let shown = identity.map { (certificateFile: $0.certificateFile, keyFile: $0.keyFile) }
            return try TLSContext(clientTrusting: .authorities(file: $0), speaksHTTP: false, identity: shown)
        }
        configuration.limits = .patient
        adjust(&configuration.limits)
        let log = Locked<[ReplayStoreEvent]>([])
        self.log = log
        store = try RedisReplayStore(configuration) { event in log.withLock { $0.append(event) } }
        store.start()
    }

    deinit { store.stop() }

    /// A store that has connected to its server on loopback.
    /// - Parameter limits: Pass the default limits to test their times.
    static func up(
        at port: UInt16,
        limits: ReplayLimits = .patient,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> StoreUnderTest {
        let store = try StoreUnderTest("redis://127.0.0.1:\(port)") { $0 = limits }
        #expect(store.waitUntilUp(), sourceLocation: sourceLocation)
        return store
    }

    /// The reported changes between up and down.
    var changes: [ReplayStoreEvent] { log.withLock { $0 }.filter { if case .answered = $0 { false } else { true } } }

    var failures: [RedisFailure] { changes.compactMap { if case .down(let failure) = $0 { failure } else { nil } } }

    /// Waits until a condition holds. Returns false if it never does.
    func wait(_ timeout: Duration = patienceOfTests, until condition: (StoreUnderTest) -> Bool) -> Bool {
        becomesTrue(within: timeout) { condition(self) }
    }

    func waitUntilUp() -> Bool { wait { $0.store.isUp } }

    /// Asks a question and waits for the answer. Returns also the time it took.
    func ask(_ question: ReplayLookup) -> (verdict: ReplayVerdict, took: Duration) {
        let answer = Locked<ReplayVerdict?>(nil)
        let semaphore = DispatchSemaphore(value: 0)
        let start = MonotonicClock.now()
        store.remember(question, now: start) { verdict in
            answer.withLock { $0 = verdict }
            semaphore.signal()
        }
        semaphore.wait()
        return (answer.withLock { $0 } ?? .unavailable, MonotonicClock.now().duration(since: start))
    }

    /// Uses the nonce of this number. It was issued at `issuedAt`, or by default late enough for the memory.
    func use(_ number: UInt64, issuedAt: UInt64? = nil) -> ReplayVerdict {
        ask(Self.question(number, issuedAt: issuedAt)).verdict
    }

    /// A question about a nonce, issued by default late enough for any memory that begins during a test.
    static func question(_ number: UInt64, issuedAt: UInt64? = nil) -> ReplayLookup {
        ReplayLookup([entry(.nonce, number, issuedAt: issuedAt)])
    }

    /// The same question in a queue of the store.
    /// - Parameter verdict: Receives the answer.
    static func waiting(
        _ question: ReplayLookup,
        until deadline: MonotonicInstant = .never,
        verdict: Locked<ReplayVerdict?> = Locked(nil)
    ) -> QueuedLookup {
        QueuedLookup(question: question, deadline: deadline, completion: { given in verdict.withLock { $0 = given } })
    }

    /// An entry of any kind.
    static func entry(_ kind: ReplayKey.Kind, _ number: UInt64, issuedAt: UInt64? = nil) -> ReplayEntry {
        let now = WallClock.unixMilliseconds()
        return ReplayEntry(
            kind: kind,
            key: ReplayKey(high: number, low: 7),
            issuedAt: issuedAt ?? now + 3_600_000,
            keepUntil: now + 7_200_000
        )
    }
}

extension RedisReplayStore {
    /// Entries issued since this time are known.
    var completeSince: UInt64? { memoryStart?.completeSince }
}

extension ReplayVerdict {
    static let nonceUsed = ReplayVerdict(answer: .seen, kind: .nonce)
    static let nonceBeyondMemory = ReplayVerdict(answer: .olderThanStore, kind: .nonce)
    static let tokenReplayed = ReplayVerdict(answer: .seen, kind: .token)
    static let proofReplayed = ReplayVerdict(answer: .seen, kind: .proof)
}

extension RedisServer {
    /// Makes this server a replica, and waits until it has all data of the primary.
    func follow(_ primary: RedisServer) throws {
        #expect(try send("REPLICAOF 127.0.0.1 \(primary.port)").hasPrefix("+OK"))
        #expect(becomesTrue { (try? send("INFO replication"))?.contains("master_link_status:up") == true })
    }
}
