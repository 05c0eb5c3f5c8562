import LLJOSE
import LLStandIn
import LLTestSupport
import LimitedLogin
import Testing

/// A login with a good token, which each test changes.
struct Login {
    static let appID = "1234567890123456"
    static let userID = "10158273645546372"
    static let nonce = "0B6F5C35-92C1-4E5C-9D0C-5B5F7A3C2D11"
    static let now: Int64 = 1_700_000_000

    /// The claims of a login five seconds ago.
    static var claims: MintedClaims {
        MintedClaims(audience: appID, subject: userID, nonce: nonce, issuedAt: now - 5)
    }

    /// The claims of a login with every permission granted.
    static var fullClaims: MintedClaims {
        var claims = claims
        claims.email = "zoë@example.com"
        claims.givenName = "Zoë"
        claims.middleName = "Q."
        claims.familyName = "Müller 😀"
        claims.name = "Zoë Q. Müller 😀"
        claims.picture =
            "https://platform-lookaside.fbsbx.com/platform/profilepic/?asid=1&height=100&ext=1702592000&hash=AbC"
        claims.friendIDs = ["1122", "3344", "5566"]
        claims.birthday = "01/02/1990"
        claims.ageRange = (21, nil)
        claims.hometown = ("112724962075996", "Martinez, California")
        claims.location = ("110843418940484", "Seattle, Washington")
        claims.gender = "female"
        claims.link = "https://www.facebook.com/app_scoped_user_id/x/"
        claims.confirmationThumbprint = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
        return claims
    }

    static func verifier(
        maximumAge: Int? = nil,
        binding: VerificationPolicy.Binding = .required,
        tracking: VerificationPolicy.Tracking = .any,
        skew: Int = 60,
        nonces: NonceIssuer? = nil
    ) throws -> TokenVerifier {
        TokenVerifier(
            policy: try VerificationPolicy(
                appIDs: ["42", appID, "77777"],
                clockSkew: .seconds(skew),
                maximumTokenAge: maximumAge.map { .seconds($0) },
                binding: binding,
                tracking: tracking
            ),
            nonces: nonces
        )
    }

    /// A verifier with the default policy.
    static let sharedVerifier: TokenVerifier = {
        guard let verifier = try? verifier() else { fatalError("no verifier") }
        return verifier
    }()

    /// The time at which all tokens are judged.
    static let sharedNow = NumericDate(secondsSince1970: now) ?? .beginning

    static func date(_ seconds: Int64 = now) throws -> NumericDate {
        try #require(NumericDate(secondsSince1970: seconds), "\(seconds)")
    }

    static func nonce(_ text: String = nonce) throws -> Nonce { try #require(Nonce(text), "\(text)") }

    static let expectation = TokenExpectation(TokenBinding(nonce: Array(nonce.utf8)))

    /// Judges a token as this login's.
    static func verify(
        _ token: String,
        with verifier: TokenVerifier? = nil,
        binding: TokenBinding? = nil,
        appID: String? = nil,
        keys: JWKSet = StandInKeys.set,
        at now: Int64 = now
    ) throws -> VerifiedToken {
        let expected = try binding ?? .nonce(nonce())
        return try (verifier ?? Self.verifier()).verify(
            token,
            expecting: TokenExpectation(binding: expected, appID: appID),
            keys: keys,
            now: date(now)
        )
    }

    /// The reason for refusing a token; nil if it is accepted.
    static func rejection(
        of token: String,
        with verifier: TokenVerifier? = nil,
        binding: TokenBinding? = nil,
        appID: String? = nil,
        keys: JWKSet = StandInKeys.set,
        at now: Int64 = now
    ) throws -> Rejection? {
        rejection { try verify(token, with: verifier, binding: binding, appID: appID, keys: keys, at: now) }
    }

    static func expectMalformed(_ claim: String, _ json: String) throws {
        let rejection = try rejection(of: token(claim, json))
        #expect(rejection?.code == .malformedClaim && rejection?.claim == claim)
    }

    /// The refusal behind the error that `body` throws; nil if it throws none.
    static func rejection<Value>(_ body: () throws -> Value) -> Rejection? {
        do {
            _ = try body()
            return nil
        } catch {
            return .of(error)
        }
    }

    /// A skew, the time that a credential is ahead by (both in seconds), and true if it is accepted.
    static let skews: [(seconds: Int, ahead: Int64, isAccepted: Bool)] = [
        (0, 0, true), (0, 1, false), (60, 60, true), (60, 61, false), (300, 300, true), (60_000, 300, true),
        (60_000, 301, false), (.max, 301, false), (-60, 0, true), (.min, 0, true), (.min, 1, false),
    ]

    /// A token with this JSON text as its header.
    static func token(header: String) throws -> String {
        try StandInKeys.current.mint(header: Array(header.utf8), payload: claims.payload)
    }

    /// A token with this JSON text as its payload.
    static func token(payload: String) throws -> String {
        try StandInKeys.current.mint(header: StandInKeys.current.header, payload: Array(payload.utf8))
    }

    /// A good token with one claim set to JSON text; nil removes it.
    static func token(_ claim: String, _ json: String?) throws -> String {
        var members = claims.members.filter { $0.name != claim }
        if let json { members.append((claim, json)) }
        return try StandInKeys.current.mint(members: members)
    }
}

extension Rejection {
    static let unreadableAnswer = Unavailable.unreadableAnswer.rejection
}
