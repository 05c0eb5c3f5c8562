import LLHTTP
import LLStores
import LLTestSupport
import LimitedLogin
import Testing

@testable import LLService

/// The answer of `POST /nonces`.
struct DecodedNonce {
    let nonce, appID: String
    let issuedAt, expiresAt: Int64

    init(_ answer: TestResponse) throws {
        let object = answer.object
        nonce = try #require(object["nonce"] as? String, "\(answer.text)")
        appID = try #require(object["app_id"] as? String)
        issuedAt = try #require(object["issued_at"] as? Int64)
        expiresAt = try #require(object["expires_at"] as? Int64)
    }

    /// A nonce of ``issuer()`` for the tests' app, issued that long ago.
    static func made(millisecondsAgo: UInt64, lifetime: Int = 600) throws -> String {
        let issued = try issuer().issue(
            appID: InProcessService.appID,
            lifetime: .seconds(lifetime),
            now: WallClock.unixMilliseconds() - millisecondsAgo,
            randomBytes: (0..<16).map { _ in UInt8.random(in: .min ... .max) }
        )
        return try #require(issued).nonce.value
    }

    static func issuer() throws -> NonceIssuer { NonceIssuer(secret: try NonceSecret(bytes: (0..<32).map { $0 &* 7 })) }
}

@Suite("Nonces issued and used once", .live)
struct NonceRouteTests {
    private static let issued = #""issued_nonce":true"#

    private static func token(_ nonce: String, audience: String = InProcessService.appID) throws -> String {
        try Tokens.mint(Tokens.claims(audience: audience, nonce: nonce))
    }

    private static func service(rejectsReplays: Bool = false, store: ReplayStore? = nil) async throws
        -> InProcessService
    {
        let issuer = try DecodedNonce.issuer()
        return try await InProcessService(nonces: issuer, rejectsReplays: rejectsReplays, replayStore: store)
    }

    private static func nonce(_ service: InProcessService, _ body: String = #"{"app_id":"123456789012345"}"#) throws
        -> DecodedNonce
    {
        let answer = try service.answer("POST", "/nonces", body: body)
        #expect(answer.status == 200 && answer["cache-control"] == "no-store")
        #expect(answer["content-type"] == "application/json")
        return try DecodedNonce(answer)
    }

    @Test("A nonce is issued, and one token with it is accepted once")
    func life() async throws {
        let service = try await Self.service()
        let before = WallClock.unixSeconds()
        let nonce = try Self.nonce(service)
        #expect((before...WallClock.unixNanoseconds() / 1_000_000_000).contains(nonce.issuedAt))
        #expect(nonce.appID == InProcessService.appID && nonce.expiresAt - nonce.issuedAt == 600)
        // A request can shorten the lifetime.
        let short = try Self.nonce(service, #"{"app_id":"42","expires_in":1}"#)
        #expect(short.appID == "42" && short.expiresAt - short.issuedAt == 1)
        let token = try Self.token(nonce.nonce)
        let first = try service.verify(token, Self.issued)
        #expect(first.status == 200 && first["cache-control"] == "no-store")
        let second = try service.verify(token, Self.issued)
        #expect(second.status == 401 && second.code == "nonce_used")
        #expect(second["www-authenticate"] == "Bearer error=\"invalid_token\", code=\"nonce_used\"")
        // Another token with the same nonce is refused, too.
        #expect(try service.verify(Self.token(nonce.nonce), Self.issued).code == "nonce_used")
        let metrics = service.registry.render()
        #expect(metrics.contains("limited_login_nonces_issued_total 2\n"))
        #expect(metrics.contains("limited_login_replay_store_answers_total{result=\"seen\"} 2\n"))
        #expect(!metrics.contains(nonce.nonce))
    }

    @Test("With tracking limited the permissions must be Limited Login's; with enabled they may be any of Facebook's")
    func tracking() async throws {
        let service = try await Self.service()
        for (members, code) in [
            (#""permissions":["user_likes"]"#, "invalid_permission"),
            (#""tracking":"limited","permissions":["email","user_friends"]"#, nil),
            (#""tracking":"enabled","permissions":["user_likes","user_actions.fitness"]"#, nil),
            (#""tracking":"enabled","permissions":["User"]"#, "invalid_permission"),
            (#""tracking":"Enabled""#, "invalid_request"), (#""tracking":null"#, "invalid_request"),
        ] as [(String, String?)] {
            let answer = try service.answer("POST", "/nonces", body: #"{"app_id":"42",\#(members)}"#)
            #expect(answer.code == code && answer.status == (code == nil ? 200 : 400), "\(answer.text)")
        }
    }

    @Test("A nonce past its time is expired; a nonce from before the memory began is refused with the same code")
    func expired() async throws {
        let service = try await Self.service()
        let over = try DecodedNonce.made(millisecondsAgo: 50_000, lifetime: 10)
        let answer = try service.verify(Self.token(over), Self.issued)
        #expect(answer.status == 401 && answer.code == "nonce_expired")
        let store = MemoryReplayStore(now: WallClock.unixMilliseconds())
        let restarted = try await Self.service(store: .memory(store))
        let before = try restarted.verify(Self.token(DecodedNonce.made(millisecondsAgo: 1_000)), Self.issued)
        #expect(before.code == "nonce_expired" && before.text.contains("restarted"))
        // Its own nonces are good at once, although the memory is complete only for entries five seconds younger.
        let own = try Self.nonce(restarted).nonce
        #expect(try restarted.verify(Self.token(own), Self.issued).status == 200)
    }

    @Test("When the memory is full no nonce is accepted, and the answer says when to try again")
    func full() async throws {
        let store = MemoryReplayStore(capacity: 1, now: WallClock.unixMilliseconds() - 60_000)
        let service = try await Self.service(store: .memory(store))
        let nonces = try (0..<2).map { _ in try Self.nonce(service).nonce }
        #expect(try service.verify(Self.token(nonces[0]), Self.issued).status == 200)
        let refused = try service.verify(Self.token(nonces[1]), Self.issued)
        #expect(refused.status == 503 && refused.code == "replay_store_unavailable" && refused["retry-after"] == "1")
        // A token with another binding needs no memory.
        #expect(try service.verify(Self.token("n-1")).status == 200)
        #expect(try service.answer("GET", "/readyz", fields: []).status == 200)
        let health = try service.send("GET", "/readyz?verbose", fields: [], listener: .administration).response().text
        #expect(health.contains(#""replay_store":{"state":"down","kind":"memory","entries":1,"capacity":1}"#))
    }

    @Test("With replay: reject each token is accepted once, whatever its binding; introspection uses up nothing")
    func replay() async throws {
        let service = try await Self.service(rejectsReplays: true)
        let token = try Self.token("n-1")
        #expect(try service.introspect("token=\(token)").status == 401)
        #expect(try service.verify(token).status == 200)
        let again = try service.verify(token)
        #expect(again.status == 401 && again.code == "token_replayed")
        #expect(again["www-authenticate"] == "Bearer error=\"invalid_token\", code=\"token_replayed\"")
        #expect(try service.verify(token, #""subject":"2954873201847263""#).code == "token_replayed")
        #expect(try service.verify(Self.token("n-1")).status == 200)
        let nonce = try Self.nonce(service).nonce
        let bound = try Self.token(nonce)
        #expect(try service.verify(bound, Self.issued).status == 200)
        #expect(try service.verify(bound, Self.issued).code == "nonce_used")
        #expect(try service.verify(bound, "\"nonce\":\"\(nonce)\"").code == "nonce_used")
        let permissive = try await Self.service()
        for _ in 0..<2 { #expect(try permissive.verify(token).status == 200) }
    }

    @Test("A token from before the start is accepted once, so a start logs no user out")
    func tokenFromBefore() async throws {
        let store = MemoryReplayStore(now: WallClock.unixMilliseconds())
        let service = try await Self.service(rejectsReplays: true, store: .memory(store))
        let token = try Tokens.mint(Tokens.claims(issuedAt: WallClock.unixSeconds() - 30))
        #expect(try service.verify(token).status == 200)
        #expect(try service.verify(token).code == "token_replayed")
    }

    @Test("A malformed request for a nonce is refused")
    func badRequests() async throws {
        let service = try await Self.service()
        let many = String(repeating: #","email""#, count: 64)
        for (body, code) in [
            ("", "invalid_request"), ("[]", "invalid_request"), (#"{"app_id":"7"}"#, "unknown_app"),
            (#"{"app_id":""}"#, "unknown_app"), (#"{"app_id":7}"#, "invalid_request"),
            (#"{"app_id":"42","app_id":"42"}"#, "invalid_request"),
            (#"{"app_id":"42","permissions":[1]}"#, "invalid_request"),
            (#"{"app_id":"42","permissions":["email"\#(many)]}"#, "invalid_request"),
            (#"{"app_id":"42","expires_in":0}"#, "invalid_request"),
            (#"{"app_id":"42","expires_in":601}"#, "invalid_request"),
            (#"{"app_id":"42","expires_in":1.5}"#, "invalid_request"),
            (#"{"app_id":"42","expires_in":99999999999999999999}"#, "invalid_request"),
        ] {
            let answer = try service.answer("POST", "/nonces", body: body)
            #expect(answer.status == 400 && answer.code == code, "\(body)")
        }
    }

    @Test("With one configured app the body may be empty, and an empty body needs no media type")
    func oneApp() async throws {
        let policy = try VerificationPolicy(appIDs: ["42"])
        let service = try await InProcessService(policy: policy, nonces: DecodedNonce.issuer())
        let answer = try service.answer("POST", "/nonces", fields: [], body: "")
        #expect(try DecodedNonce(answer).appID == "42")
        #expect(try Self.nonce(service, "{}").appID == "42")
        #expect(try service.answer("POST", "/nonces", fields: [], body: "{}").status == 415)
        #expect(try service.answer("POST", "/nonces", fields: ["Content-Type: text/plain"], body: "{}").status == 415)
        #expect(try service.answer("GET", "/nonces", fields: []).status == 405)
        #expect(try service.answer("POST", "/nonces/", body: "{}").status == 404)
    }

    @Test("Without a secret /nonces is 404, and a request with issued_nonce names the setting that is missing")
    func disabled() async throws {
        let service = try await InProcessService()
        let absent = try service.answer("POST", "/nonces", body: "{}")
        #expect(absent.status == 404 && absent.text.contains("limited-login nonce secret"), "\(absent.text)")
        let answer = try service.verify(try Self.token("n-1"), Self.issued)
        #expect(answer.status == 400 && answer.code == "invalid_request")
        #expect(answer.text.contains("LIMITED_LOGIN_NONCE_SECRET_FILE"))
    }

    @Test("Only an authorised caller gets nonces")
    func authorised() async throws {
        let (key, line) = try #require(ClientKeys.make(name: "backend"))
        let clients = try ClientKeys(parsing: Array(line.utf8), place: "test")
        let service = try await InProcessService(clients: clients, nonces: DecodedNonce.issuer())
        let type = "Content-Type: application/json"
        let body = #"{"app_id":"42"}"#
        #expect(try service.answer("POST", "/nonces", fields: [type], body: body).status == 401)
        #expect(try service.answer("POST", "/nonces", fields: [type, "X-Api-Key: \(key)"], body: body).status == 200)
    }

    @Test(
        "A file of secrets holds one or two, and no message quotes them",
        arguments: [
            ("", nil), ("# only a comment\n", nil), ("\(Self.secretA)\n", 1), ("\(Self.secretA)\r\n\(Self.secretB)", 2),
            ("# new\n\(Self.secretA)\n\n# old\n\(Self.secretB)\n", 2), ("\(Self.secretA)\n\(Self.secretA)\n", nil),
            ("\(Self.secretA)\n\(Self.secretA.uppercased())\n", 2), ("\(Self.secretA) \n", nil),
            ("4qLJ9+/nVtS0yo1bQmF3ZcXhRk7eW2uGd8Ps5NvTaIw=\n", 1), ("correct-horse-battery-staple-4711\n", 1),
            (" \(Self.secretA)\n", nil), ("\(Self.secretA)\n\(Self.secretB)\n\(Self.secretC)\n", nil),
            ("\(Self.secretA.dropLast(33))\n", nil), ("   \n", nil), ("   \n\(Self.secretA)\n", nil),
            ("\(Self.secretA)\n # old\n", nil), ("hunter2\n", nil), ("\(Self.secretA)\n0\n", nil),
        ] as [(String, Int?)]
    )
    func secretsFile(text: String, count: Int?) throws {
        do {
            let issuer = try NonceSecretsFile.issuer(parsing: Array(text.utf8), place: "secrets")
            #expect(count != nil)
            let now = try #require(NumericDate(secondsSince1970: Int64(5)))
            #expect(issuer.issue(appID: "42", now: now) != nil)
        } catch {
            #expect(count == nil)
            for secret in [Self.secretA, Self.secretB, "hunter2"] { #expect(!"\(error)".contains(secret)) }
        }
    }

    static let secretA = String(repeating: "0123456789abcdef", count: 4)
    static let secretB = String(repeating: "f123456789abcde0", count: 4)
    static let secretC = String(repeating: "0f23456789abcde1", count: 4)
}
