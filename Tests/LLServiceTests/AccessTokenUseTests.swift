import LLHTTP
import LLTestSupport
import LimitedLogin
import Testing

@testable import LLService
@testable import LLStores

@Suite("How often and how long an access token is accepted", .live)
struct AccessTokenUseTests {
    /// An id token of the same login as the access token of ``GraphStory``.
    private static func idToken(_ accessToken: String = GraphStory.token) throws -> String {
        var claims = Tokens.claims()
        let digest = try SHA256.digest(of: Array(accessToken.utf8).span).bytes
        claims.accessTokenHash = Base64URL.encode((0..<16).map { digest[$0] })
        return try Tokens.mint(claims)
    }

    private static func both(_ service: GraphService, _ idToken: String) throws -> TestResponse {
        try service.verify(idToken, #""nonce":"n-1","access_token":"\#(GraphStory.token)""#)
    }

    @Test("With replay: reject an access token is accepted once, alone or beside its id token, in either order")
    func bothAreUsed() async throws {
        for isAloneFirst in [false, true] {
            let service = try await GraphService(rejectsReplays: true, script: GraphStory.script())
            if isAloneFirst { #expect(try service.judge().status == 200) }
            let first = try Self.both(service, Self.idToken())
            #expect(first.status == (isAloneFirst ? 401 : 200), "\(first.text)")
            let alone = try service.judge()
            #expect(alone.status == 401 && alone.code == "token_replayed", "\(alone.text)")
            // Another id token of the same login presents the access token again.
            #expect(try Self.both(service, Self.idToken()).code == "token_replayed")
        }
    }

    @Test("A token without an end is remembered for ten years")
    func endless() throws {
        let now = try #require(NumericDate(secondsSince1970: 1_750_000_000))
        let inspection = try AccessTokenInspection(
            debugToken: Array(GraphStory.data([("expires_at", "0")]).utf8),
            appIDs: [InProcessService.appID],
            now: now
        )
        let verified = try VerifiedAccessToken(me: Array(GraphStory.me.utf8), of: inspection)
        let entries = ReplayEntry.all([1], verified, usesToken: true, now: now)
        let hours: [UInt64?] = [2_065_360_000 / 3_600 + 1]
        #expect(entries.map { $0.map { $0.keepUntil / 3_600_000 } } == hours)
    }

    @Test("A refused id token uses up no access token; a reload that allows access tokens opens no used one")
    func nothingIsUsed() async throws {
        let service = try await GraphService(rejectsReplays: true, script: GraphStory.script())
        #expect(try Self.both(service, Self.idToken("EAAanother0123456789")).code == "at_hash_mismatch")
        #expect(try service.judge().status == 200)
        let store = ReplayStore.memory(MemoryReplayStore(now: WallClock.unixMilliseconds()))
        for isAllowed in [false, true] {
            let service = try await GraphService(
                replayStore: store,
                acceptsAccessTokens: isAllowed,
                rejectsReplays: true,
                script: GraphStory.script()
            )
            if !isAllowed { #expect(try Self.both(service, Self.idToken()).status == 200) }
            #expect(try !isAllowed || service.judge().code == "token_replayed")
        }
    }

    @Test("max_token_age_seconds applies to an access token too")
    func age() async throws {
        let now = WallClock.unixSeconds()
        for (issuedAt, code) in [("\(now - 3_500)", nil), ("\(now - 3_700)", "too_old"), (nil, "too_old")]
            as [(String?, String?)]
        {
            let script = GraphStory.script(GraphStory.data([("issued_at", issuedAt)]))
            let service = try await GraphService(maximumTokenAge: .seconds(3_600), script: script)
            let response = try service.judge()
            #expect(response.code == code && service.meCount == (code == nil ? 1 : 0), "\(response.text)")
        }
    }

    @Test("After a loss of the store a token with an estimated issue time is 503: it may be older", .needsRedis)
    func estimatedBirth() async throws {
        let redis = try RedisServer()
        let events = Locked<[ReplayStoreEvent]>([])
        let store = try RedisReplayStore.patient("redis://127.0.0.1:\(redis.port)") { event in
            events.withLock { $0.append(event) }
        }
        store.start()
        func wait(lives: Int) async {
            await eventually("\(lives) lives of the server are seen") {
                let count = events.withLock { $0.count { if case .up = $0 { true } else { false } } }
                return count >= lives && store.isUp
            }
        }
        await wait(lives: 1)
        redis.kill()
        await eventually("the server is missed") { !store.isUp }
        try redis.start()
        await wait(lives: 2)
        let story = Locked("")
        let script = GraphStory.script(story)
        let service = try await GraphService(replayStore: .redis(store), rejectsReplays: true, script: script)
        let now = WallClock.unixSeconds()
        // `issued_at`, `expires_at`, and the answer.
        let tokens: [(issuedAt: String?, expiry: String, code: String?)] = [
            (nil, "\(now + 3_600)", "replay_store_unavailable"), (nil, "0", "replay_store_unavailable"),
            (nil, "\(now + 100_000)", "replay_store_unavailable"), ("\(now - 60)", "0", "token_replayed"),
            // Issued after the loss: one token says so itself, the other shows it by its end.
            ("\(now + 30)", "0", nil), (nil, "\(now + 7_230)", nil),
        ]
        for (index, token) in tokens.enumerated() {
            story.withLock { $0 = GraphStory.data([("issued_at", token.issuedAt), ("expires_at", token.expiry)]) }
            var response = try service.judge(token: GraphStory.token + "\(index)")
            // On a slow machine the store may have answered too late.
            for attempt in 0..<20 where response.detail.contains("try again shortly") {
                response = try service.judge(token: GraphStory.token + "\(index)-\(attempt)")
            }
            #expect(response.code == token.code, "\(token) \(response.text)")
            if token.code == "replay_store_unavailable" {
                #expect(response.status == 503 && response.detail.contains("does not tell when"))
            }
        }
        store.stop()
    }
}
