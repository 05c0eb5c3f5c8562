import LLSockets
import LLStandIn
import LLTestSupport
import LimitedLogin
import Testing

@testable import LLService

/// Without a skew, even a clock that is a fraction of a second behind would show.
@Suite("The clock of verdicts counts fractions of a second", .live)
struct ClockTests {
    private static func service(nonces: NonceIssuer? = nil) async throws -> InProcessService {
        try await InProcessService(
            policy: try VerificationPolicy(appIDs: [InProcessService.appID], clockSkewSeconds: 0),
            gateway: GatewaySettings(dpop: .requiredIfBound, origin: GatewayOrigin("https://api.example.com")),
            nonces: nonces
        )
    }

    /// The current time as a NumericDate with a fraction.
    private static var now: String { String(Double(WallClock.unixNanoseconds()) / 1_000_000_000) }

    private static func token(_ name: String, _ json: String, nonce: String = "n-1") throws -> String {
        let members = Tokens.claims(nonce: nonce).members.map { $0.name == name ? (name, json) : $0 }
        return try StandInKeys.current.mint(members: members)
    }

    @Test("A token issued this very moment is good, at /verify and /auth")
    func issuedNow() async throws {
        let service = try await Self.service()
        for _ in 0..<20 {
            let token = try Self.token("iat", Self.now)
            #expect(try service.verify(token, #""nonce":"n-1""#).status == 200)
            #expect(try service.answer("GET", "/auth", fields: ["Authorization: Bearer \(token)"]).status == 200)
        }
    }

    @Test("A token expires at the very moment of its exp")
    func expiredNow() async throws {
        let service = try await Self.service()
        for _ in 0..<20 {
            let token = try Self.token("exp", Self.now)
            #expect(try service.verify(token, #""nonce":"n-1""#).code == "expired")
        }
    }

    @Test("A DPoP proof made this very moment is good")
    func provedNow() async throws {
        let service = try await Self.service()
        var claims = Tokens.claims()
        claims.confirmationThumbprint = try Proof.key.thumbprint()
        let token = try Tokens.mint(claims)
        for number in 0..<20 {
            var proof = try Proof(token: token, now: WallClock.unixSeconds(), tokenID: "j-\(number)")
            proof.set("iat", Self.now)
            let answer = try service.answer(
                "GET",
                "/auth",
                fields: [
                    "Authorization: DPoP \(token)", "DPoP: \(try proof.make())", "X-Forwarded-Method: GET",
                    "X-Forwarded-Uri: /login/me?x=1",
                ]
            )
            #expect(answer.status == 200, "\(answer.text)")
        }
    }

    @Test("An issued nonce expires at the end of its life, not a second later")
    func nonceOver() async throws {
        let nonces = try NonceIssuer(secret: "5c0f0d2ab3f14e67a1b7c9d2e8f40316")
        let service = try await Self.service(nonces: nonces)
        for _ in 0..<20 {
            let issued = nonces.issue(
                appID: InProcessService.appID,
                lifetimeSeconds: 10,
                now: WallClock.unixMilliseconds() - 10_000,
                randomBytes: [UInt8](repeating: 7, count: 16)
            )
            let nonce = try #require(issued).nonce.value
            let token = try Self.token("iat", String(WallClock.unixSeconds() - 5), nonce: nonce)
            #expect(try service.verify(token, #""issued_nonce":true"#).code == "nonce_expired")
        }
    }
}
