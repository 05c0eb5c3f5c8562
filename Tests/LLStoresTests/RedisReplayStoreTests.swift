import Dispatch
import LLSockets
import LLTestSupport
import Testing

@testable import LLStores

@Suite(
    "What many replicas remember, in a real server",
    .live,
    .needsRedis,
    .serialized
)
struct RedisReplayStoreTests {
    @Test("The first use is accepted, every other refused, on every replica")
    func once() throws {
        let server = try RedisServer()
        let stores = try (0..<2).map { _ in try StoreUnderTest("redis://127.0.0.1:\(server.port)/3") }
        #expect(stores.allSatisfy { $0.waitUntilUp() })
        #expect(stores[0].use(1) == .accepted)
        #expect(stores[0].use(1) == .nonceUsed)
        #expect(stores[1].use(1) == .nonceUsed)
        #expect(stores[1].use(2) == .accepted)
        let both = ReplayLookup([StoreUnderTest.entry(.nonce, 3), StoreUnderTest.entry(.token, 2)])
        #expect(stores[0].ask(both).verdict == .tokenReplayed)
        // A refused nonce leaves the token beside it unused.
        let refreshed = ReplayLookup([StoreUnderTest.entry(.nonce, 1), StoreUnderTest.entry(.token, 4)])
        #expect(stores[0].ask(refreshed).verdict == .nonceUsed)
        #expect(stores[1].use(4) == .accepted)
        #expect(stores[0].store.completeSince == stores[1].store.completeSince ?? 0)
        #expect(stores.allSatisfy { $0.changes.count == 1 })
    }

    @Test(
        "A key has 1,024 places for proofs in each replica; a repeated one takes none, and other keys and nonces have theirs"
    )
    func quota() throws {
        let server = try RedisServer()
        let store = try StoreUnderTest.up(at: server.port)
        func proof(_ number: UInt64, of owner: UInt64) -> ReplayVerdict {
            var entry = StoreUnderTest.entry(.proof, number)
            entry.owner = ReplayKey(high: owner, low: 1)
            return store.ask(ReplayLookup([entry])).verdict
        }
        #expect(proof(0, of: 1) == .accepted)
        for _ in 0..<1_100 { #expect(proof(0, of: 1) == .proofReplayed) }
        for number: UInt64 in 1..<1_024 { #expect(proof(number, of: 1) == .accepted) }
        let refused = proof(1_024, of: 1)
        #expect(refused.answer == .tooMany && refused.retryAfterSeconds.map { $0 > 0 } == true)
        #expect(proof(2_000, of: 2) == .accepted)
        #expect(store.use(3_000) == .accepted)
    }

    @Test(
        "A server that is nearly full takes no more proofs, but nonces, revocations and another replica, and says when it has room"
    )
    func fullOfProofs() throws {
        let server = try RedisServer(["--maxmemory", "4mb", "--maxmemory-policy", "noeviction"])
        let store = try StoreUnderTest.up(at: server.port)
        #expect(store.wait { $0.store.revocations.isKnown })
        let answers = Locked<[ReplayAnswer]>([])
        var asked = 0
        while asked < 100_000, !answers.withLock({ $0.contains(.unavailable) }) {
            for _ in 0..<500 {
                asked += 1
                let question = ReplayLookup([StoreUnderTest.entry(.proof, UInt64(asked))])
                _ = store.store.remember(question, now: MonotonicClock.now()) { verdict in
                    answers.withLock { $0.append(verdict.answer) }
                }
            }
            #expect(store.wait { _ in answers.withLock { $0.count } == asked })
        }
        #expect(answers.withLock { $0.filter { $0 == .first }.count } > 5_000)
        #expect(answers.withLock { $0.contains(.unavailable) })
        for number: UInt64 in 1_000_000..<1_001_000 { #expect(store.use(number) == .accepted) }
        let revoked = Locked<RevocationAnswer?>(nil)
        store.store.revocations.revoke(app: "42".utf8.span, user: "7".utf8.span, at: WallClock.unixSeconds()) {
            answer in
            revoked.withLock { $0 = answer }
        }
        #expect(store.wait { _ in revoked.withLock { $0 } == .remembered })
        let other = try StoreUnderTest.up(at: server.port)
        #expect(other.use(2_000_000) == .accepted)
        #expect(other.ask(ReplayLookup([StoreUnderTest.entry(.proof, 2_000_001)])).verdict == .unavailable)
        #expect(store.failures.isEmpty && other.failures.isEmpty)
        try server.send("CONFIG SET maxmemory 64mb")
        // The first of these learns of the room.
        #expect(
            store.wait { $0.ask(ReplayLookup([StoreUnderTest.entry(.proof, 3_000_000)])).verdict != .unavailable }
        )
        #expect(store.ask(ReplayLookup([StoreUnderTest.entry(.proof, 3_000_001)])).verdict == .accepted)
    }

    @Test(
        "An entry lasts by the clock that is behind, but at most a day longer than by this machine's",
        arguments: [(0, 0), (3_600_000, -3_600_000), (-3_600_000, 0), (172_800_000, -86_400_000)] as [(Int64, Int64)]
    )
    func clocks(ahead: Int64, difference: Int64) {
        let server: Int64 = 1_700_000_000_000
        let time = RedisSession.entryTime(UInt64(server + ahead), serverTime: UInt64(server))
        #expect(Int64(time) == server + ahead + difference)
    }

    @Test("Of two hundred uses at once over two replicas exactly one is accepted, every time")
    func concurrent() throws {
        let server = try RedisServer()
        let stores = try (0..<2).map { _ in try StoreUnderTest("redis://127.0.0.1:\(server.port)") }
        #expect(stores.allSatisfy { $0.waitUntilUp() })
        for round: UInt64 in 0..<25 {
            let verdicts = Locked<[ReplayVerdict]>([])
            let group = DispatchGroup()
            for index in 0..<200 {
                group.enter()
                let isTaken = stores[index % 2].store.remember(
                    StoreUnderTest.question(round),
                    now: MonotonicClock.now()
                ) { verdict in
                    verdicts.withLock { $0.append(verdict) }
                    group.leave()
                }
                #expect(isTaken)
            }
            group.wait()
            let all = verdicts.withLock { $0 }
            #expect(all.filter { $0 == .accepted }.count == 1)
            #expect(all.filter { $0 == .nonceUsed }.count == 199)
        }
    }

    @Test("What was born before the memory began is refused, and the first five seconds count as before")
    func births() throws {
        let server = try RedisServer()
        let before = WallClock.unixMilliseconds()
        let store = try StoreUnderTest.up(at: server.port)
        let since = try #require(store.store.completeSince)
        #expect(store.use(1, bornAt: since - 1) == .nonceBeyondMemory)
        #expect(store.use(1, bornAt: since) == .accepted)
        #expect(since >= before + 5_000)
        #expect(since <= WallClock.unixMilliseconds() + 5_000)
    }

    @Test("A server that is killed and comes back empty: nothing is accepted twice, and all is well again by itself")
    func killed() throws {
        let server = try RedisServer()
        let store = try StoreUnderTest.up(at: server.port)
        let born = try #require(store.store.completeSince)
        #expect(store.use(1, bornAt: born) == .accepted)
        server.kill()
        #expect(store.wait { !$0.store.isUp })
        #expect(store.use(1, bornAt: born) == .unavailable)
        try server.start()
        #expect(store.waitUntilUp())
        #expect(store.use(1, bornAt: born) == .nonceBeyondMemory)
        let later = try #require(store.store.completeSince)
        #expect(later > born)
        #expect(store.use(1, bornAt: later) == .accepted)
    }

    @Test("Tokens from before a first start are accepted once, those from before a loss not at all")
    func tokens() throws {
        let server = try RedisServer()
        let store = try StoreUnderTest.up(at: server.port)
        let born = WallClock.unixMilliseconds() - 60_000
        #expect(store.useToken(1, bornAt: born) == .accepted)
        #expect(store.useToken(1, bornAt: born) == .tokenReplayed)
        server.kill()
        #expect(store.wait { !$0.store.isUp })
        try server.start()
        // One that knew no server before may come first: it learns of the loss from the other.
        let fresh = try StoreUnderTest("redis://127.0.0.1:\(server.port)")
        #expect(store.waitUntilUp())
        #expect(store.useToken(1, bornAt: born) == .tokenBeyondMemory)
        #expect(fresh.waitUntilUp())
        #expect(fresh.wait { $0.useToken(2, bornAt: born) == .tokenBeyondMemory })
        #expect(fresh.useToken(1, bornAt: born) == .tokenBeyondMemory)
        let later = try #require(store.store.completeSince)
        #expect(store.useToken(3, bornAt: later + 5_000) == .accepted)
        #expect(fresh.useToken(3, bornAt: later + 5_000) == .tokenReplayed)
    }

    @Test(
        "A server that writes its file before each answer lost nothing; one that writes it once a second begins anew",
        arguments: ["always", "everysec"]
    )
    func restart(appendfsync: String) throws {
        let server = try RedisServer(["--appendonly", "yes", "--appendfsync", appendfsync])
        let store = try StoreUnderTest.up(at: server.port)
        let born = try #require(store.store.completeSince)
        #expect(store.use(1, bornAt: born) == .accepted)
        try store.outlive(server)
        let isDurable = appendfsync == "always"
        #expect((store.store.completeSince == born) == isDurable)
        #expect(store.use(1, bornAt: born) == (isDurable ? .nonceUsed : .nonceBeyondMemory))
        #expect(store.use(2, bornAt: born) == (isDurable ? .accepted : .nonceBeyondMemory))
    }

    @Test("Data that are emptied while connected are noticed with the very next question")
    func emptied() throws {
        let server = try RedisServer()
        let store = try StoreUnderTest.quiet(at: server.port)
        let born = try #require(store.store.completeSince)
        #expect(store.use(1, bornAt: born) == .accepted)
        #expect(try server.send("FLUSHALL").hasPrefix("+OK"))
        #expect(store.use(1, bornAt: born) == .unavailable)
        #expect(store.wait { $0.store.isUp && $0.store.completeSince != born })
        #expect(store.use(1, bornAt: born) == .nonceBeyondMemory)
    }

    @Test("A server that hangs: every answer within a second and none of them yes, then all is well again")
    func hung() throws {
        let server = try RedisServer()
        let store = try StoreUnderTest.up(at: server.port, limits: ReplayLimits())
        #expect(store.use(1) == .accepted)
        server.suspend()
        let end = MonotonicClock.now() + .seconds(3)
        var number: UInt64 = 10
        while MonotonicClock.now() < end {
            number += 1
            let (verdict, took) = store.ask(StoreUnderTest.question(number))
            #expect(verdict == .unavailable)
            #expect(took < timeBound(.seconds(1)))
        }
        server.resume()
        #expect(store.waitUntilUp())
        #expect(store.use(1) == .nonceUsed)
        #expect(store.use(2) == .accepted)
        #expect(store.failures.count == 1)
    }

    @Test("A server behind a line that drips: answers come within a second, whatever they are")
    func dripping() throws {
        let server = try RedisServer()
        let relay = try SlowRelay(to: server.port, pause: .zero)
        defer { relay.stop() }
        let store = try StoreUnderTest.up(at: relay.port, limits: ReplayLimits())
        #expect(store.use(1) == .accepted)
        relay.setPause(.milliseconds(40))
        for number: UInt64 in 2..<6 {
            let (verdict, took) = store.ask(StoreUnderTest.question(number))
            #expect(verdict == .unavailable)
            #expect(took < timeBound(.seconds(1)))
        }
        relay.setPause(.zero)
        #expect(store.waitUntilUp())
        #expect(store.use(1) == .nonceUsed)
    }

    @Test("A server without memory left accepts nothing and forgets nothing, and recovers when it has some")
    func fullMemory() throws {
        let server = try RedisServer(["--maxmemory-policy", "noeviction"])
        let store = try StoreUnderTest.up(at: server.port)
        #expect(store.use(1) == .accepted)
        #expect(try server.send("CONFIG SET maxmemory 1").hasPrefix("+OK"))
        #expect(store.use(2) == .unavailable)
        #expect(store.wait { $0.failures.contains(.outOfMemory) })
        #expect(try server.send("CONFIG SET maxmemory 0").hasPrefix("+OK"))
        #expect(store.waitUntilUp())
        #expect(store.use(1) == .nonceUsed)
        #expect(store.use(2) == .accepted)
    }

    @Test(
        "A server that forgets when it is full is not used",
        arguments: ["allkeys-lru", "volatile-lru", "volatile-ttl", "allkeys-random"]
    )
    func evicting(policy: String) throws {
        let server = try RedisServer(["--maxmemory", "100mb", "--maxmemory-policy", policy])
        let store = try StoreUnderTest("redis://127.0.0.1:\(server.port)")
        #expect(store.wait { !$0.failures.isEmpty })
        #expect(store.failures == [.evicting(policy: policy)])
        #expect(store.use(1) == .unavailable)
        #expect(store.store.completeSince == nil)
    }

    @Test("A password is presented, from the URL or beside it; a wrong one, or none, is told as such")
    func password() throws {
        let server = try RedisServer(["--requirepass", "open sesame", "--user", "svc", "on", ">p@ss", "~*", "+@all"])
        let place = "127.0.0.1:\(server.port)"
        for (url, password) in [
            ("redis://\(place)", "open sesame"), ("redis://:open%20sesame@\(place)", nil),
            ("redis://svc:p%40ss@\(place)", nil), ("redis://svc@\(place)", "p@ss"),
        ] {
            let store = try StoreUnderTest(url, password: password)
            #expect(store.waitUntilUp())
            #expect(store.use(UInt64.random(in: 0 ... .max)) == .accepted)
        }
        for (url, password) in [
            ("redis://\(place)", nil), ("redis://\(place)", "wrong"), ("redis://svc:wrong@\(place)", nil),
            ("redis://nobody:p%40ss@\(place)", nil),
        ] {
            let store = try StoreUnderTest(url, password: password)
            #expect(store.wait { !$0.failures.isEmpty })
            #expect(store.failures == [.unauthenticated])
            #expect(store.use(1) == .unavailable)
        }
    }

    @Test("A user without the commands needed is told as such")
    func permissions() throws {
        let server = try RedisServer(["--user", "svc", "on", ">p", "~*", "+get", "+set"])
        let store = try StoreUnderTest("redis://svc:p@127.0.0.1:\(server.port)")
        #expect(store.wait { !$0.failures.isEmpty })
        #expect(store.failures == [.notPermitted(command: "INFO")])
    }

    @Test("TLS: the certificate and its name are verified")
    func tls() throws {
        let certificates = try TestCertificates.shared.get()
        let server = try RedisServer(identity: certificates.good)
        let url = "rediss://localhost:\(server.securePort)"
        let store = try StoreUnderTest(url, authorities: certificates.authorityFile)
        #expect(store.waitUntilUp())
        #expect(store.use(1) == .accepted)
        #expect(store.use(1) == .nonceUsed)
        let distrusting = try StoreUnderTest(url, authorities: certificates.otherAuthorityFile)
        #expect(distrusting.wait { !$0.failures.isEmpty })
        #expect(distrusting.use(2) == .unavailable)
        let other = try RedisServer(identity: certificates.wrongName)
        let misled = try StoreUnderTest(
            "rediss://localhost:\(other.securePort)",
            authorities: certificates.authorityFile
        )
        #expect(misled.wait { !$0.failures.isEmpty })
        #expect(misled.use(2) == .unavailable)
        // Plain words to a port that speaks TLS.
        let plain = try StoreUnderTest("redis://127.0.0.1:\(server.securePort)")
        #expect(plain.wait { !$0.failures.isEmpty })
        #expect(plain.use(3) == .unavailable)
    }

    @Test("A peer that says nothing, and one that speaks HTTP: refused in time")
    func strangers() throws {
        let silent = try ScriptedIssuer(.silent) { _, _ in }
        defer { silent.stop() }
        let patient = try StoreUnderTest("redis://127.0.0.1:\(silent.port)") { $0 = ReplayLimits() }
        let (verdict, took) = patient.ask(StoreUnderTest.question(1))
        #expect(verdict == .unavailable)
        #expect(took < timeBound(.seconds(1)))
        #expect(patient.wait { $0.failures == [.timedOut] })
        let web = try ScriptedIssuer(.plain) { _, peer in try peer.send("HTTP/1.1 400 Bad Request\r\n\r\n") }
        defer { web.stop() }
        let misled = try StoreUnderTest("redis://127.0.0.1:\(web.port)") { $0 = ReplayLimits() }
        #expect(misled.wait { !$0.failures.isEmpty })
        let nobody = try StoreUnderTest("redis://127.0.0.1:1") { $0 = ReplayLimits() }
        #expect(nobody.wait { !$0.failures.isEmpty })
        #expect(nobody.use(1) == .unavailable)
    }

    @Test("Kills under load: nothing is ever accepted twice, no answer takes a second")
    func killsUnderLoad() throws {
        let server = try RedisServer(["--appendonly", "yes", "--appendfsync", "always"])
        let stores = try (0..<2).map { _ in try StoreUnderTest.up(at: server.port, limits: ReplayLimits()) }
        let born = (stores.compactMap { $0.store.completeSince }.max() ?? 0) + 1_000
        let accepted = Locked<[UInt64: Int]>([:])
        let slowest = Locked(Duration.zero)
        let isOver = Locked(false)
        let group = DispatchGroup()
        for thread: UInt64 in 0..<8 {
            DispatchQueue(label: "load").async(group: group) {
                var round: UInt64 = 0
                while !isOver.withLock({ $0 }) {
                    // Four threads each fight for the same numbers.
                    let number = (thread / 4) << 32 | round % 2_000
                    round += 1
                    let (verdict, took) = stores[Int(thread % 2)].ask(StoreUnderTest.question(number, bornAt: born))
                    slowest.withLock { $0 = max($0, took) }
                    if verdict == .accepted { accepted.withLock { $0[number, default: 0] += 1 } }
                }
            }
        }
        for kills in 0..<5 {
            #expect(stores[0].wait { _ in accepted.withLock { $0.count > kills * 25 } })
            server.kill()
            try server.start()
            #expect(stores.allSatisfy { $0.waitUntilUp() })
        }
        isOver.withLock { $0 = true }
        group.wait()
        let all = accepted.withLock { $0 }
        #expect(all.count > 100)
        #expect(all.values.allSatisfy { $0 == 1 })
        #expect(slowest.withLock { $0 } < timeBound(.seconds(1)))
    }
}
