import LimitedLogin
import LimitedLoginTesting
import Testing

@testable import app

// snippet: test
@Test func aLoginIsJudged() async throws {
    let key = try TestKey()
    let verifier = try makeVerifier(appID: "1234", keys: FixedKeys(key))
    let token = try key.token(claims: ["aud": "1234", "nonce": "n-1", "name": "Jane Doe"])
    #expect(try await logIn(token, nonceOfSession: "n-1", with: verifier)?.name == "Jane Doe")
    #expect(try await logIn(token, nonceOfSession: "n-2", with: verifier) == nil)
    for bad in try key.badTokens(appID: "1234", nonce: "n-1") {
        #expect(try await logIn(bad.token, nonceOfSession: "n-1", with: verifier) == nil, "\(bad.fault)")
    }
    let withoutKeys = try makeVerifier(appID: "1234", keys: FixedKeys.unavailable)
    await #expect(throws: Unavailable.self) {
        try await logIn(token, nonceOfSession: "n-1", with: withoutKeys)
    }
}
// end
