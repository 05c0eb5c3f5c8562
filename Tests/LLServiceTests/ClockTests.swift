import LLHTTP
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
            policy: try VerificationPolicy(appIDs: [InProcessService.appID], clockSkew: .seconds(0)),
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
}
