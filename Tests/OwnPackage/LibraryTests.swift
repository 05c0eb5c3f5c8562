import Foundation
import LimitedLogin
import LimitedLoginKeys
import LimitedLoginTesting
import Synchronization
import Testing

@testable import app

/// The API that a separate package relies on, used as a user of the products would.
@Suite("The library, from outside")
struct LibraryTests {
    private static let key = Result { try TestKey() }

    private func verifier(_ keys: any JWKSetProvider) throws -> LoginVerifier {
        LoginVerifier(policy: try VerificationPolicy(appIDs: [TestKey.appID]), keys: keys)
    }

    private static let person: [String: ClaimValue] = [
        "nonce": "n-1", "name": "Jane Q Doe", "email": "jane.doe@example.com", "user_birthday": "01/02/1990",
        "user_age_range": ["min": 21], "user_hometown": ["id": "1", "name": "Martinez, California"],
        "user_friends": ["1122334455"], "picture": "https://example.com/1.jpg", "x": [nil, true, 5, 1.5, "é\n\"\\"],
    ]

    @Test("The record of a login has its facts, without the token itself, also after a store")
    func record() async throws {
        let key = try Self.key.get()
        let token = try key.token(claims: Self.person)
        let verified = try await verifier(FixedKeys(key)).verify(token, nonce: "n-1")
        let json = try JSONEncoder().encode(LoginRecord(verified))
        #expect(!String(decoding: json, as: UTF8.self).contains(token.suffix(40)))
        let object = try #require(try JSONSerialization.jsonObject(with: json) as? [String: Any])
        #expect(Set(object.keys) == ["authentication_token", "profile"])
        let profile = try #require(object["profile"] as? [String: Any])
        #expect(profile["birthday"] as? String == "1990-01-02" && profile["email_verified"] as? Bool == false)
        let read = try JSONDecoder().decode(LoginRecord.self, from: json)
        #expect(read == LoginRecord(verified) && read.nonce == "n-1" && read.friendIDs == ["1122334455"])
        #expect(read.userID == TestKey.userID && read.hometown?.name == "Martinez, California")
        let other = String(decoding: json, as: UTF8.self).replacing("\"user_id\":\"", with: "\"user_id\":\"9")
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(LoginRecord.self, from: Data(other.utf8)) }
    }

    @Test("Dates and brackets of ages are read strictly")
    func values() {
        for text in ["\"1990-02-30\"", "\"90\"", "\"1990-1-2\"", "\"01/02/1990\"", "\"\"", "5"] {
            #expect(throws: DecodingError.self) { try JSONDecoder().decode(Birthday.self, from: Data(text.utf8)) }
        }
        for text in ["{}", #"{"min":5,"max":5}"#, #"{"min":-1}"#] {
            #expect(throws: DecodingError.self) { try JSONDecoder().decode(AgeRange.self, from: Data(text.utf8)) }
        }
    }

    /// What a handler makes of a token, in a session that began with `nonce`.
    private struct Handler: Sendable {
        let name: String
        let findings: Set<String>
        let logIn: @Sendable (_ token: String, _ nonce: String, LoginVerifier, LoginNonces) async throws -> Profile
    }

    private static func claims(of token: String) throws -> [String: Any] {
        let part = token.split(separator: ".", omittingEmptySubsequences: false).dropFirst().first ?? ""
        var base64 = String(part).replacing("-", with: "+").replacing("_", with: "/")
        while base64.utf8.count % 4 != 0 { base64 += "=" }
        let object = try JSONSerialization.jsonObject(with: Data(base64Encoded: base64) ?? Data())
        return object as? [String: Any] ?? [:]
    }

    private static let handlers = [
        Handler(name: "right", findings: []) { token, _, verifier, logins in
            try await logins.finish("session", with: token, by: verifier).profile
        },
        Handler(name: "uses no nonce up", findings: ["twice"]) { token, nonce, verifier, _ in
            try await verifier.verify(token, nonce: nonce).profile
        },
        Handler(name: "nonce of the token", findings: ["other-login", "other-refresh", "twice"]) {
            token,
            _,
            verifier,
            _ in
            try await verifier.verify(token, nonce: claims(of: token)["nonce"] as? String ?? "").profile
        },
        Handler(
            name: "refresh at a login",
            findings: ["other-login", "other-refresh", "no-nonce", "twice"]
        ) { token, _, verifier, _ in
            try await verifier.verifyRefresh(token, ofSessionOf: claims(of: token)["sub"] as? String ?? "").profile
        },
    ]

    @Test("The bad tokens find a handler's mistakes, and the right one refuses each for its own reason")
    func badTokens() async throws {
        let key = try Self.key.get()
        let verifier = try verifier(FixedKeys(key))
        for handler in Self.handlers {
            let logins = LoginNonces()
            let nonce = logins.begin("session").value
            let tokens = try key.badTokens(nonce: nonce)
            #expect(tokens.count > 28 && tokens.last?.presentations == 2)
            var accepted: Set<String> = []
            for bad in tokens {
                for _ in 1..<bad.presentations { _ = try await handler.logIn(bad.token, nonce, verifier, logins) }
                do {
                    _ = try await handler.logIn(bad.token, nonce, verifier, logins)
                    accepted.insert(bad.name)
                } catch let rejection as Rejection where handler.findings.isEmpty {
                    #expect(rejection.code == bad.code, "\(bad)")
                } catch {}
            }
            #expect(accepted == handler.findings, "\(handler.name)")
        }
    }

    @Test("A nonce is good for one login, and a refusal, an outage or a stranger's attempt uses nothing up")
    func oneCall() async throws {
        let key = try Self.key.get()
        let time = Mutex(Duration.seconds(1))
        let logins = LoginNonces(capacity: 4, lifetime: .seconds(60), clock: { time.withLock { $0 } })
        let verifier = try verifier(FixedKeys(key))
        func finish(_ id: String, _ token: String, by other: LoginVerifier? = nil) async -> String? {
            do {
                _ = try await logins.finish(id, with: token, by: other ?? verifier)
                return nil
            } catch {
                return (error as? Rejection)?.code.rawValue ?? "\(type(of: error))"
            }
        }
        func begun(_ id: String) throws -> String { try key.token(claims: ["nonce": .string(logins.begin(id).value)]) }
        let (mine, thief) = (try begun("mine"), try begun("thief"))
        #expect(await finish("thief", mine) == "nonce_mismatch")
        #expect(await finish("nobody", mine) == "nonce_used")
        #expect(await finish("mine", thief) == "nonce_mismatch")
        #expect(await finish("mine", mine, by: try self.verifier(FixedKeys.unavailable)) == "Unavailable")
        // Of requests at once exactly one begins a session.
        let outcomes = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<16 { group.addTask { (try? await logins.finish("mine", with: mine, by: verifier)) != nil } }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(outcomes == 1)
        let old = try begun("mine")
        let new = try begun("mine")
        #expect(await finish("mine", old) == "nonce_mismatch")
        time.withLock { $0 += .seconds(59) }
        #expect(await finish("mine", new) == nil)
        let late = try begun("mine")
        time.withLock { $0 += .seconds(60) }
        #expect(await finish("mine", late) == "nonce_used")
        // A full memory forgets the oldest.
        let many = try (0..<7).map { try begun("\($0)") }
        var good: [Int] = []
        for (id, token) in many.enumerated() where await finish("\(id)", token) == nil { good.append(id) }
        #expect((2...4).contains(good.count) && good == Array((7 - good.count)..<7))
    }

    @Test("An error tells the answer: 401, 429, 503 or 500")
    func answers() async throws {
        struct Limited: JWKSetProvider {
            func keySet(containing keyID: String) async throws(JWKSetCacheError) -> JWKSet {
                throw .exhausted(retryAfter: .seconds(7))
            }
        }
        let token = try Self.key.get().token(claims: ["nonce": "n-1"])
        func answer(_ keys: any JWKSetProvider, _ token: String, _ nonce: String) async -> [Int] {
            do {
                _ = try await verifier(keys).verify(token, nonce: nonce)
                return [200]
            } catch {
                let (status, seconds) = response(to: error)
                return [status] + (seconds.map { [$0] } ?? [])
            }
        }
        #expect(await answer(FixedKeys(try Self.key.get()), token, "n-2") == [401])
        #expect(await answer(Limited(), token, "n-1") == [429, 7])
        #expect(await answer(FixedKeys.unavailable, token, "n-1") == [503, 2])
        #expect(await answer(FixedKeys(try Self.key.get()), token, "") == [500])
    }

    @Test("No text, reflection or dump of a value shows a token, a nonce or a person")
    func redacted() async throws {
        let key = try Self.key.get()
        let token = try key.token(claims: Self.person.merging(["nonce": "s3cret-nonce", "sub": "218471"]) { $1 })
        let verified = try await verifier(FixedKeys(key)).verify(token, nonce: "s3cret-nonce")
        let nonce = try #require(Nonce("s3cret-nonce"))
        let issuer = try NonceIssuer(secret: "s3cret-0123456789abcdefghijklmnop")
        let issued = try #require(issuer.issue(appID: TestKey.appID, now: .now))
        let logins = LoginNonces()
        let begun = logins.begin("s3cret-session")
        let tokens = TokenIssuer(
            policy: try TokenIssuerPolicy(issuer: "https://a.example", audiences: ["b"], claims: [.name]),
            keys: try SigningKeySet([try SigningKey(generating: .es256)])
        )
        let login = try TokenIssuer.Login(verified)
        let own = try tokens.token(for: login, tokenID: "t", now: .now)
        let policy = try VerificationPolicy(appIDs: [TestKey.appID])
        let graph =
            #"{"data":{"app_id":"1","type":"USER","is_valid":true,"user_id":"218471","expires_at":0,"scopes":["email"]}}"#
        let inspection = try AccessTokenInspection(debugToken: Array(graph.utf8), appIDs: ["1"], now: .now)
        let person = #"{"id":"218471","email":"jane.doe@example.com"}"#
        let access = try VerifiedAccessToken(me: Array(person.utf8), of: inspection)
        let info = Array(#"{"auth_nonce":"s3cret-nonce"}"#.utf8)
        let values: [Any] = [
            verified, verified.profile, verified.authenticationToken, LoginRecord(verified), nonce, issuer, issued,
            logins, begun,
            TokenExpectation(binding: .nonce(nonce), accessToken: "s3cret"), TokenBinding.rawNonce(nonce),
            TokenBinding.refresh(ofSessionOf: "218471"), NonceExpectation.nonce(nonce, issuer: issuer), login, own,
            try tokens.verify(own.value, audience: "b", policy: policy, now: .now), tokens, inspection, access,
            LoginRecord(access),
            try AccessTokenNonce(accessTokenInfo: info, of: access, expecting: .nonce(nonce), now: .now),
            try LoginConfiguration(permissions: ["email"], tracking: .limited, nonce: "s3cret-nonce"),
            try SignedRequest(
                verifying: key.signedRequest(userID: "218471", secret: "s3cret"),
                secrets: [("1", "s3cret")],
                now: .now
            ),
            try key.badTokens(nonce: "s3cret-nonce"), key, [verified], ["login": Optional(verified)],
        ]
        let secrets = [
            "s3cret", "218471", "jane.doe", "Jane", "Martinez", "1122334455", String(token.suffix(40)),
            String(token.prefix(60).suffix(20)), issued.nonce.value, begun.value, String(own.value.suffix(40)),
        ]
        for value in values {
            var dumped = ""
            dump(value, to: &dumped)
            for text in [String(describing: value), String(reflecting: value), "\(value)", dumped] {
                for secret in secrets { #expect(!text.contains(secret), "\(type(of: value))") }
            }
        }
    }

    @Test("Signed requests and proofs of a test key are judged")
    func otherCredentials() throws {
        let key = try Self.key.get()
        let request = try key.signedRequest(userID: "218471", secret: "s3cret")
        #expect(try SignedRequest(verifying: request, secrets: [("1", "s3cret")], now: .now).userID == "218471")
        let url = "https://api.example.com/me"
        let token = try key.token(claims: ["cnf": ["jkt": .string(key.keyThumbprint)]])
        let proof = try key.dpopProof(method: "GET", url: url, token: token)
        func judge(_ method: String) throws -> DPoPProof {
            try DPoPProof(
                verifying: proof,
                method: method,
                url: url,
                token: token,
                keyThumbprint: key.keyThumbprint,
                now: .now
            )
        }
        #expect(try judge("GET").keyThumbprint == key.keyThumbprint)
        #expect(throws: Rejection.self) { try judge("POST") }
    }

    /// An asynchronous source, like one built on a user's own HTTP client.
    private struct Suspending: JWKSetSource {
        let name = "suspending"
        let keys: String?
        /// Receives an element when a fetch without keys has begun.
        let entered: AsyncStream<Void>.Continuation?

        init(keys: String?, entered: AsyncStream<Void>.Continuation? = nil) {
            (self.keys, self.entered) = (keys, entered)
        }

        func fetch(validator: String?) async throws(JWKSetSourceError) -> JWKSetAnswer {
            await Task.yield()
            guard let keys else {
                entered?.yield()
                // Ends only when the cache stops.
                while !Task.isCancelled { await Task.yield() }
                throw JWKSetSourceError("cancelled")
            }
            return .fetched(JWKSetDocument(bytes: Array(keys.utf8)))
        }
    }

    @Test("A user's own source may be asynchronous")
    func asynchronousSource() async throws {
        let key = try Self.key.get()
        let cache = try JWKSetCache(sources: [Suspending(keys: TestKey.keySetJSON([key]))])
        cache.start()
        let token = try key.token(claims: ["nonce": "n-1"])
        #expect(try await verifier(cache).verify(token, nonce: "n-1").profile.userID == TestKey.userID)
        let (calls, entered) = AsyncStream.makeStream(of: Void.self)
        let endless = try JWKSetCache(sources: [Suspending(keys: nil, entered: entered)])
        let running = Task { await endless.run() }
        for await _ in calls { break }
        running.cancel()
        await running.value
    }
}
