import LimitedLogin
import LimitedLoginTesting
import Testing

@testable import app

// snippet: test
@Test func aLoginIsJudged() async throws {
    let key = try TestKey()
    let verifier = try makeVerifier(appID: "1234", keys: FixedKeys(key))
    let logins = LoginNonces()
    let nonce = logins.begin("my session").value
    for bad in try key.badTokens(appID: "1234", nonce: nonce) {
        for _ in 1..<bad.presentations { _ = try await logIn(bad.token, session: "my session", logins, verifier) }
        await #expect(throws: Rejection.self, "\(bad.fault)") {
            try await logIn(bad.token, session: "my session", logins, verifier)
        }
    }
    let another = logins.begin("my session").value
    let token = try key.token(claims: ["aud": "1234", "nonce": .string(another), "name": "Jane Doe"])
    let withoutKeys = try makeVerifier(appID: "1234", keys: FixedKeys.unavailable)
    await #expect(throws: Unavailable.self) { try await logIn(token, session: "my session", logins, withoutKeys) }
    #expect(try await logIn(token, session: "my session", logins, verifier).name == "Jane Doe")
}
// end
