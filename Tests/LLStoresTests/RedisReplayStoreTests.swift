import Dispatch
import LLHTTP
import LLTestSupport
import Testing

@testable import LLStores

@Suite("The memory of many replicas, in a real server", .live, .needsRedis, .serialized)
struct RedisReplayStoreTests {
    @Test("The first use is accepted, and every later use is refused, on every replica")
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
        // A refused nonce does not use up the token beside it.
        let refreshed = ReplayLookup([StoreUnderTest.entry(.nonce, 1), StoreUnderTest.entry(.token, 4)])
        #expect(stores[0].ask(refreshed).verdict == .nonceUsed)
        #expect(stores[1].use(4) == .accepted)
        // An entry that is over already is remembered for a second.
        let over = ReplayEntry(kind: .nonce, key: ReplayKey(high: 5, low: 7), issuedAt: .max, keepUntil: 1)
        #expect(stores[0].ask(ReplayLookup([over])).verdict == .accepted)
        #expect(stores[0].store.completeSince == stores[1].store.completeSince ?? 0)
        #expect(stores.allSatisfy { $0.changes.count == 1 })
    }

    @Test("A key has 1,024 places for proofs in each replica; repeated proofs, other keys and nonces take none of them")
    func quota() throws {
        let server = try RedisServer()
        let store = try StoreUnderTest.up(at: server.port)
        func proof(_ number: UInt64, of owner: UInt64) -> ReplayVerdict {
            var entry = StoreUnderTest.entry(.proof, number)
            entry.owners = [ReplayKey(high: owner, low: 1)]
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

    @Test("A nearly full server takes no proofs until it has room, but still nonces, also from a new replica")
    func fullOfProofs() throws {
        let server = try RedisServer(["--maxmemory-policy", "noeviction"])
        let store = try StoreUnderTest.up(at: server.port)
        func proof(_ number: UInt64, at store: StoreUnderTest) -> ReplayVerdict {
            store.ask(ReplayLookup([StoreUnderTest.entry(.proof, number)])).verdict
        }
        #expect(proof(1, at: store) == .accepted)
        let used = "used_memory:"
        let line = try server.send("INFO memory").split(whereSeparator: \.isNewline).first { $0.hasPrefix(used) }
        let bytes = try #require(line.flatMap { Int($0.dropFirst(used.count)) })
        try server.send("CONFIG SET maxmemory \(bytes * 8 / 7)")
        // The first of these proofs learns that there is no room.
        _ = proof(2, at: store)
        #expect(store.wait { proof(3, at: $0) == .unavailable })
        let other = try StoreUnderTest.up(at: server.port)
        for (index, replica) in [store, other].enumerated() {
            #expect(replica.use(UInt64(10 + index)) == .accepted)
            #expect(proof(4, at: replica) == .unavailable)
        }
        #expect(store.failures.isEmpty && other.failures.isEmpty)
        try server.send("CONFIG SET maxmemory 1gb")
        #expect(store.wait { proof(5, at: $0) != .unavailable })
    }

    @Test(
        "An entry lasts by the slower clock, but at most a day longer than by this machine's",
        arguments: [(0, 0), (3_600_000, -3_600_000), (-3_600_000, 0), (172_800_000, -86_400_000)] as [(Int64, Int64)]
    )
    func clocks(ahead: Int64, difference: Int64) {
        let server: Int64 = 1_700_000_000_000
        let time = RedisSession.entryTime(UInt64(server + ahead), serverTime: UInt64(server))
        #expect(Int64(time) == server + ahead + difference)
    }

    @Test(
        "A server that writes its file before each answer loses nothing; one that writes it once a second begins anew",
        arguments: ["always", "everysec"]
    )
    func restart(appendfsync: String) throws {
        let server = try RedisServer(["--appendonly", "yes", "--appendfsync", appendfsync])
        let store = try StoreUnderTest.up(at: server.port)
        let born = try #require(store.store.completeSince)
        #expect(store.use(1, issuedAt: born) == .accepted)
        server.kill()
        #expect(store.wait { !$0.store.isUp })
        try server.start()
        #expect(store.waitUntilUp())
        let isDurable = appendfsync == "always"
        #expect((store.store.completeSince == born) == isDurable)
        #expect(store.use(1, issuedAt: born) == (isDurable ? .nonceUsed : .nonceBeyondMemory))
        #expect(store.use(2, issuedAt: born) == (isDurable ? .accepted : .nonceBeyondMemory))
    }

    @Test("While a server hangs, every answer comes within a second and none is a yes; then the store recovers")
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

    @Test("The password comes from the URL or beside it; a wrong or missing one is reported as such")
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

    @Test("A Unix socket serves like a port, and a server that asks for a client's certificate gets it")
    func socketAndCertificate() throws {
        let folder = try ShortFolder()
        let certificates = try TestCertificates.shared.get()
        let options = ["--unixsocket", "\(folder.path)/s", "--tls-auth-clients", "yes"]
        let authorities = ["--tls-ca-cert-file", certificates.authorityFile]
        let server = try RedisServer(options + authorities, identity: certificates.good)
        let url = "rediss://localhost:\(server.securePort)"
        for store in [
            try StoreUnderTest("redis+unix://\(folder.path)/s?db=1"),
            try StoreUnderTest(url, authorities: certificates.authorityFile, identity: certificates.good),
        ] {
            #expect(store.waitUntilUp())
            #expect(store.use(UInt64.random(in: 0 ... .max)) == .accepted)
        }
        let bare = try StoreUnderTest(url, authorities: certificates.authorityFile)
        #expect(bare.wait { $0.failures.contains(.certificateNeeded) })
    }

    @Test(
        "A mistake is told by its cause, with the first failure",
        arguments: [
            ("", "redis://:secret@127.0.0.1:PORT", .needsNoPassword),
            ("", "redis://127.0.0.1:PORT/99", .noDatabase(99)),
            ("--rename-command INFO -", "redis://127.0.0.1:PORT", .unknownCommand("INFO")),
            ("", "redis://127.0.0.1:TLS", .perhapsTLS), ("", "rediss://127.0.0.1:PORT", .perhapsPlain),
            ("--tls-auth-clients yes", "rediss://localhost:TLS", .certificateNeeded),
            ("--replicaof 127.0.0.1 1", "redis://127.0.0.1:PORT", .readOnly),
            ("--maxmemory 1 --maxmemory-policy noeviction", "redis://127.0.0.1:PORT", .outOfMemory),
            (
                "--maxmemory 1gb --maxmemory-policy allkeys-lru", "redis://127.0.0.1:PORT",
                .evicting(policy: "allkeys-lru")
            ),
            ("--min-replicas-to-write 1", "redis://127.0.0.1:PORT", .tooFewReplicas),
            ("--user default on nopass ~* +@all -time", "redis://127.0.0.1:PORT", .notPermitted(command: "TIME")),
        ] as [(String, String, RedisFailure)]
    )
    func causes(options: String, url: String, cause: RedisFailure) throws {
        let certificates = try TestCertificates.shared.get()
        let words = options.split(separator: " ").map { $0 == "-" ? "" : String($0) }
        let server = try RedisServer(words, identity: certificates.good)
        let place = url.replacing("PORT", with: "\(server.port)").replacing("TLS", with: "\(server.securePort)")
        let authorities = url.hasPrefix("rediss") ? certificates.authorityFile : nil
        let store = try StoreUnderTest(place, authorities: authorities) { $0 = .brief }
        // The server closes behind its demand for a certificate, and the reset may overtake it.
        if cause == .certificateNeeded { return #expect(store.wait { $0.failures.contains(cause) }) }
        #expect(store.wait { !$0.failures.isEmpty })
        #expect(store.failures.first == cause)
        #expect(store.store.failure == cause)
    }

    @Test("A silent peer and an HTTP server are refused in time")
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
}
