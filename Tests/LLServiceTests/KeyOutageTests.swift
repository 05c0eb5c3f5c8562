import LLHTTP
import LLStandIn
import LLTestSupport
import LimitedLoginKeys
import Testing

@testable import LLService
@testable import LLStores

@Suite("POST /verify: keys that change or are missing", .live)
struct KeyOutageTests {
    @Test("Without keys and without a fetch under way a token is 503, never 401")
    func noKeys() async throws {
        let service = try await InProcessService(minters: nil)
        _ = await service.cache.refresh()
        let answer = try service.verify(try Tokens.mint(Tokens.claims()))
        #expect(answer.status == 503 && answer.code == "keys_unavailable")
        #expect(answer["retry-after"] != nil && answer["www-authenticate"] == nil)
    }

    @Test("A token of an unknown key is unknown_key after a fetch from the issuer")
    func unknownKey() async throws {
        let service = try await InProcessService()
        let token = try Tokens.mint(Tokens.claims(), by: StandInKeys.stranger)
        let body = "{\"id_token\":\"\(token)\",\"nonce\":\"n-1\"}"
        if try service.send(body: body).isParked { _ = await service.cache.refresh() }
        let answer = try service.send(body: body, visit: .woken).response()
        #expect(answer.status == 401 && answer.code == "unknown_key")
    }

    @Test("A key ID longer than any published key ID causes no fetch")
    func overlongKeyID() async throws {
        let service = try await InProcessService()
        let fetches = service.source.fetchCount
        let header = #"{"alg":"RS256","kid":"\#(String(repeating: "x", count: 300))"}"#
        let token = try StandInKeys.current.mint(header: Array(header.utf8), payload: Array("{}".utf8))
        let answer = try service.answer(body: "{\"id_token\":\"\(token)\",\"nonce\":\"n-1\"}")
        #expect(answer.code == "unknown_key" && service.source.fetchCount == fetches)
    }

    @Test("A request that waits too long for the issuer's answer is 429 with Retry-After: the client is not at fault")
    func expiredVisit() async throws {
        let service = try await InProcessService()
        let token = try Tokens.mint(Tokens.claims(), by: StandInKeys.stranger)
        let body = "{\"id_token\":\"\(token)\",\"nonce\":\"n-1\"}"
        let answer = try service.send(body: body, visit: .expired).response()
        #expect(answer.status == 429 && answer.code == "key_checks_exhausted" && answer["retry-after"] != nil)
    }

    @Test("At most 512 requests with unknown keys wait; one more is 429, unless another request waits for the same key")
    func places() async throws {
        let service = try await InProcessService()
        func outcome(_ keyID: String, padding: Int = 0) throws -> InProcessService.Outcome {
            let header = Array("{\"alg\":\"RS256\",\"kid\":\"\(keyID)\"}".utf8)
            let token = "\(Base64URL.encode(header)).e30.AAAA"
            let space = String(repeating: " ", count: padding)
            return try service.send(body: "{\"id_token\":\"\(token)\",\(space)\"nonce\":\"n-1\"}")
        }
        func isParked(_ keyID: String, padding: Int = 0) throws -> Bool {
            try outcome(keyID, padding: padding).isParked
        }
        // The one fetch that may start at once has started and ended.
        #expect(try isParked("first"))
        service.abandonLast()
        _ = await service.cache.refresh()
        let fetches = service.source.fetchCount
        // Long requests get an eighth of the places.
        for number in 0..<64 { #expect(try isParked("long-\(number)", padding: 8_192)) }
        // A long one that ends gives its place to another.
        service.abandonLast()
        #expect(try isParked("long-63", padding: 8_192) && !isParked("long", padding: 8_192))
        for number in 64..<512 { #expect(try isParked("short-\(number)")) }
        let answer = try outcome("one more").response()
        #expect(answer.status == 429 && answer.code == "key_checks_exhausted")
        #expect((3_000...3_600).contains(Int(answer["retry-after"] ?? "") ?? 0))
        #expect(answer["www-authenticate"] == nil)
        #expect(try isParked("short-511"))
        // A client that leaves gives up its place.
        service.abandonLast()
        #expect(try !isParked("one more"))
        for _ in 0..<512 { #expect(try isParked("short-511")) }
        #expect(try !isParked("short-511"))
        #expect(service.source.fetchCount == fetches)
    }

    @Test("A request that gets its key as its wait ends does not wait anew for the store: it is 503")
    func expiredVisitBeforeTheStore() async throws {
        // The server never answers, so every question waits.
        let silent = try Socket.listener(on: .loopback(port: 0), backlog: 8, sharesPort: false)
        let store = try RedisReplayStore.patient("redis://\(silent.localAddress())")
        store.start()
        defer {
            store.stop()
            withExtendedLifetime(silent) {}
        }
        store.revocations.didRead(at: MonotonicClock.now())
        let service = try await InProcessService(rejectsReplays: true, replayStore: .redis(store))
        let body = "{\"id_token\":\"\(try Tokens.mint(Tokens.claims()))\",\"nonce\":\"n-1\"}"
        #expect(try service.send(body: body).isParked, "the store has not been asked")
        let answer = try service.send(body: body, visit: .expired).response()
        #expect(answer.status == 503 && answer.code == "replay_store_unavailable")
    }
}
