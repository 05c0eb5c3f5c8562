import Foundation
import LimitedLogin
import LimitedLoginKeys
import LimitedLoginTesting
import Testing

/// The API that a separate package relies on, used as a user of the products would.
@Suite("The library, from outside")
struct LibraryTests {
    private static let key = Result { try TestKey() }
    private static let other = Result { try TestKey() }

    private func verifier(_ keys: any JSONWebKeySetProvider) throws -> LoginVerifier {
        LoginVerifier(policy: try VerificationPolicy(appIDs: [TestKey.appID]), keys: keys)
    }

    private static let person: [String: ClaimValue] = [
        "nonce": "n-1", "name": "Jane Q Doe", "email": "jane.doe@example.com", "user_birthday": "01/02/1990",
        "user_age_range": ["min": 21], "user_hometown": ["id": "1", "name": "Martinez, California"],
        "user_friends": ["1122334455"], "picture": "https://example.com/1.jpg", "x": [nil, true, 5, 1.5, "é\n\"\\"],
    ]

    @Test("One verifier serves many tasks at once, with two keys")
    func manyTasks() async throws {
        let (key, other) = (try Self.key.get(), try Self.other.get())
        let verifier = try verifier(FixedKeys(key, other))
        let tokens = try [key, other].map { try $0.token(claims: ["nonce": "n-1"]) }
        try await withThrowingTaskGroup { group in
            for place in 0..<64 {
                group.addTask { try await verifier.verify(tokens[place % 2], nonce: "n-1").authenticationToken.keyID }
            }
            var names: [String: Int] = [:]
            for try await name in group { names[name, default: 0] += 1 }
            #expect(names == [key.keyID: 32, other.keyID: 32])
        }
    }

    @Test("A verified token is encoded as JSON without the token itself")
    func codable() async throws {
        let key = try Self.key.get()
        let token = try key.token(claims: Self.person)
        let verified = try await verifier(FixedKeys(key)).verify(token, nonce: "n-1")
        let json = try JSONEncoder().encode(verified)
        #expect(!String(decoding: json, as: UTF8.self).contains(token.suffix(40)))
        let object = try #require(try JSONSerialization.jsonObject(with: json) as? [String: Any])
        #expect(Set(object.keys) == ["authentication_token", "profile", "claims"])
        let profile = try #require(object["profile"] as? [String: Any])
        #expect(profile["birthday"] as? String == "1990-01-02" && profile["email_verified"] as? Bool == false)
        #expect((object["authentication_token"] as? [String: Any])?["tracking"] as? String == "limited")
        #expect((object["claims"] as? [String: Any])?["sub"] as? String == TestKey.userID)
        let read = try JSONDecoder().decode(VerifiedToken.self, from: json)
        #expect(read.profile == verified.profile && read.authenticationToken.tokenString.isEmpty)
        #expect(read.shownPermissions(among: [.gamingProfile]) == verified.shownPermissions(among: [.gamingProfile]))
        // The claims keep their values; only their order may change.
        let claims = try JSONSerialization.jsonObject(with: Data(read.claimsJSON.utf8)) as? NSDictionary
        #expect(claims == (try JSONSerialization.jsonObject(with: Data(verified.claimsJSON.utf8)) as? NSDictionary))
    }

    @Test("The other result types can be made directly and encoded as JSON too")
    func otherAnswers() throws {
        func roundTrip<Value: Codable & Equatable>(_ value: Value, _ json: String) throws {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys]
            #expect(String(decoding: try encoder.encode(value), as: UTF8.self) == json)
            #expect(try JSONDecoder().decode(Value.self, from: Data(json.utf8)) == value)
        }
        let moment = try #require(NumericDate(secondsSince1970: 1_700_000_000))
        let inspection = AccessTokenInspection(appID: "1", userID: "2", expiresAt: moment, permissions: ["email"])
        let inspected = #"{"app_id":"1","expires_at":1700000000,"permissions":["email"],"user_id":"2"}"#
        try roundTrip(inspection, inspected)
        let profile = Profile(userID: "2", birthday: .dayOfYear(month: 2, day: 29), permissions: [.email])
        let person = #"{"birthday":"0000-02-29","is_limited":true,"permissions":["email"],"user_id":"2"}"#
        try roundTrip(profile, person)
        try roundTrip(
            VerifiedAccessToken(inspection: inspection, profile: profile),
            #"{"access_token":\#(inspected),"profile":\#(person)}"#
        )
        try roundTrip(
            SignedRequest(appID: "1", userID: "2", issuedAt: moment),
            #"{"app_id":"1","issued_at":1700000000,"user_id":"2"}"#
        )
        try roundTrip(
            DPoPProof(keyThumbprint: "t", tokenID: "j", issuedAt: moment),
            #"{"issued_at":1700000000,"key_thumbprint":"t","token_id":"j"}"#
        )
        for text in ["\"1990-02-30\"", "\"90\"", "\"1990-1-2\"", "\"01/02/1990\"", "\"\"", "5"] {
            #expect(throws: DecodingError.self) { try JSONDecoder().decode(Birthday.self, from: Data(text.utf8)) }
        }
        for text in ["{}", #"{"min":5,"max":5}"#, #"{"min":-1}"#] {
            #expect(throws: DecodingError.self) { try JSONDecoder().decode(AgeRange.self, from: Data(text.utf8)) }
        }
    }

    @Test("Each bad token is refused for its own reason")
    func badTokens() async throws {
        let key = try Self.key.get()
        let verifier = try verifier(FixedKeys(key))
        let tokens = try key.badTokens(nonce: "n-1")
        #expect(tokens.count > 25)
        for bad in tokens {
            let rejection = await #expect(throws: Rejection.self, "\(bad)") {
                try await verifier.verify(bad.token, nonce: "n-1")
            }
            #expect(rejection?.code == bad.code, "\(bad)")
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

    @Test("An outage carries the provider's error, or CancellationError in a cancelled task")
    func outage() async throws {
        let token = try Self.key.get().token(claims: ["nonce": "n-1"])
        let verifier = try verifier(FixedKeys.unavailable)
        let outage = await #expect(throws: Unavailable.self) {
            try await verifier.verify(token, nonce: "n-1")
        }
        #expect(outage?.underlyingError is FixedKeys.Unavailable)
        let cancelled = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await verifier.verify(token, nonce: "n-1")
        }
        let fault = await #expect(throws: Unavailable.self) { try await cancelled.value }
        #expect(fault?.underlyingError is CancellationError)
    }

    @Test("A NumericDate converts from and to a Foundation Date")
    func moments() throws {
        let date = Date(timeIntervalSince1970: 1_700_000_000.5)
        #expect(NumericDate(date)?.date == date)
        #expect(NumericDate(Date(timeIntervalSince1970: -1)) == nil)
        #expect(abs(NumericDate.now.date.timeIntervalSinceNow) < 60)
    }
}
