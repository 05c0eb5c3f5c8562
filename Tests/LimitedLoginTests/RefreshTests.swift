import LLBytes
import LLJOSE
import LLStandIn
import LLTestSupport
import LimitedLogin
import Testing

@Suite("A refreshed token, its device and its access token")
struct RefreshTests {
    /// How a nonce is given.
    enum Form: String, CaseIterable, Sendable {
        case nonce, rawNonce, issuedNonce
    }

    /// The value that is given for one part of the binding.
    enum Given: String, CaseIterable, Sendable {
        case right, wrong, absent
    }

    private static func issuer() throws -> NonceIssuer {
        NonceIssuer(secret: try NonceSecret(text: "0123456789abcdefghijklmnopqrstuv"))
    }

    /// A nonce issued for the app, by default half an hour before the token is judged.
    private static func issued(secondsAgo: Double = 1_800) throws -> String {
        let date = try #require(NumericDate(secondsSince1970: Double(Login.now) - secondsAgo))
        return try #require(try issuer().issue(appID: Login.appID, now: date)).nonce.value
    }

    private static func token(nonce: String?) throws -> String {
        var claims = Login.claims
        claims.nonce = nonce
        return try StandInKeys.current.mint(claims)
    }

    /// The nonce in the token of a login that began with this form.
    private static func tokenNonce(_ form: Form, _ given: Given) throws -> String? {
        if given == .absent { return nil }
        if given == .wrong { return "made elsewhere" }
        return switch form {
        case .nonce: "of-the-login"
        case .rawNonce: try SHA256.digest(of: Array("of-the-login".utf8).span).hexadecimal
        case .issuedNonce: try issued()
        }
    }

    private static func binding(_ form: Form) throws -> TokenBinding {
        switch form {
        case .nonce: .nonce(try Login.nonce("of-the-login"))
        case .rawNonce: .rawNonce(try Login.nonce("of-the-login"))
        case .issuedNonce: .issuedNonce
        }
    }

    /// The expected code for this nonce in the token and this user.
    private static func expected(_ form: Form, nonce: Given, subject: Given) -> Rejection.Code? {
        switch (nonce, subject) {
        case (.right, .right): nil
        case (.right, .wrong): .subjectMismatch
        // Without a user it is a fresh login; its issued nonce is half an hour old and lasts ten minutes.
        case (.right, .absent): form == .issuedNonce ? .nonceExpired : nil
        case (.wrong, _): form == .issuedNonce ? .nonceNotIssued : .nonceMismatch
        case (.absent, _): .missingClaim
        }
    }

    @Test("Every combination of nonce and user has its code", arguments: Form.allCases, Given.allCases)
    func combinations(form: Form, nonce: Given) throws {
        let token = try Self.token(nonce: Self.tokenNonce(form, nonce))
        let verifier = try Login.verifier(nonces: Self.issuer())
        for subject in Given.allCases {
            let login = try Self.binding(form)
            let binding =
                switch subject {
                case .right: login.refreshing(Login.userID)
                case .wrong: login.refreshing("9")
                case .absent: login
                }
            let rejection = try Login.rejection(of: token, with: verifier, binding: binding)
            #expect(rejection?.code == Self.expected(form, nonce: nonce, subject: subject), "\(subject)")
            #expect(binding.isRefresh == (subject != .absent))
        }
        // A binding to the user alone needs no nonce.
        #expect(try Login.rejection(of: token, with: verifier, binding: .refresh(ofSessionOf: Login.userID)) == nil)
        #expect(try Login.rejection(of: token, with: verifier, binding: .refresh(ofSessionOf: "9")) == .subjectMismatch)
    }

    @Test("A login reports its issued nonce to be used up; a refresh does not")
    func usesNothingUp() throws {
        let verifier = try Login.verifier(nonces: Self.issuer())
        var workspace = VerificationWorkspace()
        func judge(_ nonce: String, subject: String?) throws -> RecognizedNonce? {
            let token = Array(try Self.token(nonce: nonce).utf8)
            let binding = subject.map { TokenBinding.issuedNonce.refreshing($0) } ?? .issuedNonce
            let keys = VerificationKeys(StandInKeys.set)
            _ = try verifier.judge(
                token.span,
                TokenExpectation(binding),
                keys: keys,
                now: Login.sharedNow,
                workspace: &workspace
            )
            return workspace.recognizedNonce
        }
        #expect(try judge(Self.issued(secondsAgo: 60), subject: nil) != nil)
        #expect(try judge(Self.issued(secondsAgo: 60), subject: Login.userID) == nil)
        #expect(try judge(Self.issued(), subject: Login.userID) == nil)
    }

    private static let thumbprint = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"

    private static func rejection(
        _ token: String,
        thumbprint: String? = nil,
        accessToken: String? = nil
    ) throws -> Rejection? {
        let expectation = TokenExpectation(
            binding: .nonce(try Login.nonce()),
            keyThumbprint: thumbprint,
            accessToken: accessToken
        )
        do {
            _ = try Login.sharedVerifier.verify(
                token,
                expecting: expectation,
                keys: StandInKeys.set,
                now: Login.sharedNow
            )
            return nil
        } catch { return Rejection.of(error) }
    }

    @Test("The device's key must be the one the token is bound to, byte for byte")
    func device() throws {
        let bound = try Login.token("cnf", #"{"jkt":"\#(Self.thumbprint)"}"#)
        #expect(try Self.rejection(bound, thumbprint: Self.thumbprint) == nil)
        #expect(try Login.verify(bound).authenticationToken.keyThumbprint == Self.thumbprint)
        let escaped = try Login.token("cnf", #"{"jkt":"\u0030ZcOCORZNYy\u002dDWpqq30jZyJGHTN0d2HglBV3uiguA4I"}"#)
        #expect(try Self.rejection(escaped, thumbprint: Self.thumbprint) == nil)
        #expect(try Login.verify(escaped).authenticationToken.keyThumbprint == Self.thumbprint)
        let other = Base64URL.encode([UInt8](repeating: 7, count: 32))
        #expect(try Self.rejection(bound, thumbprint: other) == Rejection(.keyThumbprintMismatch))
        let swapped = "0zcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
        #expect(try Self.rejection(bound, thumbprint: swapped) == Rejection(.keyThumbprintMismatch))
        let digits = String(repeating: "1", count: 42) + "0"
        let number = try Login.token("cnf", #"{"jkt":\#(digits)}"#)
        #expect(try Self.rejection(number, thumbprint: digits) == Rejection(.keyThumbprintMismatch))
        for json in [
            nil, "null", "5", "[]", "{}", #"{"jkt":5}"#, #"{"jkt":""}"#, #"{"jkt":null}"#, #""\#(Self.thumbprint)""#,
        ] {
            let rejection = try Self.rejection(Login.token("cnf", json), thumbprint: Self.thumbprint)
            #expect(rejection == Rejection(.keyThumbprintMismatch), "\(json ?? "absent")")
            #expect(rejection?.claim == "cnf" && rejection?.code.rawValue == "key_thumbprint_mismatch")
        }
    }

    @Test(
        "A text that is no SHA-256 thumbprint is the caller's mistake",
        arguments: [
            "", "A", "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4", "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I=",
            "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4J", "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4IA",
            "0ZcOCORZNYy+DWpqq30jZyJGHTN0d2HglBV3uiguA4I",
        ]
    )
    func thumbprints(text: String) throws {
        let bound = try Login.token("cnf", #"{"jkt":"\#(Self.thumbprint)"}"#)
        let rejection = try Self.rejection(bound, thumbprint: text)
        #expect(rejection == .invalidKeyThumbprint && rejection?.code == .invalidRequest)
    }

    @Test("An access token is compared with at_hash (the example of OpenID Connect Core appendix A.4)")
    func accessToken() throws {
        let access = "jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y"
        let token = try Login.token("at_hash", #""77QmUPtjPfzWtF2AnpK9RQ""#)
        #expect(try Self.rejection(token, accessToken: access) == nil)
        #expect(
            try Self.rejection(Login.token("at_hash", #""77QmUPtjPfzWtF2AnpK\u0039RQ""#), accessToken: access) == nil
        )
        for other in ["jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0y", "x", "", access + "="] {
            #expect(try Self.rejection(token, accessToken: other) == Rejection(.accessTokenHashMismatch))
        }
        let whole = try SHA256.digest(of: Array(access.utf8).span).base64URL
        for hash in [nil, #""77QmUPtjPfzWtF2AnpK9RQ==""#, #""\#(whole)""#, #""77qmUPtjPfzWtF2AnpK9RQ""#, #""77""#] {
            let rejection = try Self.rejection(Login.token("at_hash", hash), accessToken: access)
            #expect(rejection == Rejection(.accessTokenHashMismatch), "\(hash ?? "absent")")
            #expect(rejection?.claim == "at_hash" && rejection?.code.rawValue == "at_hash_mismatch")
        }
        #expect(try Self.rejection(Login.token("at_hash", #""""#), accessToken: access)?.code == .malformedClaim)
    }

    @Test("The login verifier takes the nonce of a refresh too")
    func loginVerifier() async throws {
        let policy = try VerificationPolicy(appIDs: [Login.appID])
        let verifier = LoginVerifier(policy: policy, keys: StandInKeys.set, clock: { Double(Login.now) })
        let token = try Self.token(nonce: "of-the-login")
        #expect(try await verifier.verifyRefresh(token, ofSessionOf: Login.userID).profile.userID == Login.userID)
        #expect(
            try await verifier.verifyRefresh(token, ofSessionOf: Login.userID, nonce: "of-the-login").profile.userID
                == Login.userID
        )
        for (subject, nonce) in [(Login.userID, "x"), ("9", "of-the-login")] {
            await #expect(throws: Rejection.self) {
                try await verifier.verifyRefresh(token, ofSessionOf: subject, nonce: nonce)
            }
        }
        await #expect(throws: InvalidExpectation.self) {
            try await verifier.verifyRefresh(token, ofSessionOf: Login.userID, nonce: "")
        }
    }
}
