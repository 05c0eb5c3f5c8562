import LLBytes
import LLJOSE
import LLTestSupport
import LimitedLogin
import Testing

@Suite("A signed request")
struct SignedRequestTests {
    private static let now = Login.sharedNow
    private static let secrets = TestSignedRequest.secrets
    private static let payload = TestSignedRequest.payload(issuedAt: 1_699_999_990)

    private static func make(_ payload: String = payload, secret: String = secrets[1].secret) throws -> String {
        try TestSignedRequest.make(payload, secret: secret)
    }

    private static func verify(_ text: String) throws -> SignedRequest {
        try SignedRequest(verifying: text, secrets: secrets, now: now)
    }

    private static func rejection(_ text: String) -> Rejection? { Login.rejection { try verify(text) } }

    @Test("A good request gives its app, user and time, for the secret of each app")
    func accepted() throws {
        for (appID, secret) in Self.secrets {
            let request = try Self.verify(Self.make(secret: secret))
            #expect(request.appID == appID && request.userID == "218471")
            #expect(request.issuedAt.secondsSince1970 == 1_699_999_990)
        }
    }

    @Test(
        "Every known shape is accepted, and other spellings that Facebook may use",
        arguments: TestSignedRequest.callbacks(issuedAt: 1_699_999_990) + [
            #"{"algorithm":"hmac-sha256","issued_at":1699999990,"user_id":"218471"}"#,
            #"{"user_id":218471,"issued_at":1699999990.5,"algorithm":"Hmac-Sha256"}"#,
            #"{"\u0061lgorithm":"HMAC\u002dSHA256","issued_at":1699999990,"user_id":"218\u0034\u00371"}"#,
            #" { "algorithm" : "HMAC-SHA256", "issued_at" : 1699999990, "user_id" : "218471", "x": [1, {"y": null}] } "#,
        ]
    )
    func spellings(payload: String) throws {
        #expect(try Self.verify(Self.make(payload)).userID == "218471")
    }

    @Test("A request's time may be ahead by the skew, but by at most 300 seconds", arguments: Login.skews)
    func skew(seconds: Int, ahead: Int64, isAccepted: Bool) throws {
        let text = try Self.make(TestSignedRequest.payload(issuedAt: Login.now + ahead))
        let rejection = Login.rejection {
            try SignedRequest(verifying: text, secrets: Self.secrets, clockSkew: .seconds(seconds), now: Self.now)
        }
        #expect(rejection == (isAccepted ? nil : .requestOutOfTime))
    }

    @Test("Padding to a multiple of four is accepted in both parts; the payload's is signed with it")
    func padding() throws {
        // The signature's 32 bytes take 43 digits and one equals sign.
        let request = try Self.make()
        let dot = try #require(request.firstIndex(of: "."))
        let padded = request[..<dot] + "=" + request[dot...]
        #expect(try Self.verify(String(padded)).userID == "218471")
        let encoded = Base64.encode(Array(Self.payload.utf8)).replacing("+", with: "-").replacing("/", with: "_")
        #expect(try Self.verify(TestSignedRequest.make(encoded: encoded)).userID == "218471")
    }

    @Test("The published vector's signature holds, and its content is refused")
    func publishedVector() {
        let text =
            "vlXgu64BQGFSQrY0ZcJBZASMvYvTHu9GQ0YM9rjPSso.eyJhbGdvcml0aG0iOiJITUFDLVNIQTI1NiIsIjAiOiJwYXlsb2FkIn0"
        #expect(throws: Rejection.requestOfInvalidUser) {
            try SignedRequest(verifying: text, secrets: [("1", "secret")], now: Self.now)
        }
        #expect(throws: Rejection.requestOfNoSecret) {
            try SignedRequest(verifying: text, secrets: [("1", "Secret")], now: Self.now)
        }
    }

    @Test("Each forgery is refused for its own reason", arguments: SignedRequestForgery.all)
    func refused(forgery: SignedRequestForgery) throws {
        let expected: Rejection =
            switch forgery.fault {
            case .malformed: .requestMalformed
            case .signature: .requestOfNoSecret
            case .algorithm: .requestOfOtherAlgorithm
            case .login: .requestOfLogin
            case .pageTab: .requestOfPageTab
            case .instantGame: .requestOfInstantGame
            case .user: .requestOfInvalidUser
            case .time: .requestOutOfTime
            case .expiry: .requestExpired
            }
        #expect(Self.rejection(try forgery.text(1_699_999_990)) == expected)
    }

    @Test("A request without a person is refused for that, unless it has another fault")
    func noPerson() throws {
        for payload in TestSignedRequest.pageRemovals(issuedAt: 1_699_999_990) {
            #expect(Self.rejection(try Self.make(payload)) == .requestOfNoPerson)
            let old = payload.replacing("1699999990", with: "1699900000")
            #expect(Self.rejection(try Self.make(old)) == .requestOutOfTime)
            #expect(Self.rejection(try Self.make(payload.dropLast() + #","code":"x"}"#)) == .requestOfLogin)
            #expect(Self.rejection(try Self.make(payload, secret: "another")) == .requestOfNoSecret)
        }
    }

    @Test(
        "The expiry counts, with the skew, if it is present and not 0",
        arguments: [
            ("0", true), ("1700000000", true), ("1699999999", true), ("1699999940", true), ("1699999939", false),
            ("1", false), ("1699999940.5", true), ("9007199254740992", true), ("9007199254740993", false),
            ("true", false), ("[]", false),
        ]
    )
    func end(expires: String, isAccepted: Bool) throws {
        let text = try Self.make(Self.payload.replacing("1700003590", with: expires))
        #expect(Self.rejection(text) == (isAccepted ? nil : .requestExpired))
    }

    @Test("One HMAC is made for each secret, whichever of them fits, and if none does")
    func constantWork() throws {
        for secret in Self.secrets.map(\.secret) + ["another"] {
            let text = try Self.make(secret: secret)
            let message = Array(text.drop { $0 != "." }.dropFirst().utf8)
            let digits = Array(text.prefix { $0 != "." }.utf8)
            var signature: [UInt8] = []
            try #require(Base64URL.decode(digits.span, digits.indices, into: &signature))
            var keys: [[UInt8]] = []
            let signer = try? SignedRequest.signer(of: message.span, signature.span, Self.secrets) {
                (message: Span<UInt8>, key: Span<UInt8>) throws(OpenSSLError) -> SHA256Digest in
                keys.append(key.indices.map { key[$0] })
                return try HMACSHA256.authenticationCode(for: message, key: key)
            }
            #expect(signer == Self.secrets.first { $0.secret == secret }?.appID)
            #expect(keys == Self.secrets.map { Array($0.secret.utf8) })
        }
    }

    @Test("No HMAC is made for a signature of another length than an HMAC's", arguments: [0, 1, 31, 33, 64])
    func wrongLength(count: Int) {
        let signature = [UInt8](repeating: 1, count: count)
        #expect(throws: Rejection.requestOfNoSecret) {
            try SignedRequest.signer(of: signature.span, signature.span, Self.secrets) {
                (_: Span<UInt8>, _: Span<UInt8>) throws(OpenSSLError) -> SHA256Digest in
                Issue.record("an HMAC was made")
                return try SHA256.digest(of: [UInt8]().span)
            }
        }
    }

    @Test("A request may be a day old, and one second more is refused")
    func bounds() throws {
        for (issuedAt, refusal) in [(1_699_913_600, nil), (1_699_913_599, .requestOutOfTime)] as [(Int64, Rejection?)] {
            // The second shape has no time of expiry.
            #expect(Self.rejection(try Self.make(TestSignedRequest.callbacks(issuedAt: issuedAt)[1])) == refusal)
        }
    }

    @Test("Without secrets nothing is accepted; of two apps with one secret the first is named")
    func sharedSecret() throws {
        #expect(throws: Rejection.requestOfNoSecret) {
            try SignedRequest(verifying: Self.make(), secrets: [], now: Self.now)
        }
        #expect(throws: Rejection.requestOfNoSecret) {
            try SignedRequest(verifying: Self.make(secret: ""), secrets: [("1", "")], now: Self.now)
        }
        let shared = [(appID: "1", secret: "same"), (appID: "2", secret: "same")]
        #expect(try SignedRequest(verifying: Self.make(secret: "same"), secrets: shared, now: Self.now).appID == "1")
    }

    @Test("A good request with any bit, byte, prefix or suffix changed is refused", arguments: secrets.map(\.secret))
    func mutations(secret: String) throws {
        let good = Array(try Self.make(secret: secret).utf8)
        func isAccepted(_ bytes: [UInt8]) -> Bool {
            (try? SignedRequest(verifying: bytes.span, secrets: Self.secrets, clockSkew: .seconds(60), now: Self.now))
                != nil
        }
        #expect(isAccepted(good))
        var mutants: [[UInt8]] = []
        for offset in good.indices {
            let (head, byte, tail) = (Array(good[..<offset]), good[offset], Array(good[(offset + 1)...]))
            mutants += (0..<8).map { head + [byte ^ 1 << UInt8($0)] + tail }
            mutants += [head, head + tail, tail]
            for other in Array("AZaz09-_.=+/ \0%".utf8) {
                mutants += [head + [other] + tail, head + [other, byte] + tail]
            }
        }
        mutants.removeAll { $0 == good }
        // The one accepted mutant pads the signature. Three requests have over 18,000 mutants.
        #expect(mutants.count > 6_000 && mutants.count(where: isAccepted) == 1)
    }
}
