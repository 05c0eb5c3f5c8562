import LLHTTP
import LLStores
import LLTestSupport
import LimitedLogin
import Testing

@testable import LLService

/// The nonce of a session, by value: compared first, used up last.
@Suite("The nonce of the session is the whole check", .live)
struct SessionNonceTests {
    private enum Way: CaseIterable {
        case verify, exchange, accessToken

        /// The status of a refused credential.
        var refusal: Int { self == .exchange ? 400 : 401 }
    }

    /// A service in front of a Graph that tells the nonce of an access token's login.
    private struct Bench {
        let story: LoginStory
        let service: GraphService

        init(_ store: ReplayStore? = nil) async throws {
            story = LoginStory()
            service = try await GraphService(
                replayStore: store ?? GraphService.memory(),
                nonces: try DecodedNonce.issuer(),
                tokens: try OwnTokens.settings(),
                script: story.script()
            )
        }

        /// The answer to a session that holds `held`, about a credential whose login was begun with `begun`.
        func ask(_ way: Way, held: String, begun: String, _ more: String = "") throws -> TestResponse {
            story.nonce.withLock { $0 = begun }
            let token = try Tokens.mint(Tokens.claims(nonce: begun))
            switch way {
            case .verify: return try service.verify(token, #""nonce":"\#(held)"\#(more)"#)
            case .accessToken: return try service.judge(#""auth_nonce":true,"nonce":"\#(held)"\#(more)"#)
            case .exchange: return try service.exchange(OwnTokenTests.body(token, "nonce=\(held)\(more)"))
            }
        }
    }

    /// Twenty-four rows: each way, a nonce of ours or another's, in its own session or another's, twice each.
    private static func checkTable(_ store: ReplayStore? = nil) async throws {
        let bench = try await Bench(store)
        await eventually("nonces are issued") { (try? bench.service.issueNonce()) != nil }
        for way in Way.allCases {
            for isOurs in [true, false] {
                let begun = isOurs ? try bench.service.issueNonce() : "backend-made-\(way)-0001"
                let other = isOurs ? try bench.service.issueNonce() : "backend-made-\(way)-0002"
                // Another session comes first, twice: it learns nothing and uses nothing up.
                for _ in 0..<2 {
                    let thief = try bench.ask(way, held: other, begun: begun)
                    #expect(thief.status == way.refusal && thief.code == "nonce_mismatch", "\(way) \(thief.text)")
                }
                let first = try bench.ask(way, held: begun, begun: begun)
                #expect(first.status == 200, "\(way) \(isOurs) \(first.text)")
                let second = try bench.ask(way, held: begun, begun: begun)
                #expect(second.status == (isOurs ? way.refusal : 200), "\(way) \(isOurs) \(second.text)")
                #expect(second.code == (isOurs ? "nonce_used" : nil), "\(way) \(isOurs) \(second.text)")
                // The nonce of the other session was compared, and not used up.
                #expect(try bench.ask(way, held: other, begun: other).status == 200, "\(way) \(isOurs)")
            }
        }
        let metrics = bench.service.registry.render()
        #expect(metrics.contains("limited_login_replay_store_answers_total{result=\"first\"} 6\n"), "\(metrics)")
        #expect(metrics.contains("limited_login_replay_store_answers_total{result=\"seen\"} 3\n"), "\(metrics)")
    }

    @Test("A table of 24 rows, with the memory of one process")
    func memory() async throws { try await Self.checkTable() }

    @Test("The same table with Redis, and with Redis Cluster", .needsRedis, arguments: [false, true])
    func redis(isCluster: Bool) async throws {
        let server = try RedisServer(isCluster ? ["--cluster-enabled", "yes"] : [])
        if isCluster { #expect(try server.send("CLUSTER ADDSLOTSRANGE 0 16383").contains("OK")) }
        let scheme = isCluster ? "redis+cluster" : "redis"
        let store = try RedisReplayStore.patient("\(scheme)://127.0.0.1:\(server.port)")
        store.start()
        defer { store.stop() }
        await eventually("the store is connected") { store.isUp }
        try await Self.checkTable(.redis(store))
    }

    @Test("issued_nonce beside the nonce demands one of ours; with a subject the nonce is only compared")
    func besides() async throws {
        let bench = try await Bench()
        for way in Way.allCases {
            let demand = way == .exchange ? "&issued_nonce=true" : #","issued_nonce":true"#
            let user = way == .accessToken ? GraphStory.user : "2954873201847263"
            let subject = way == .exchange ? "&subject=\(user)" : #","subject":"\#(user)""#
            let foreign = try bench.ask(way, held: "backend-made-0001", begun: "backend-made-0001", demand)
            #expect(foreign.status == way.refusal && foreign.code == "nonce_not_issued", "\(way) \(foreign.text)")
            let nonce = try bench.service.issueNonce()
            let other = try bench.service.issueNonce()
            #expect(try bench.ask(way, held: other, begun: nonce, demand).code == "nonce_mismatch", "\(way)")
            for _ in 0..<2 { #expect(try bench.ask(way, held: nonce, begun: nonce, subject).status == 200, "\(way)") }
            #expect(try bench.ask(way, held: nonce, begun: nonce, demand).status == 200, "\(way)")
            #expect(try bench.ask(way, held: nonce, begun: nonce, demand).code == "nonce_used", "\(way)")
            // A refresh goes on after the login used the nonce up, and after the nonce's time.
            #expect(try bench.ask(way, held: nonce, begun: nonce, subject + demand).status == 200, "\(way)")
            let old = try DecodedNonce.made(millisecondsAgo: 2_000, lifetime: 1)
            #expect(try bench.ask(way, held: old, begun: old).code == "nonce_expired", "\(way)")
            #expect(try bench.ask(way, held: old, begun: old, subject).status == 200, "\(way)")
        }
    }

    @Test("A nonce of ours that the client hashes is recognised by its raw value, and used up")
    func raw() async throws {
        let bench = try await Bench()
        let nonce = try bench.service.issueNonce()
        let hash = try SHA256.digest(of: Array(nonce.utf8).span).hexadecimal
        let token = try Tokens.mint(Tokens.claims(nonce: hash))
        func code(_ members: String) throws -> String? { try bench.service.verify(token, members).code }
        #expect(try code(#""nonce":"\#(nonce)""#) == "nonce_mismatch")
        #expect(try code(#""raw_nonce":"\#(bench.service.issueNonce())""#) == "nonce_mismatch")
        #expect(try code(#""raw_nonce":"\#(nonce)","issued_nonce":true"#) == nil)
        #expect(try code(#""raw_nonce":"\#(nonce)""#) == "nonce_used")
    }

    @Test("No refusal after the binding uses the nonce up: a revoked login, another device, tracking")
    func refused() async throws {
        let bench = try await Bench()
        let nonce = try bench.service.issueNonce()
        let thumbprint = String(repeating: "A", count: 43)
        let device = #","key_thumbprint":"\#(thumbprint)""#
        #expect(try bench.ask(.verify, held: nonce, begun: nonce, device).code == "key_thumbprint_mismatch")
        let hash = #","access_token":"EAAx""#
        #expect(try bench.ask(.verify, held: nonce, begun: nonce, hash).code == "at_hash_mismatch")
        #expect(try bench.ask(.verify, held: nonce, begun: nonce).status == 200)
    }

    @Test(
        "A nonce below 16 characters is accepted, counted, and told with its caller's name",
        arguments: [("123", true), ("n-0S6_WzA2MjQ9x", true), ("n-0S6_WzA2MjQ9xT", false), ("ééééééééé", true)]
    )
    func weak(nonce: String, isWeak: Bool) async throws {
        let bench = try await Bench()
        for way in Way.allCases { #expect(try bench.ask(way, held: nonce, begun: nonce).status == 200, "\(way)") }
        let count = isWeak ? Way.allCases.count : 0
        #expect(bench.service.registry.render().contains("limited_login_weak_nonces_total \(count)\n"))
        let lines = bench.service.log.withLock { $0.filter { $0.contains("so short") } }
        #expect(lines.count == count && lines.allSatisfy { $0.contains("backend") && !$0.contains(nonce) }, "\(lines)")
    }

    @Test(
        "A mismatch names the nonce of the sample code and the one that the SDK makes",
        arguments: [
            ("123", "sample code"), ("8C2E0F9B-0E0B-4C43-9F0E-6A1D2B7C4D55", "upper-case UUID"),
            ("8c2e0f9b-0e0b-4c43-9f0e-6a1d2b7c4d55", "another login"), ("1234", "another login"),
        ]
    )
    func shapes(begun: String, word: String) async throws {
        let bench = try await Bench()
        let answer = try bench.ask(.verify, held: "backend-made-0001", begun: begun)
        #expect(answer.code == "nonce_mismatch" && answer.detail.contains(word), "\(answer.text)")
    }
}
