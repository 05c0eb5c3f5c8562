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

    @Test(
        "A nonce is compared exactly",
        arguments: [
            "0b6f5c35-92c1-4e5c-9d0c-5b5f7a3c2d11", "0B6F5C35-92C1-4E5C-9D0C-5B5F7A3C2D1", "x",
            "0B6F5C35-92C1-4E5C-9D0C-5B5F7A3C2D110", "\u{212A}",
        ]
    )
    func mismatch(nonce: String) throws {
        #expect(try Login.rejection(of: token(nonce: nonce)) == .nonceMismatch(.different))
    }

    @Test("An empty nonce claim matches nothing, and the refusal names the reason")
    func emptyClaim() throws {
        let rejection = try Login.rejection(of: token(nonce: ""))
        #expect(rejection == .nonceMismatch(.empty))
        #expect(try Login.rejection(of: token(nonce: ""), binding: .rawNonce(Login.nonce())) == .nonceMismatch(.empty))
        #expect(try Login.rejection(of: token(nonce: nil)) == .missingClaim(.nonce))
        #expect(try Login.rejection(of: token(nonce: nil), binding: .rawNonce(Login.nonce())) == .missingClaim(.nonce))
    }

    @Test("A nonce spelt with escapes is the same nonce")
    func escapes() throws {
        let text = "a/b@é😀"
        #expect(try Login.rejection(of: token(nonce: text), binding: .nonce(Login.nonce(text))) == nil)
        let composed = try Login.nonce("e\u{301}")
        // The text looks the same, but its bytes differ.
        #expect(try Login.rejection(of: token(nonce: "é"), binding: .nonce(composed)) == .nonceMismatch(.different))
    }

    @Test("A raw nonce is compared by its SHA-256 in lower-case hexadecimal")
    func rawNonce() throws {
        let raw = try Login.nonce("raw-nonce")
        let hash = try SHA256.digest(of: Array("raw-nonce".utf8).span).hexadecimal
        #expect(try Login.rejection(of: token(nonce: hash), binding: .rawNonce(raw)) == nil)
        #expect(
            try Login.rejection(of: token(nonce: hash.uppercased()), binding: .rawNonce(raw))
                == .nonceMismatch(.different)
        )
        #expect(
            try Login.rejection(of: token(nonce: "raw-nonce"), binding: .rawNonce(raw)) == .nonceMismatch(.notHashed)
        )
        #expect(try Login.rejection(of: token(nonce: hash), binding: .nonce(raw)) == .nonceMismatch(.hashed))
        #expect(try Login.rejection(of: token(nonce: "other"), binding: .rawNonce(raw)) == .nonceMismatch(.different))
    }

    @Test("A refreshed token is bound to its person, whatever its nonce")
    func subject() throws {
        #expect(
            try Login.rejection(of: token(nonce: "made by the SDK"), binding: .refresh(ofSessionOf: Login.userID))
                == nil
        )
        #expect(try Login.rejection(of: token(nonce: nil), binding: .refresh(ofSessionOf: Login.userID)) == nil)
        #expect(try Login.rejection(of: token(nonce: ""), binding: .refresh(ofSessionOf: Login.userID)) == nil)
        for other in ["1", Login.userID + "0", String(Login.userID.dropLast())] {
            let rejection = try Login.rejection(of: token(nonce: nil), binding: .refresh(ofSessionOf: other))
            #expect(rejection == .subjectMismatch && rejection?.claim == "sub")
        }
        #expect(try Login.rejection(of: token(nonce: nil), binding: .refresh(ofSessionOf: "")) == .invalidSubject)
    }

    @Test("An unbound token needs a policy that allows it")
    func unbound() throws {
        #expect(try Login.rejection(of: token(nonce: "x"), binding: .unbound) == .bindingRequired)
        let verifier = try Login.verifier(binding: .optional)
        #expect(try Login.rejection(of: token(nonce: "x"), with: verifier, binding: .unbound) == nil)
        #expect(try Login.rejection(of: token(nonce: "x"), with: verifier) == .nonceMismatch(.different))
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
