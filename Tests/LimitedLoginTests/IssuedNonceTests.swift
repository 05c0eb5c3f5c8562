import LLBytes
import LLStandIn
import LLTestSupport
import LimitedLogin
import Testing

@Suite("Nonces that are issued and recognised")
struct IssuedNonceTests {
    private static let milliseconds = UInt64(Login.now) * 1_000

    private static func issuer(_ seed: UInt8 = 1, former: UInt8? = nil) throws -> NonceIssuer {
        func secret(_ seed: UInt8) throws -> NonceSecret { try NonceSecret(bytes: (0..<32).map { $0 &* 7 &+ seed }) }
        return NonceIssuer(secret: try secret(seed), former: try former.map { try secret($0) })
    }

    private static func nonce(
        _ issuer: NonceIssuer,
        appID: String = Login.appID,
        lifetime: Int = 600,
        at now: UInt64 = milliseconds - 5_000
    ) throws -> String {
        let random = [UInt8](0..<16)
        let issued = issuer.issue(appID: appID, lifetime: .seconds(lifetime), now: now, randomBytes: random)
        return try #require(issued).nonce.value
    }

    private static func isRecognized(_ nonce: String, _ issuer: NonceIssuer) -> Bool {
        issuer.recognize(nonce.utf8.span, appID: Login.appID.utf8.span) != nil
    }

    private static func rejection(_ nonce: String, _ issuer: NonceIssuer?, at now: Int64 = Login.now) throws
        -> Rejection?
    {
        let token = try Login.token("nonce", "\"\(nonce)\"")
        return try Login.rejection(of: token, with: Login.verifier(nonces: issuer), binding: .issuedNonce, at: now)
    }

    @Test("A nonce is 90 letters and digits, does not repeat, and has a time of issue and an expiry")
    func shape() throws {
        let issuer = try Self.issuer()
        let now = try #require(NumericDate(secondsSince1970: 1_700_000_000.25))
        let first = try #require(issuer.issue(appID: "1234567890123456", now: now))
        let second = try #require(issuer.issue(appID: "1234567890123456", now: now))
        #expect(first.nonce != second.nonce)
        #expect(first.nonce.value.utf8.count == 90)
        // Facebook calls `auth_nonce` alphanumeric.
        #expect(first.nonce.value.utf8.allSatisfy(ASCII.isAlphanumeric))
        #expect(first.issuedAt == now)
        #expect(first.expiresAt.secondsSince1970 == 1_700_000_600.25)
    }

    @Test("The format of a nonce is fixed, so that replicas recognise each other's")
    func knownAnswer() throws {
        let issuer = try Self.issuer()
        let nonce = try Self.nonce(issuer, at: 1_700_000_000_123)
        let digits = "02018bcfe5687b018bcfee903b000102030405060708090a0b0c0d0e0f"
        #expect(nonce == digits + "7fd1039e4de189a8acbf54b9c165da5f")
        let facts = issuer.recognize(nonce.utf8.span, appID: Login.appID.utf8.span)
        #expect(facts?.issuedAtMilliseconds == 1_700_000_000_123 && facts?.expiresAtMilliseconds == 1_700_000_600_123)
    }

    @Test("Each nonce has one spelling: capitals, base64url and the version that was never released are refused")
    func oneSpelling() throws {
        let issuer = try Self.issuer()
        let nonce = try Self.nonce(issuer)
        let bytes = try #require(Hexadecimal.decode(nonce.utf8))
        let former = "AQGLz-VoewGLz-6QOwABAgMEBQYHCAkKCwwNDg-FkKNf2eaRfRIVxhUvZIeQ"
        let letter = try #require(nonce.lastIndex { "abcdef".contains($0) })
        let other = nonce[..<letter] + nonce[letter].uppercased() + nonce[nonce.index(after: letter)...]
        for text in [nonce.uppercased(), Base64URL.encode(bytes), former, String(other)] {
            #expect(!Self.isRecognized(text, issuer), "\(text)")
        }
    }

    @Test("A token with a nonce issued for its app is accepted until the nonce expires")
    func accepted() throws {
        let issuer = try Self.issuer()
        let nonce = try Self.nonce(issuer, lifetime: 60)
        #expect(try Self.rejection(nonce, issuer) == nil)
        #expect(try Self.rejection(nonce, issuer, at: Login.now + 54) == nil)
        let rejection = try Self.rejection(nonce, issuer, at: Login.now + 55)
        #expect(rejection?.code == .nonceExpired && rejection?.claim == "nonce" && rejection?.check == .binding)
    }

    @Test("A nonce of another app or another secret, and any other text, was not issued here")
    func foreign() throws {
        let issuer = try Self.issuer()
        for nonce in [
            try Self.nonce(issuer, appID: "77777"), try Self.nonce(Self.issuer(2)), "x", Login.nonce,
            String(repeating: "A", count: 60), try Self.nonce(issuer) + "A", String(try Self.nonce(issuer).dropLast()),
            try Self.nonce(issuer).uppercased(), String(repeating: "0", count: 90), try Self.nonce(issuer) + "=",
        ] {
            #expect(try Self.rejection(nonce, issuer) == .nonceNotIssued, "\(nonce)")
        }
        #expect(try Self.rejection("", issuer) == .emptyNonce)
        #expect(try Self.rejection(Self.nonce(issuer), nil) == .noNonceIssuer)
    }

    @Test("A nonce with any bit changed is not recognised, so its times cannot be extended")
    func everyBit() throws {
        let issuer = try Self.issuer()
        let nonce = Array(try Self.nonce(issuer).utf8)
        let alphabet = Array("0123456789abcdef".utf8)
        for index in nonce.indices {
            let value = try #require(alphabet.firstIndex(of: nonce[index]))
            for bit in 0..<4 {
                var other = nonce
                other[index] = alphabet[value ^ (1 << bit)]
                #expect(!Self.isRecognized(String(decoding: other, as: UTF8.self), issuer))
            }
        }
        #expect(Self.isRecognized(String(decoding: nonce, as: UTF8.self), issuer))
    }

    @Test("The former secret still recognises nonces, and the new one issues them")
    func rotation() throws {
        let old = try Self.issuer(1)
        let both = try Self.issuer(2, former: 1)
        let new = try Self.issuer(2)
        #expect(try Self.rejection(Self.nonce(old), both) == nil)
        #expect(try Self.rejection(Self.nonce(both), both) == nil)
        #expect(try Self.rejection(Self.nonce(both), new) == nil)
        #expect(try Self.rejection(Self.nonce(both), old) == .nonceNotIssued)
        #expect(try Self.rejection(Self.nonce(old), new) == .nonceNotIssued)
    }

    @Test("A nonce spelt with JSON escapes is the same nonce")
    func spelling() throws {
        let issuer = try Self.issuer()
        let nonce = try Self.nonce(issuer)
        #expect(nonce.hasPrefix("0"))
        #expect(try Self.rejection("\\u0030" + nonce.dropFirst(), issuer) == nil)
    }

    @Test("No nonce is issued for a lifetime or a time out of range")
    func bounds() throws {
        let issuer = try Self.issuer()
        let random = [UInt8](0..<16)
        for lifetime in [0, -1, 86_401, .max, .min] {
            #expect(issuer.issue(appID: "1", lifetime: .seconds(lifetime), now: 5, randomBytes: random) == nil)
        }
        for now: UInt64 in [.max, 1 << 48, (1 << 48) - 86_400_000] {
            #expect(issuer.issue(appID: "1", lifetime: .seconds(1), now: now, randomBytes: random) == nil)
        }
        #expect(issuer.issue(appID: "1", lifetime: .seconds(1), now: 5, randomBytes: [1]) == nil)
        let greatest = try #require(NumericDate(secondsSince1970: NumericDate.greatestSeconds))
        #expect(issuer.issue(appID: "1", now: greatest) == nil)
    }

    @Test(
        "An invalid secret is refused, and no message quotes it",
        arguments: [
            ("", "fewer than 32"), ("00", "fewer than 32"), ("0123456789abcdef0123456789abcde", "fewer than 32"),
            (String(repeating: "01020304", count: 8), "few bytes again"),
            (String(repeating: "0", count: 64), "few bytes again"),
            (String(repeating: "0123456789abcdef", count: 8) + "0", "more than 128"), (" 0123456789abcde", "visible"),
            (" 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "visible"),
            ("0123456789abcdef0123456789abcdef0123456789abcdef\t", "visible"),
            ("é123456789abcdef0123456789abcdef0123456789abcdef", "visible"),
        ]
    )
    func secrets(text: String, words: String) {
        let good = "0123456789abcdef0123456789abcdef"
        for (secret, former) in [(text, nil), (good, text)] as [(String, String?)] {
            let error = #expect(throws: InvalidConfiguration.self) { try NonceIssuer(secret: secret, former: former) }
            #expect(error?.description.contains(words) == true)
            #expect(text.count < 3 || error?.description.contains(text) != true)
        }
    }
}
