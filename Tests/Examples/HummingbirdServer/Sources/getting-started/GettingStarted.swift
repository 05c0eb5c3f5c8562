import Foundation
import LimitedLogin
import LimitedLoginHTTPS
import LimitedLoginKeys

@main
struct GettingStarted {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 4 else { exit(64) }
        let keys = try makeKeys(url: arguments[2])
        let verifier = try makeVerifier(appID: arguments[1], keys: keys)
        let logins = LoginNonces()
        // The nonce goes to the app; here it is the first line of standard output, and the token comes from standard
        // input. The events of the keys follow it.
        print(logins.begin(arguments[3]).value)
        fflush(nil)
        keys.start()
        do {
            let profile = try await logIn(readLine() ?? "", session: arguments[3], logins, verifier)
            print("welcome,", profile.name ?? profile.userID)
        } catch {
            let (status, seconds) = response(to: error)
            print("\(status), Retry-After: \(seconds ?? 0): \(error)")
            exit(status == 401 ? 1 : 3)
        }
    }
}

// snippet: keys
func makeKeys(url: String = JWKSetCache.facebookURL) throws -> JWKSetCache {
    try JWKSetCache(sources: [HTTPSJWKSetSource(url: url)]) { event in print(event.severity, event) }
}
// end

// snippet: verifier
func makeVerifier(appID: String, keys: any JWKSetProvider) throws -> LoginVerifier {
    let policy = try VerificationPolicy(appIDs: [appID])
    return LoginVerifier(policy: policy, keys: keys)
}
// end

// snippet: verify
func logIn(
    _ token: String,
    session: String,
    _ logins: LoginNonces,
    _ verifier: LoginVerifier
) async throws -> Profile {
    try await logins.finish(session, with: token, by: verifier).profile
}
// end

// snippet: answer
func response(to error: any Error) -> (status: Int, retryAfterSeconds: Int?) {
    switch error {
    case is Rejection: (401, nil)
    case let outage as Unavailable: (outage.status, outage.retryAfterSeconds)
    default: (500, nil)
    }
}
// end
