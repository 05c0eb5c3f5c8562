import LLStandIn
import LLTestSupport
import LimitedLogin
import Testing

@Suite("A refusal")
struct RejectionTests {
    private static let date = Login.sharedNow

    /// One refusal of every kind.
    private static let all: [Rejection] = [
        .bindingRequired, .invalidNonce, .invalidSubject, Rejection(.unknownApp), .emptyToken,
        Rejection(.tokenTooLong), .wrongPartCount(2), .jsonSerialization, .emptyPart(.header), .emptyPart(.payload),
        .emptyPart(.signature), .invalidBase64URL(.payload), .unreadable(.header, reason: "x"),
        .unreadable(.payload, reason: "x"), .unreadable(.header, reason: nil), .unreadable(.payload, reason: nil),
        .accessTokenAsIDToken, .encryptedToken, .encryptionHeader, .nestedToken, .wrongType("at+jwt"), .wrongType(nil),
        .unsupportedAlgorithm("HS256"), .unsupportedAlgorithm("ES256"), .unsupportedAlgorithm(nil),
        Rejection(.unsupportedCriticalHeader), Rejection(.missingKeyID), .unknownKey("k".utf8), .keysUnavailable,
        .signatureOfWrongLength, Rejection(.invalidSignature), .missingClaim(.issuer),
        .malformedClaim(.subject, .wrongType), .malformedClaim(.subject, .empty),
        .malformedClaim(.expiration, .outOfRange), .malformedClaim(.subject, .outOfShape),
        .malformedClaim(.accessTokenHash, .empty), .malformedClaim(.nonce, .wrongType), .invalidIssuer("x"),
        .otherAudience("9"), .severalAudiences, .otherAuthorizedParty("9"), .expired(at: date, now: date),
        .notYetValid(.issuedAt, at: date, now: date), .tooOld(issuedAt: date, maximumAge: .seconds(5), now: date),
        .emptyNonce, .differentNonce, .hashedNonce, .nonceNotHashed, .noNonceIssuer, .nonceNotIssued,
        .nonceExpired(at: date, now: date), .nonceOlderThanStore, Rejection(.nonceUsed), Rejection(.tokenReplayed),
        .tokenOlderThanStore, Rejection(.loginRevoked), .subjectMismatch, Rejection(.trackingNotAllowed),
        .invalidKeyThumbprint, Rejection(.keyThumbprintMismatch), Rejection(.accessTokenHashMismatch),
        .cryptographyFailed,
    ]

    @Test("Every refusal has a code, a check and a sentence of its own")
    func details() {
        var details: Set<String> = []
        for rejection in Self.all {
            #expect(rejection.detail.count > 15 && rejection.detail.hasSuffix("."), "\(rejection.code)")
            #expect(rejection.hint.count > 15 && ".?".contains(rejection.hint.suffix(1)), "\(rejection.detail)")
            // One sentence.
            #expect(!rejection.hint.dropLast().contains(". "), "\(rejection.hint)")
            details.insert(rejection.detail)
        }
        #expect(details.count == Self.all.count)
        #expect(Set(Self.all.map(\.code).filter { $0.kind == .token }) == Set(Rejection.Code.ofTokens))
        #expect(Set(Self.all.compactMap(\.check)) == Set(VerificationCheck.allCases))
    }

    @Test("A caller's mistake and an outage are no rejection of a token, which would be 401")
    func faults() {
        let ofCaller: [Rejection] = [
            .bindingRequired, .invalidNonce, .invalidSubject, .invalidKeyThumbprint, .noNonceIssuer,
            Rejection(.unknownApp),
        ]
        let outages: [String: Unavailable] = [
            Rejection.keysUnavailable.detail: .keys, Rejection.cryptographyFailed.detail: .cryptography,
        ]
        for refusal in Self.all {
            let isOfCaller = ofCaller.contains(refusal)
            #expect((refusal.error is InvalidExpectation) == isOfCaller, "\(refusal.detail)")
            #expect((refusal.error as? Unavailable) == outages[refusal.detail], "\(refusal.detail)")
            let isOfToken = !isOfCaller && outages[refusal.detail] == nil
            #expect((refusal.error as? Rejection) == (isOfToken ? refusal : nil), "\(refusal.detail)")
            #expect(Rejection.of(refusal.error) == refusal)
        }
    }

    @Test("No hint quotes the token")
    func hintsAreConstant() {
        let pairs: [(String) -> Rejection] = [
            { .wrongType($0) }, { .unsupportedAlgorithm($0) }, { .unsupportedAlgorithm("HS" + $0) },
            { .unknownKey($0.utf8) }, { .invalidIssuer($0) }, { .otherAudience($0) },
            { .otherAuthorizedParty($0) }, { .unreadable(.payload, reason: $0) },
        ]
        for refusal in pairs {
            #expect(refusal("first").hint == refusal("second").hint)
            #expect(refusal("first").detail != refusal("second").detail)
        }
    }

    private static let whole = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJ4In0.c2lnbmF0dXJl"

    @Test(
        "A mistake in copying is named, and the text is not quoted",
        arguments: [
            ("Bearer \(whole)", "before the token"), ("authorization: bearer \(whole)", "before the token"),
            ("  Bearer \(whole)\n", "before the token"), ("Bearer: \(whole)", "before the token"),
            ("DPoP \(whole)", "before the token"), ("id_token=\(whole)", "before the token"),
            ("\u{201C}\(whole)\u{201D}", "before the token"), ("\u{FEFF}\(whole)", "before the token"),
            ("\"\(whole)\"", "quotation marks"), ("'\(whole)'", "quotation marks"),
            ("Optional(\"\(whole)\")", "Swift Optional"), ("Optional(\(whole))", "Swift Optional"),
            ("\(whole)\n", "line break"), ("\(whole)\r\n", "line break"), (" \(whole)", "white space around"),
            ("\(whole)\t", "white space around"), ("\(whole.prefix(20))\n\(whole.dropFirst(20))", "Join the lines"),
            (whole.replacing(".", with: "%2E"), "percent-encoding"),
            (whole.replacing(".", with: "%2e"), "percent-encoding"), ("\(whole)%0A", "percent-encoding"),
            (" \n", "white space alone"), ("\(whole) \(whole)", "white space within"),
            (String(whole.prefix(20)), "ends too early"), ("\(whole)==", "plain base64"),
            ("\(whole.prefix(10))...\(whole.suffix(10))", "cut out its middle"),
            ("{\"id_token\":\"\(whole)\"}", "JSON around"), ("/tmp/token", "--token-file"),
        ]
    )
    func pasted(text: String, words: String) throws {
        let refusal = try #require(try Login.rejection(of: text))
        let hint = refusal.of(Array(text.utf8).span).hint
        #expect(refusal.code == .malformedToken && hint.contains(words), "\(hint)")
        #expect(!hint.contains(Self.whole.prefix(8)))
        #expect(PastedToken.remedy(for: Array(Self.whole.utf8).span) == nil)
    }

    @Test(
        "A mistake in copying an access token is named, and the text is not quoted",
        arguments: [
            ("\"EAABwz\"", "quotation marks"), ("Optional(\"EAABwz\")", "Swift Optional"),
            ("Optional(EAABwz)", "Swift Optional"), ("{\"access_token\":\"EAABwz\"}", "JSON around"),
            ("Bearer EAABwz", "before the token"), ("access_token=EAABwz", "before the token"),
            ("\u{201C}EAABwz\u{201D}", "before the token"), ("EAABwz\n", "line break"), ("EAABwz", nil),
        ]
    )
    func pastedAccessToken(text: String, words: String?) {
        let remedy = PastedToken.remedy(for: Array(text.utf8).span)
        #expect(words.map { remedy?.contains($0) == true } ?? (remedy == nil), "\(remedy ?? "none")")
        #expect(remedy?.contains("EAABwz") != true)
    }

    @Test("An earlier check refuses before a later one runs")
    func order() throws {
        // Each step fixes the fault that was found and leaves all later faults in place.
        var claims = Login.claims
        claims.issuer = "x"
        claims.audience = "9"
        claims.expiresAt = 1
        claims.tokenID = nil
        claims.nonce = "other"
        claims.accessTokenHash = "h"
        let verifier = try Login.verifier(tracking: .limited)
        let steps: [(check: VerificationCheck, mend: (inout MintedClaims) -> Void)] = [
            (.issuer, { $0.issuer = "https://facebook.com" }), (.audience, { $0.audience = "42" }),
            (.times, { $0.expiresAt = Login.now + 100 }), (.identity, { $0.tokenID = "t" }),
            (.binding, { $0.nonce = Login.nonce }), (.tracking, { $0.accessTokenHash = nil }),
        ]
        for (check, mend) in steps {
            #expect(try Login.rejection(of: StandInKeys.current.mint(claims), with: verifier)?.check == check)
            mend(&claims)
        }
        #expect(try Login.rejection(of: StandInKeys.current.mint(claims), with: verifier) == nil)
    }

    @Test("A refusal before a good signature quotes no claim, and no refusal quotes the token")
    func secrecy() throws {
        var claims = Login.fullClaims
        claims.issuer = "https://secret-issuer.example"
        claims.audience = "secret-audience"
        let token = try StandInKeys.current.mint(claims)
        let forged = token.dropLast(4) + "AAAA"
        let stripped = token.split(separator: ".").dropLast().joined(separator: ".")
        for text in [String(forged), stripped, stripped + ".", token + "AAAA"] {
            let rejection = try Login.rejection(of: text)
            #expect(rejection != nil)
            let detail = rejection?.detail ?? ""
            #expect(!detail.contains("secret") && !detail.contains("Zo") && !detail.contains(token.prefix(20)))
        }
        let detail = try Login.rejection(of: token)?.detail ?? ""
        #expect(detail.contains("https://secret-issuer.example"), "after a good signature the value helps")
    }

    @Test("A long value is cut and stays on one line")
    func longValues() throws {
        let detail = try Login.rejection(of: Login.token("aud", "\"" + String(repeating: "x\\n", count: 500) + "\""))?
            .detail
        #expect((detail ?? "").utf8.count < 400 && detail?.contains("\n") == false)
    }
}
