import LLJOSE
import LLStandIn
import LLTestSupport
import LimitedLogin
import Testing

@Suite("The binding of a token to a login")
struct BindingTests {
    private static func issuer() throws -> NonceIssuer { try NonceIssuer(secret: "0123456789abcdefghijklmnopqrstuv") }

    /// A nonce issued for the app, which is good for ten minutes.
    private static func issued(secondsAgo: Int64) throws -> String {
        let date = try Login.date(Login.now - secondsAgo)
        return try #require(try issuer().issue(appID: Login.appID, now: date)).nonce.value
    }

    private static func token(nonce: String?) throws -> String {
        var claims = Login.claims
        claims.nonce = nonce
        return try StandInKeys.current.mint(claims)
    }

    /// The binding, the `nonce` claim, and the refusal.
    private static func cases() throws -> [(binding: TokenBinding, claim: String?, refusal: Rejection?)] {
        let (nonce, raw) = (TokenBinding.nonce(try Login.nonce()), TokenBinding.rawNonce(try Login.nonce("raw-nonce")))
        let hash = try SHA256.digest(of: Array("raw-nonce".utf8).span).hexadecimal
        func refresh(_ user: String) -> TokenBinding { .refresh(ofSessionOf: user) }
        let (different, user) = (Rejection.differentNonce, Login.userID)
        let (fresh, old) = (try issued(secondsAgo: 60), try issued(secondsAgo: 1_800))
        let expired = Rejection.nonceExpired(at: try Login.date(Login.now - 1_200), now: Login.sharedNow)
        return [
            // Compared exactly: \u{212A} is the sign for kelvin, which looks like K.
            (nonce, Login.nonce.lowercased(), different), (nonce, String(Login.nonce.dropLast()), different),
            (nonce, "x", different), (nonce, Login.nonce + "0", different), (nonce, "\u{212A}", different),
            (nonce, "", .emptyNonce), (nonce, nil, .missingClaim(.nonce)),
            // Escapes spell the same nonce; a text that only looks the same is another one.
            (.nonce(try Login.nonce("a/b@é😀")), "a/b@é😀", nil), (.nonce(try Login.nonce("e\u{301}")), "é", different),
            (raw, hash, nil), (raw, hash.uppercased(), different), (raw, "raw-nonce", .nonceNotHashed),
            (raw, "other", different), (raw, "", .emptyNonce), (raw, nil, .missingClaim(.nonce)),
            (.nonce(try Login.nonce("raw-nonce")), hash, .hashedNonce),
            (.issuedNonce, fresh, nil), (.issuedNonce, old, expired), (.issuedNonce, "x", .nonceNotIssued),
            (.issuedNonce, nil, .missingClaim(.nonce)),
            // A refresh is bound to its person, whatever its nonce.
            (refresh(user), "made by the SDK", nil), (refresh(user), "", nil), (refresh(user), nil, nil),
            (refresh("1"), nil, .subjectMismatch), (refresh(""), nil, .invalidSubject),
            (refresh(user + "0"), nil, .subjectMismatch), (refresh(String(user.dropLast())), nil, .subjectMismatch),
            // With the nonce of its login both must hold; only the age of an issued one does not count.
            (nonce.refreshing(user), Login.nonce, nil), (nonce.refreshing("9"), Login.nonce, .subjectMismatch),
            (nonce.refreshing(user), "x", different), (nonce.refreshing(user), nil, .missingClaim(.nonce)),
            (raw.refreshing(user), hash, nil), (raw.refreshing("9"), hash, .subjectMismatch),
            (raw.refreshing(user), "x", different), (raw.refreshing(user), nil, .missingClaim(.nonce)),
            (.issuedNonce.refreshing(user), old, nil), (.issuedNonce.refreshing("9"), old, .subjectMismatch),
            (.issuedNonce.refreshing(user), "x", .nonceNotIssued),
            (.issuedNonce.refreshing(user), nil, .missingClaim(.nonce)),
            // No login, and nonces that only bytes can hold.
            (.unbound, "x", .bindingRequired), (TokenBinding(nonce: Array("a b".utf8)), "a b", .invalidNonce),
            (TokenBinding(nonce: [], isRaw: true), "", .invalidNonce),
        ]
    }

    @Test("Each binding accepts its own nonce or person, and names the reason for refusing another")
    func bindings() throws {
        let verifier = try Login.verifier(nonces: Self.issuer())
        for (binding, claim, refusal) in try Self.cases() {
            let rejection = try Login.rejection(of: Self.token(nonce: claim), with: verifier, binding: binding)
            #expect(rejection == refusal, "\(claim ?? "absent")")
        }
    }

    @Test("A login reports its issued nonce to be used up; a refresh does not", arguments: [60, 1_800] as [Int64])
    func usesNothingUp(age: Int64) throws {
        let verifier = try Login.verifier(nonces: Self.issuer())
        let token = Array(try Self.token(nonce: Self.issued(secondsAgo: age)).utf8)
        let refresh = TokenBinding.issuedNonce.refreshing(Login.userID)
        for (binding, isUsed) in [(.issuedNonce, age == 60), (refresh, false)] as [(TokenBinding, Bool)] {
            var workspace = VerificationWorkspace()
            _ = try? verifier.judge(
                token.span,
                TokenExpectation(binding),
                keys: VerificationKeys(StandInKeys.set),
                now: Login.sharedNow,
                workspace: &workspace
            )
            #expect((workspace.recognizedNonce != nil) == isUsed)
        }
    }

    @Test("An unbound token needs a policy that allows it")
    func unbound() throws {
        let verifier = try Login.verifier(binding: .optional)
        #expect(try Login.rejection(of: Self.token(nonce: "x"), with: verifier, binding: .unbound) == nil)
        #expect(try Login.rejection(of: Self.token(nonce: "x"), with: verifier) == .differentNonce)
    }

    @Test("A nonce that is no string is refused whatever the binding")
    func nonceType() throws {
        let refusal = Rejection.malformedClaim(.nonce, .wrongType)
        let token = try Login.token("nonce", "5")
        #expect(try Login.rejection(of: token, binding: .refresh(ofSessionOf: Login.userID)) == refusal)
        let verifier = try Login.verifier(nonces: Self.issuer())
        #expect(try Login.rejection(of: token, with: verifier, binding: .issuedNonce) == refusal)
    }

    @Test("A token with at_hash is not limited, and a policy may refuse it")
    func tracking() throws {
        let token = try Login.token("at_hash", "\"aBcDeFgHiJkLmNoPqRsTuV\"")
        #expect(try !Login.verify(token).profile.isLimited)
        let limited = try Login.verifier(tracking: .limited)
        #expect(try Login.rejection(of: token, with: limited) == Rejection(.trackingNotAllowed))
        #expect(try Login.rejection(of: StandInKeys.current.mint(Login.claims), with: limited) == nil)
        #expect(try Login.rejection(of: Login.token("at_hash", "\"\""), with: limited)?.code == .malformedClaim)
    }

    @Test("A nonce is not empty and holds no white space of any kind; any other text is one")
    func nonces() {
        for text in [
            "", " ", "a b", "a\tb", "a\nb", "a\r", "\u{B}", "\u{C}", "a\u{85}", "\u{A0}a", "\u{1680}", "a\u{2000}b",
            "\u{2009}", "\u{200B}", "\u{2028}", "\u{2029}", "\u{202F}", "\u{205F}", "\u{3000}",
        ] {
            #expect(Nonce(text) == nil, "\(text.debugDescription)")
        }
        for text in ["a", "é", "😀", "\u{2010}", "\u{200C}", "\u{3001}", "\u{E000}", "\u{1681}", "a\"\\"] {
            #expect(Nonce(text)?.value == text, "\(text.debugDescription)")
        }
        // Cut in the middle of a character.
        for bytes: [UInt8] in [[0xC2], [0xE2], [0xE2, 0x80], [0xE1, 0x9A], [0xE3, 0x80]] {
            let isValid = Nonce.isValid(bytes.span)
            #expect(isValid)
        }
        let generated = (0..<2_000).map { _ in Nonce.generate() }
        #expect(Set(generated.map(\.value)).count == generated.count)
        #expect(generated.allSatisfy { $0.value.utf8.count == 43 && Nonce($0.value) == $0 })
    }
}
