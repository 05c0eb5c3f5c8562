import LLHTTP
import LLStandIn
import LLTestSupport
import LimitedLogin
import Testing

@testable import LLService

/// Without a skew, even a clock that is a fraction of a second behind would show.
@Suite("The clock of verdicts counts fractions of a second", .live)
struct ClockTests {
    private static func token(_ name: String) throws -> String {
        let now = "\(Double(WallClock.unixNanoseconds()) / 1_000_000_000)"
        let members = Tokens.claims().members.map { $0.name == name ? (name, now) : $0 }
        return try StandInKeys.current.mint(members: members)
    }

    @Test("A token issued this very moment is good, at /verify and /auth; one whose exp is this moment has expired")
    func now() async throws {
        let policy = try VerificationPolicy(appIDs: [InProcessService.appID], clockSkew: .seconds(0))
        let service = try await InProcessService(policy: policy, gatewayIsEnabled: true)
        for _ in 0..<20 {
            let token = try Self.token("iat")
            #expect(try service.verify(token).status == 200)
            #expect(try service.answer("GET", "/auth", fields: ["Authorization: Bearer \(token)"]).status == 200)
            #expect(try service.verify(try Self.token("exp")).code == "expired")
        }
    }
}
