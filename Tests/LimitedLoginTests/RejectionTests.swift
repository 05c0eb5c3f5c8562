import LLStandIn
import LLTestSupport
import LimitedLogin
import Testing

@Suite("A refusal")
struct RejectionTests {
    private static let date = Login.sharedNow

    /// One of every kind.
    private static let all: [Refusal] = [
        .bindingRequired, .invalidNonce, .invalidSubject, .unknownApp, .malformedToken(.empty),
        .tokenTooLong,
        .malformedToken(.wrongPartCount(2)), .malformedToken(.jsonSerialization), .malformedToken(.emptyPart(.header)),
        .malformedToken(.emptyPart(.payload)), .malformedToken(.emptyPart(.signature)),
        .malformedToken(.invalidBase64URL(.payload)), .malformedToken(.invalidJSON(.header, reason: "x")),
        .malformedToken(.invalidJSON(.payload, reason: "x")), .malformedToken(.notAnObject(.header)),
        .malformedToken(.notAnObject(.payload)), .notAnIDToken(.accessToken), .notAnIDToken(.encrypted),
        .notAnIDToken(.encryptionHeader),
        .notAnIDToken(.nested), .notAnIDToken(.type("at+jwt")), .notAnIDToken(.type(nil)),
        .unsupportedAlgorithm("HS256"),
        .unsupportedAlgorithm("ES256"), .unsupportedAlgorithm(nil), .unsupportedCriticalHeader, .missingKeyID,
        .unknownKey(keyID: "k"), .keysUnavailable, .invalidSignature(.wrongLength), .invalidSignature(.mismatch),
        .missingClaim(.issuer), .malformedClaim(.subject, .wrongType), .malformedClaim(.subject, .empty),
        .malformedClaim(.expiration, .outOfRange), .malformedClaim(.subject, .outOfShape),
        .malformedClaim(.accessTokenHash, .empty), .malformedClaim(.nonce, .wrongType), .invalidIssuer("x"),
        .invalidAudience(.otherApp("9")), .invalidAudience(.severalAudiences),
        .invalidAudience(.otherAuthorizedParty("9")),
        .expired(at: date, now: date), .notYetValid(.issuedAt, at: date, now: date),
        .tooOld(issuedAt: date, maximumAgeSeconds: 5, now: date), .nonceMismatch(.empty), .nonceMismatch(.different),
        .nonceMismatch(.hashed), .nonceMismatch(.notHashed), .noNonceIssuer, .nonceNotIssued,
        .nonceExpired(.over(at: date, now: date)), .nonceExpired(.beyondMemory), .nonceUsed,
        .tokenReplayed(.remembered), .tokenReplayed(.beyondMemory), .loginRevoked, .subjectMismatch,
        .trackingNotAllowed,
        .invalidKeyThumbprint, .keyThumbprintMismatch, .accessTokenHashMismatch,
    ]

    @Test("Every refusal has a code, a check and a sentence of its own")
    func details() {
        var details: Set<String> = []
        for rejection in Self.all {
            #expect(rejection.detail.count > 15 && rejection.detail.hasSuffix("."), "\(rejection.code)")
            details.insert(rejection.detail)
        }
        #expect(details.count == Self.all.count)
        #expect(Set(Self.all.map(\.code)) == Set(TokenRejection.Code.allCases))
    }

    @Test("The codes are spelt as callers know them")
    func codes() {
        #expect(
            TokenRejection.Code.allCases.map(\.rawValue) == [
                "invalid_request", "invalid_nonce", "unknown_app", "token_too_long", "malformed_token",
                "not_an_id_token",
                "unsupported_algorithm", "unsupported_critical_header", "missing_key_id", "unknown_key",
                "invalid_signature", "missing_claim", "malformed_claim", "invalid_issuer", "invalid_audience",
                "expired",
                "not_yet_valid", "too_old", "nonce_mismatch", "nonce_not_issued", "nonce_expired", "nonce_used",
                "token_replayed", "login_revoked", "subject_mismatch", "key_thumbprint_mismatch", "at_hash_mismatch",
                "tracking_not_allowed", "keys_unavailable",
            ]
        )
    }

    @Test("The checks stand in the order of the verdict and each has a title")
    func checks() {
        #expect(VerificationCheck.allCases == VerificationCheck.allCases.sorted())
        #expect(Set(VerificationCheck.allCases.map(\.title)).count == VerificationCheck.allCases.count)
        let reached = Set(Self.all.map(\.check))
        #expect(reached == Set(VerificationCheck.allCases))
    }

    @Test("An earlier check refuses before a later one is made")
    func order() throws {
        // Each step mends the fault of the one before and leaves all later faults in place.
        var claims = Login.claims
        claims.issuer = "x"
        claims.audience = "9"
        claims.expiresAt = 1
        claims.tokenID = nil
        claims.nonce = "other"
        claims.accessTokenHash = "h"
        let verifier = try Login.verifier(tracking: .limited)
        func check() throws -> VerificationCheck? {
            try Login.rejection(of: StandInKeys.current.mint(claims), with: verifier)?.check
        }
        #expect(try check() == .issuer)
        claims.issuer = "https://facebook.com"
        #expect(try check() == .audience)
        claims.audience = "42"
        #expect(try check() == .times)
        claims.expiresAt = Login.now + 100
        #expect(try check() == .identity)
        claims.tokenID = "t"
        #expect(try check() == .binding)
        claims.nonce = Login.nonce
        #expect(try check() == .tracking)
        claims.accessTokenHash = nil
        #expect(try check() == nil)
    }

    @Test("Before the signature is good nothing of the claims is told, and never the token")
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

    @Test("The details say what to do about the mistakes people make")
    func help() throws {
        #expect(Refusal.notAnIDToken(.accessToken).detail.contains("access token"))
        #expect(Refusal.unsupportedAlgorithm("HS256").detail.contains("shared secret"))
        #expect(Refusal.nonceMismatch(.hashed).detail.contains("raw_nonce"))
        #expect(Refusal.notAnIDToken(.encrypted).detail.contains("encrypted"))
        let wrong = try Login.rejection(of: Login.token("aud", "\"987\""))
        #expect(wrong?.detail.contains("\"987\" is not one of the configured apps") == true)
        let late = try Login.rejection(of: StandInKeys.current.mint(Login.claims), at: Login.now + 4000)
        #expect(late?.detail.contains("405 s ago") == true)
    }
}
