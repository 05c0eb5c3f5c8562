import Foundation
import LLHTTP
import LLTestSupport
import Testing

@testable import LLService
@testable import LLStores

@Suite("Facebook's callbacks", .live)
struct CallbackRouteTests {
    static func object(_ bytes: [UInt8]) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any])
    }

    @Test(
        "A good callback is passed on to the backend, signed and with all its data",
        arguments: [("deauthorize", "login.deauthorized"), ("data-deletion", "user.data_deletion_requested")]
    )
    func delivered(name: String, type: String) async throws {
        let service = try await CallbackService.make()
        let before = WallClock.unixSeconds()
        let issuedAt = before - 10
        let answer = try service.call(name, CallbackService.good(issuedAt: issuedAt))
        let after = WallClock.unixSeconds()
        #expect(answer.status == 200)
        #expect(answer["content-type"] == "application/json" && answer["cache-control"] == "no-store")
        try #require(service.graph.requestCount == 1)
        let webhook = service.graph.requests[0]
        #expect(webhook.line.hasPrefix("POST ") && webhook.value(of: "content-type") == "application/json")
        let body = try Self.object(webhook.body)
        #expect(body["type"] as? String == type)
        let moment = try #require(body["timestamp"] as? String)
        #expect(ISO8601DateFormatter().date(from: moment)?.timeIntervalSince1970 == Double(issuedAt))
        let data = try #require(body["data"] as? [String: Any])
        #expect(Set(data.keys) == ["app_id", "user_id", "issued_at", "confirmation_code"])
        #expect(data["app_id"] as? String == "222" && data["user_id"] as? String == "218471")
        #expect(data["issued_at"] as? Int64 == issuedAt)
        let code = try #require(data["confirmation_code"] as? String)
        #expect((20...40).contains(code.count) && code.utf8.allSatisfy { ASCII.isAlphanumeric($0) })
        let sentAt = try #require(webhook.value(of: "webhook-timestamp").flatMap { Int64($0) })
        #expect((before...after).contains(sentAt))
        let expected =
            name == "deauthorize"
            ? [:] : ["url": "https://app.example/deletion?code=\(code)", "confirmation_code": code]
        #expect(try Self.object(answer.body) as? [String: String] == expected)
        let kind = name == "deauthorize" ? "deauthorize" : "data_deletion"
        #expect(service.metric("limited_login_callbacks_total{callback=\"\(kind)\",result=\"accepted\"}") == 1)
        #expect(service.metric("limited_login_webhooks_total{result=\"delivered\"}") == 1)
    }

    @Test("A repetition has the same code and is not delivered again; another request has its own code")
    func repetition() async throws {
        let service = try await CallbackService.make()
        let now = WallClock.unixSeconds()
        let first = try CallbackService.good(issuedAt: now)
        let padded = first.replacing(".", with: "=.")
        let other = try CallbackService.good(issuedAt: now - 1)
        var codes: [String] = []
        for text in [first, first, padded, other] {
            let answer = try Self.object(try service.call("data-deletion", text).body)
            codes.append(try #require(answer["confirmation_code"] as? String))
        }
        _ = try service.call("deauthorize", first)
        let identifiers = service.graph.requests.compactMap { $0.value(of: "webhook-id") }
        #expect(Set(codes).count == 2 && codes[0] == codes[1] && codes[1] == codes[2])
        #expect(identifiers.count == 3 && Set(identifiers).count == 3 && !identifiers[0].contains(codes[0].prefix(8)))
        #expect(service.metric("limited_login_callbacks_total{callback=\"data_deletion\",result=\"accepted\"}") == 4)
    }

    @Test("A page that removes the app is acknowledged without effect; its data deletion is refused, as it has no data")
    func pageRemovals() async throws {
        let service = try await CallbackService.make()
        for payload in TestSignedRequest.pageRemovals(issuedAt: WallClock.unixSeconds()) {
            let text = try TestSignedRequest.make(payload)
            let answer = try service.call("deauthorize", text)
            #expect(answer.status == 200 && answer.text == "{}" && answer["content-type"] == "application/json")
            let refused = try service.call("data-deletion", text)
            #expect(refused.status == 403 && refused.text.contains("invalid_signed_request"))
        }
        #expect(service.graph.connectionCount == 0 && service.core.revocations.count == 0)
    }

    @Test("Every forgery is refused, counted and told in the log without the person; the backend receives nothing")
    func forgeries() async throws {
        let service = try await CallbackService.make()
        let now = WallClock.unixSeconds()
        for forgery in SignedRequestForgery.all {
            // A text longer than any signed request is refused before it is parsed.
            let isTooLong = forgery.name == "too long"
            let answer = try service.call("data-deletion", forgery.text(now))
            #expect(answer.status == (isTooLong ? 413 : 403), "\(forgery)")
            #expect(answer.code == (isTooLong ? "body_too_large" : "invalid_signed_request"), "\(forgery)")
        }
        #expect(service.graph.connectionCount == 0 && service.core.revocations.count == 0)
        let refused = #"limited_login_callbacks_total{callback="data_deletion",result="invalid_signed_request"}"#
        #expect(service.metric(refused) == SignedRequestForgery.all.count - 1)
        // At most ten refusals in a second have a line, so these have a service of their own.
        let other = try await CallbackService.make()
        for (name, reason) in [
            ("a cookie", "a login's"), ("a page tab", "a page tab's"), ("a player", "an Instant Game's"),
        ] {
            let forgery = try #require(SignedRequestForgery.otherPurposes.first { $0.name == name })
            #expect(try other.call("deauthorize", forgery.text(now)).status == 403)
            #expect(other.log.withLock { $0.contains { $0.hasPrefix("refused") && $0.contains(reason) } }, "\(name)")
        }
        #expect(!(service.log.withLock { $0 } + other.log.withLock { $0 }).contains { $0.contains("218471") })
    }

    /// Verifies a token of the callbacks' person and app.
    private static func verify(_ service: GraphService, subject: String, issuedAt: Int64) throws -> TestResponse {
        var claims = Tokens.claims(audience: "222", issuedAt: issuedAt)
        claims.subject = subject
        return try #require(try service.connect().exchange(LiveService.request(try Tokens.mint(claims))))
    }

    @Test("Tokens issued until the callback's moment are refused; later ones and other people's are not")
    func revocation() async throws {
        let service = try await CallbackService.make(hasBackend: false)
        let now = WallClock.unixSeconds()
        #expect(try Self.verify(service, subject: "218471", issuedAt: now - 60).status == 200)
        #expect(try service.call("deauthorize", CallbackService.good(issuedAt: now - 50)).status == 200)
        #expect(try Self.verify(service, subject: "218471", issuedAt: now - 50).text.contains("login_revoked"))
        #expect(try Self.verify(service, subject: "218471", issuedAt: now - 49).status == 200)
        #expect(try Self.verify(service, subject: "218472", issuedAt: now - 60).status == 200)
        // An older callback that comes again changes nothing. A callback that is ahead within the skew keeps its own
        // moment: it comes from Facebook's clock, as the tokens' times do.
        #expect(try service.call("deauthorize", CallbackService.good(issuedAt: now - 80)).status == 200)
        #expect(try Self.verify(service, subject: "218471", issuedAt: now - 49).status == 200)
        let ahead = WallClock.unixSeconds() + 40
        #expect(try service.call("deauthorize", CallbackService.good(issuedAt: ahead)).status == 200)
        #expect(try Self.verify(service, subject: "218471", issuedAt: ahead).text.contains("login_revoked"))
        #expect(try Self.verify(service, subject: "218471", issuedAt: ahead + 1).status == 200)
    }

    @Test("The person's tokens are refused even if the backend refuses the callback, or other replicas cannot be told")
    func revokedWithoutDelivery() async throws {
        let service = try await CallbackService.make { _, peer in try peer.answer(status: "400 Bad Request") }
        let url = try ReplayStoreURL(parsing: "redis://127.0.0.1:1")
        let store = try RedisReplayStore(RedisReplayStore.Configuration(url: url))
        store.revocations.didRead(at: MonotonicClock.now())
        store.revocations.setLink(.down)
        let alone = try await CallbackService.make(store: .redis(store))
        let now = WallClock.unixSeconds()
        for (service, code) in [(service, "callback_not_delivered"), (alone, "replay_store_unavailable")] {
            let answer = try service.call("data-deletion", CallbackService.good(issuedAt: now))
            #expect(answer.status == 503 && answer.text.contains(code), "\(answer.text)")
            #expect(try Self.verify(service, subject: "218471", issuedAt: now - 5).text.contains("login_revoked"))
            #expect(service.graph.requestCount == 1)
        }
    }

    @Test("A form without exactly one signed_request, or with a wrong media type, is refused")
    func forms() async throws {
        let service = try await CallbackService.make()
        let good = try CallbackService.good()
        let type = CallbackService.formType
        for (form, fields, status, code) in [
            ("", [type], 400, "invalid_request"), ("signed_request=", [type], 403, "invalid_signed_request"),
            ("signed_request=\(good)&signed%5Frequest=x", [type], 400, "invalid_request"),
            ("signed_request=\(good)&x=%zz", [type], 400, "invalid_request"),
            ("signed_request=\(good)", ["Content-Type: application/json"], 415, "unsupported_media_type"),
            ("x=" + String(repeating: "A", count: 8_191), [type], 413, "body_too_large"),
        ] {
            for name in ["deauthorize", "data-deletion"] {
                let answer = try service.send(name, form: form, fields: fields)
                #expect(answer.status == status && answer.code == code, "\(form.prefix(40))")
            }
        }
        let coded = try service.send("deauthorize", form: "x", fields: [type, "Content-Encoding: gzip"])
        #expect(coded.code == "unsupported_media_type" && coded["accept-encoding"] == "identity")
        #expect(coded.detail.contains("must not be compressed") && service.graph.connectionCount == 0)
        // Other parameters are ignored, and a charset is allowed.
        let charset = [type + "; charset=UTF-8"]
        #expect(try service.send("deauthorize", form: "hub=1&signed_request=\(good)&", fields: charset).status == 200)
        let get = try #require(try service.connect().exchange("GET /callbacks/deauthorize HTTP/1.1\r\nHost: t\r\n\r\n"))
        #expect(get.status == 405 && get["allow"] == "POST, OPTIONS")
    }

    @Test("Without secrets both routes are 404; without a backend deauthorize works and data deletion is 404")
    func notConfigured() async throws {
        let nothing = try await CallbackService.make(hasBackend: false, hasSecrets: false)
        let noSecrets = try await CallbackService.make(hasSecrets: false)
        let noBackend = try await CallbackService.make(hasBackend: false)
        for service in [nothing, noSecrets] {
            #expect(try service.call("deauthorize", CallbackService.good()).status == 404)
            #expect(try service.call("data-deletion", CallbackService.good()).status == 404)
        }
        #expect(try noBackend.call("data-deletion", CallbackService.good()).status == 404)
        let answer = try noBackend.call("deauthorize", CallbackService.good())
        #expect(answer.status == 200 && answer.text == "{}")
        #expect(try noBackend.call("deauthorize", CallbackService.good() + "A").status == 403)
        for service in [nothing, noSecrets, noBackend] { #expect(service.graph.connectionCount == 0) }
    }
}
