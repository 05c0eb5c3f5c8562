import LLJOSE
import LLStandIn
import LLTestSupport
import LimitedLogin
import Testing

@Suite("The binding of a token to a login")
struct BindingTests {
    private func token(nonce: String?) throws -> String {
        var claims = Login.claims
        claims.nonce = nonce
        return try StandInKeys.current.mint(claims)
    }

    /// The binding, the `nonce` claim, and the refusal.
    private static func cases() throws -> [(binding: TokenBinding, claim: String?, refusal: Rejection?)] {
        let (nonce, raw) = (TokenBinding.nonce(try Login.nonce()), TokenBinding.rawNonce(try Login.nonce("raw-nonce")))
        let hash = try SHA256.digest(of: Array("raw-nonce".utf8).span).hexadecimal
        func refresh(_ user: String) -> TokenBinding { .refresh(ofSessionOf: user) }
        let different = Rejection.differentNonce
        return [
            // Compared exactly: \u{212A} is the sign for kelvin, which looks like K.
            (nonce, Login.nonce.lowercased(), different), (nonce, String(Login.nonce.dropLast()), different),
            (nonce, "x", different),
            (nonce, Login.nonce + "0", different), (nonce, "\u{212A}", different), (nonce, "", .emptyNonce),
            (nonce, nil, .missingClaim(.nonce)),
            // Escapes spell the same nonce; a text that only looks the same is another one.
            (.nonce(try Login.nonce("a/b@é😀")), "a/b@é😀", nil), (.nonce(try Login.nonce("e\u{301}")), "é", different),
            (raw, hash, nil), (raw, hash.uppercased(), different), (raw, "raw-nonce", .nonceNotHashed),
            (raw, "other", different), (raw, "", .emptyNonce), (raw, nil, .missingClaim(.nonce)),
            (.nonce(try Login.nonce("raw-nonce")), hash, .hashedNonce),
            // A refresh is bound to its person, whatever its nonce.
            (refresh(Login.userID), "made by the SDK", nil), (refresh(Login.userID), "", nil),
            (refresh(Login.userID), nil, nil), (refresh("1"), nil, .subjectMismatch),
            (refresh(""), nil, .invalidSubject),
            (refresh(Login.userID + "0"), nil, .subjectMismatch),
            (refresh(String(Login.userID.dropLast())), nil, .subjectMismatch),
            (.unbound, "x", .bindingRequired),
        ]
    }

    @Test("Each binding accepts its own nonce or person, and names the reason for refusing another")
    func bindings() throws {
        for (binding, claim, refusal) in try Self.cases() {
            #expect(try Login.rejection(of: token(nonce: claim), binding: binding) == refusal, "\(claim ?? "absent")")
        }
    }

    @Test("An unbound token needs a policy that allows it")
    func unbound() throws {
        let verifier = try Login.verifier(binding: .optional)
        #expect(try Login.rejection(of: token(nonce: "x"), with: verifier, binding: .unbound) == nil)
        #expect(try Login.rejection(of: token(nonce: "x"), with: verifier) == .differentNonce)
    }

    @Test("A nonce that is no string is refused whatever the binding")
    func nonceType() throws {
        let token = try Login.token("nonce", "5")
        #expect(
            try Login.rejection(of: token, binding: .refresh(ofSessionOf: Login.userID))
                == .malformedClaim(.nonce, .wrongType)
        )
    }

    @Test("A token with at_hash is not limited, and a policy may refuse it")
    func tracking() throws {
        var claims = Login.claims
        claims.accessTokenHash = "aBcDeFgHiJkLmNoPqRsTuV"
        let token = try StandInKeys.current.mint(claims)
        let verified = try Login.verify(token)
        #expect(!verified.profile.isLimited)
        let limited = try Login.verifier(tracking: .limited)
        #expect(try Login.rejection(of: token, with: limited) == Rejection(.trackingNotAllowed))
        #expect(try Login.rejection(of: StandInKeys.current.mint(Login.claims), with: limited) == nil)
        #expect(try Login.rejection(of: Login.token("at_hash", "\"\""), with: limited)?.code == .malformedClaim)
    }

    @Test(
        "A nonce is not empty and holds no white space of any kind",
        arguments: [
            "", " ", "a b", "a\tb", "a\nb", "a\r", "\u{B}", "\u{C}", "a\u{85}", "\u{A0}a", "\u{1680}", "a\u{2000}b",
            "\u{2009}", "\u{200B}", "\u{2028}", "\u{2029}", "\u{202F}", "\u{205F}", "\u{3000}",
        ]
    )
    func invalidNonces(text: String) {
        #expect(Nonce(text) == nil)
    }

    @Test(
        "Any other text is a valid nonce",
        arguments: ["a", "é", "😀", "\u{2010}", "\u{200C}", "\u{3001}", "\u{E000}", "\u{1681}", "a\"\\"]
    )
    func validNonces(text: String) {
        #expect(Nonce(text)?.value == text)
    }

    @Test("A nonce cut in the middle of a character is still judged")
    func truncatedNonces() {
        for bytes: [UInt8] in [[0xC2], [0xE2], [0xE2, 0x80], [0xE1, 0x9A], [0xE3, 0x80]] {
            let isValid = Nonce.isValid(bytes.span)
            #expect(isValid)
        }
    }

    @Test("Generated nonces are valid and never repeat")
    func generator() {
        let nonces = (0..<2_000).map { _ in Nonce.generate() }
        #expect(Set(nonces.map(\.value)).count == nonces.count)
        #expect(nonces.allSatisfy { $0.value.utf8.count == 43 && Nonce($0.value) == $0 })
    }

    @Test("A nonce given as bytes is judged like one given as text")
    func byteDoor() throws {
        let token = Array(try StandInKeys.current.mint(Login.claims).utf8)
        func rejection(_ binding: TokenBinding) -> Rejection? {
            var workspace = VerificationWorkspace()
            do throws(Rejection) {
                _ = try Login.sharedVerifier.judge(
                    token.span,
                    TokenExpectation(binding),
                    keys: VerificationKeys(StandInKeys.set),
                    now: Login.sharedNow,
                    workspace: &workspace
                )
                return nil
            } catch {
                return error
            }
        }
        #expect(rejection(TokenBinding(nonce: .nonce(Array("a b".utf8)))) == .invalidNonce)
        #expect(rejection(TokenBinding(nonce: .rawNonce([]))) == .invalidNonce)
        #expect(rejection(TokenBinding(subject: [])) == .invalidSubject)
        #expect(rejection(TokenBinding()) == .bindingRequired)
        #expect(rejection(Login.expectation.binding) == nil)
    }
}
