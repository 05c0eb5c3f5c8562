import Foundation
import LLHTTP
import LLStandIn
import LLTestSupport
import LimitedLogin
import Testing

@testable import LLService
@testable import LLStores

@Suite("Revoked logins, on every route that verifies a token", .live)
struct RevocationRouteTests {
    private static let user = "2954873201847263"
    private static let key = "X-Api-Key: secret"
    private static let json = [key, "Content-Type: application/json"]
    private static let form = [key, "Content-Type: application/x-www-form-urlencoded"]

    private static func service(appIDs: [String] = [InProcessService.appID], replayStore: ReplayStore? = nil)
        async throws -> InProcessService
    {
        try await InProcessService(
            policy: try VerificationPolicy(appIDs: appIDs),
            clients: ClientKeysTests.backend(),
            gatewayIsEnabled: true,
            replayStore: replayStore
        )
    }

    private static func revoke(_ service: InProcessService, _ body: String) throws -> TestResponse {
        try service.answer("POST", "/revocations", fields: json, body: body)
    }

    /// The answer of each route about a token: the code, and for /introspect whether the token is active.
    private static func verdicts(_ service: InProcessService, _ token: String) throws -> [String] {
        let verify = try service.answer(fields: json, body: #"{"id_token":"\#(token)","nonce":"n-1"}"#)
        let auth = try service.answer("GET", "/auth", fields: ["Authorization: Bearer \(token)"])
        let introspect = try service.answer("POST", "/introspect", fields: form, body: "token=\(token)")
        return [verify.code ?? "ok", auth.code ?? "ok", introspect.text.contains("true") ? "active" : "inactive"]
    }

    @Test("A token issued until the revocation is refused on every route; later tokens and other logins' are not")
    func everywhere() async throws {
        let service = try await Self.service(appIDs: [InProcessService.appID, "42"])
        let now = WallClock.unixSeconds()
        let good = ["ok", "ok", "active"]
        let old = try Tokens.mint(Tokens.claims(issuedAt: now - 100))
        #expect(try Self.verdicts(service, old) == good)
        let answer = try Self.revoke(service, #"{"user_id":"\#(Self.user)","app_id":"\#(InProcessService.appID)"}"#)
        #expect(answer.status == 204 && answer.body.isEmpty && answer["cache-control"] == "no-store")
        let revoked = ["login_revoked", "login_revoked", "inactive"]
        #expect(try Self.verdicts(service, old) == revoked)
        // `iat` has whole seconds, so a token of the same second counts as issued before.
        #expect(try Self.verdicts(service, try Tokens.mint(Tokens.claims(issuedAt: now))) == revoked)
        let later = WallClock.unixSeconds() + 1
        #expect(try Self.verdicts(service, try Tokens.mint(Tokens.claims(issuedAt: later))) == good)
        #expect(try Self.verdicts(service, try Tokens.mint(Tokens.claims(audience: "42", issuedAt: now - 100))) == good)
        var other = Tokens.claims(issuedAt: now - 100)
        other.subject = "2954873201847264"
        #expect(try Self.verdicts(service, try Tokens.mint(other)) == good)
        let refused = try service.answer(fields: Self.json, body: #"{"id_token":"\#(old)","nonce":"n-1"}"#)
        #expect(refused.status == 401 && refused.text.contains(#""claim":"iat""#))
        #expect(refused["www-authenticate"] == #"Bearer error="invalid_token", code="login_revoked""#)
        let count = #"limited_login_verifications_total{credential="id_token",result="login_revoked"}"#
        #expect(service.registry.render().contains(count))
        // Readiness shows their number and the age of the list to operators alone.
        let page = try service.send("GET", "/readyz?verbose", listener: .administration).response().text
        #expect(page.contains(#""revocations":{"entries":1,"capacity":250000,"age_seconds":0}"#))
        #expect(!(try service.answer("GET", "/readyz?verbose").text.contains("revocations")))
    }

    @Test("A revocation dated by a clock that was ahead is 503 until a new login has a later time, then 401")
    func datedAhead() async throws {
        let now = WallClock.unixSeconds()
        let lead = Locked<Int64>(3_600)
        let revocations = Revocations(clock: { WallClock.unixSeconds() + lead.withLock { $0 } })
        let store = MemoryReplayStore(now: WallClock.unixMilliseconds() - 60_000, revocations: revocations)
        let service = try await Self.service(replayStore: .memory(store))
        let (app, user) = (InProcessService.appID, Self.user)
        revocations.revoke(app: app.utf8.span, user: user.utf8.span, at: now + 3_600) { #expect($0) }
        let tokens = try [now - 100, now + 5].map { try Tokens.mint(Tokens.claims(issuedAt: $0)) }
        let (unavailable, revoked) = ("replay_store_unavailable", "login_revoked")
        for (seconds, code) in [(3_600, revoked), (0, unavailable), (3_600, unavailable), (3_610, revoked)] {
            lead.withLock { $0 = Int64(seconds) }
            for token in tokens { #expect(try Self.verdicts(service, token) == [code, code, "inactive"]) }
        }
        lead.withLock { $0 = 0 }
        let answer = try service.answer("POST", "/introspect", fields: Self.form, body: "token=\(tokens[1])")
        #expect(answer.status == 503 && answer["retry-after"] != nil)
    }

    @Test("Other faults of a token are reported first, so a forged token reveals no revocation")
    func last() async throws {
        let service = try await Self.service()
        #expect(try Self.revoke(service, #"{"user_id":"\#(Self.user)"}"#).status == 204)
        let old = try Tokens.mint(Tokens.claims(issuedAt: WallClock.unixSeconds() - 7_200))
        #expect(try Self.verdicts(service, old)[0] == "expired")
        let token = try Tokens.mint(Tokens.claims())
        #expect(try Self.verdicts(service, token.dropLast(4) + "AAAA")[0] == "invalid_signature")
        let other = try service.answer(fields: Self.json, body: #"{"id_token":"\#(token)","nonce":"n-2"}"#)
        #expect(other.code == "nonce_mismatch")
    }

    @Test("Escaped ids in the token are decoded")
    func escapes() async throws {
        let service = try await Self.service()
        #expect(try Self.revoke(service, #"{"user_id":"\#(Self.user)"}"#).status == 204)
        let now = WallClock.unixSeconds()
        let payload = """
            {"iss":"https://www.facebook.com","aud":"\\u0031\(InProcessService.appID.dropFirst())",\
            "sub":"\\u0032\(Self.user.dropFirst())","jti":"a","nonce":"n-1","iat":\(now - 5),"exp":\(now + 600)}
            """
        let minter = StandInKeys.current
        let token = try minter.mint(header: minter.header, payload: Array(payload.utf8))
        #expect(try Self.verdicts(service, token) == ["login_revoked", "login_revoked", "inactive"])
    }

    @Test("A malformed body is refused and revokes nothing")
    func bodies() async throws {
        let service = try await Self.service(appIDs: [InProcessService.appID, "42"])
        for (body, code) in [
            ("", "invalid_request"), ("{}", "invalid_request"), ("[]", "invalid_request"),
            (#"{"user_id":1}"#, "invalid_request"), (#"{"user_id":"me"}"#, "invalid_request"),
            (#"{"user_id":"1","user_id":"1"}"#, "invalid_request"), (#"{"user_id":"1"}"#, "invalid_request"),
            (#"{"user_id":"\u0030444","app_id":"42"}"#, "invalid_request"),
            (#"{"user_id":"1","app_id":""}"#, "unknown_app"), (#"{"user_id":"1","app_id":"43"}"#, "unknown_app"),
            (#"{"user_id":"1","at":"5"}"#, "invalid_request"),
        ] {
            let answer = try Self.revoke(service, body)
            #expect(answer.status == 400 && answer.code == code, "\(body)")
        }
        #expect(service.core.revocations.count == 0)
    }

    @Test("Revoking needs a key, and callers must be configured; other methods and media types are refused")
    func access() async throws {
        let service = try await Self.service()
        let keyless = try await InProcessService()
        let body = #"{"user_id":"1"}"#
        let type = "Content-Type: application/json"
        for fields in [[type], [type, "X-Api-Key: wrong"]] {
            let answer = try service.answer("POST", "/revocations", fields: fields, body: body)
            #expect(answer.code == "unauthorized_client")
        }
        #expect(try keyless.answer("POST", "/revocations", fields: Self.json, body: body).code == "unauthorized_client")
        #expect(try service.answer("POST", "/revocations", fields: Self.form, body: body).status == 415)
        #expect(try service.answer("GET", "/revocations", fields: Self.json).status == 405)
        #expect(service.core.revocations.count == 0)
    }

    @Test("When the memory is full a new revocation is 503, and earlier ones are kept")
    func full() async throws {
        let now = WallClock.unixMilliseconds() - 60_000
        let small = MemoryReplayStore(now: now, revocations: Revocations(capacity: 1))
        let service = try await Self.service(replayStore: .memory(small))
        let token = try Tokens.mint(Tokens.claims())
        #expect(try Self.revoke(service, #"{"user_id":"\#(Self.user)"}"#).status == 204)
        let answer = try Self.revoke(service, #"{"user_id":"1"}"#)
        #expect(answer.status == 503 && answer.code == "replay_store_unavailable" && answer["retry-after"] != nil)
        #expect(try Self.revoke(service, #"{"user_id":"\#(Self.user)"}"#).status == 204)
        #expect(try Self.verdicts(service, token)[0] == "login_revoked")
    }

    @Test("Before Redis was read for the first time, every token is 503 and the service is not ready")
    func unknown() async throws {
        let store = try RedisReplayStore.patient("redis://127.0.0.1:1")
        let service = try await Self.service(replayStore: .redis(store))
        let token = try Tokens.mint(Tokens.claims())
        let code = "replay_store_unavailable"
        for token in [token, "x"] {
            let body = #"{"id_token":"\#(token)"}"#
            let uninstall = try service.answer("POST", "/uninstall", fields: Self.json, body: body)
            #expect(uninstall.status == 503 && uninstall.code == code)
            #expect(try Self.verdicts(service, token) == [code, code, "inactive"])
            let introspect = try service.answer("POST", "/introspect", fields: Self.form, body: "token=\(token)")
            #expect(introspect.status == 503 && introspect.code == code)
        }
        #expect(try service.answer("GET", "/readyz").code == code)
        #expect(try service.answer("GET", "/livez").status == 200)
        store.revocations.didRead(at: MonotonicClock.now())
        #expect(try service.answer("GET", "/readyz").status == 200)
        #expect(try Self.verdicts(service, token) == ["ok", "ok", "active"])
    }

    /// The routes that end a login, and two that end none; each with its body for a token.
    private static let routes = [
        ("POST", "/revocations", #"{"user_id":"\#(user)"}"#, true), ("DELETE", "/users/\(user)/permissions", "", true),
        ("POST", "/uninstall", #"{"id_token":"TOKEN"}"#, true),
        ("DELETE", "/users/\(user)/permissions/email", "", false), ("GET", "/users/\(user)/permissions", "", false),
    ]

    @Test("A login that a caller ends is over here, and the backend is told, once and signed", arguments: routes)
    func webhook(method: String, target: String, body: String, ends: Bool) async throws {
        let service = try await GraphService(hasBackend: true) { request, peer in
            try peer.answerAndStay(request.line.hasPrefix("GET") ? #"{"data":[]}"# : "true")
        }
        let before = WallClock.unixSeconds()
        let token = try Tokens.mint(Tokens.claims())
        let answer = try service.answer(method, target, body: body.replacing("TOKEN", with: token))
        #expect(answer.status == (method == "GET" ? 200 : 204))
        #expect(try service.verify(token).code == (ends ? "login_revoked" : nil))
        let events = service.graph.requests.filter { $0.line.hasPrefix("POST /webhooks ") }
        try #require(events.count == (ends ? 1 : 0))
        guard let event = events.first else { return }
        let (id, time) = (event.value(of: "webhook-id") ?? "", event.value(of: "webhook-timestamp") ?? "")
        let secrets = try WebhookSecrets(parsing: Array(CallbackService.secret.utf8), place: "webhooks")
        let genuine = try secrets.signature(id: id, timestamp: try #require(Int64(time)), body: event.body)
        #expect(id.hasPrefix("msg_") && event.value(of: "webhook-signature") == genuine)
        let told = try CallbackRouteTests.object(event.body)
        let data = try #require(told["data"] as? [String: Any])
        let moment = try #require(data["issued_at"] as? Int64)
        #expect(told["type"] as? String == "login.revoked" && Set(data.keys) == ["app_id", "user_id", "issued_at"])
        #expect(data["app_id"] as? String == InProcessService.appID && data["user_id"] as? String == Self.user)
        #expect((before...WallClock.unixSeconds()).contains(moment))
        let date = ISO8601DateFormatter().date(from: told["timestamp"] as? String ?? "")
        #expect(date?.timeIntervalSince1970 == Double(moment))
    }

    @Test("If the backend does not take the event it is 503, the revocation counts, and a repetition tells it")
    func webhookFails() async throws {
        for (method, target, body, _) in Self.routes.filter(\.3) {
            let isDown = Locked(true)
            let service = try await GraphService(hasBackend: true) { request, peer in
                let fails = isDown.withLock { $0 } && request.line.hasPrefix("POST /webhooks ")
                try peer.answer(status: fails ? "500 Internal Server Error" : "200 OK", "true")
            }
            let events = { service.graph.requests.filter { $0.line.hasPrefix("POST /webhooks ") } }
            let token = try Tokens.mint(Tokens.claims())
            let answer = try service.answer(method, target, body: body.replacing("TOKEN", with: token))
            #expect(answer.code == "callback_not_delivered" && answer["retry-after"] == "60", "\(target)")
            #expect(events().count == 3 && Set(events().map { $0.value(of: "webhook-id") }).count == 1, "\(target)")
            #expect(try service.verify(token).code == "login_revoked", "\(target)")
            isDown.withLock { $0 = false }
            #expect(try service.answer("POST", "/revocations", body: #"{"user_id":"\#(Self.user)"}"#).status == 204)
            #expect(events().count == 4, "\(target)")
        }
    }

    @Test("Uninstalling needs a key and a good token, and no app secret")
    func uninstallWithoutSecret() async throws {
        let service = try await GraphService(secrets: nil)
        let body = #"{"id_token":"\#(try Tokens.mint(Tokens.claims()))"}"#
        #expect(try service.answer("POST", "/uninstall", fields: [], body: body).code == "unauthorized_client")
        #expect(try service.answer("POST", "/uninstall", body: body).status == 204)
        #expect(service.graph.requests.allSatisfy { $0.value(of: "authorization") == nil })
    }
}
