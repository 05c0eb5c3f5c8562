import Foundation
import LimitedLogin
import LimitedLoginHTTPS
import LimitedLoginKeys

@main
struct GettingStarted {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 5 else { exit(64) }
        let (appID, url, token, nonce) = (arguments[1], arguments[2], arguments[3], arguments[4])
        let keys = try makeKeys(url: url)
        let verifier = try makeVerifier(appID: appID, keys: keys)
        do {
            guard let profile = try await logIn(token, nonceOfSession: nonce, with: verifier) else { exit(1) }
            print("welcome,", profile.name ?? profile.userID)
        } catch {
            print("try again: nobody can tell whether the token is good: \(error)")
            exit(3)
        }
    }
}

// snippet: keys
func makeKeys(url: String) throws -> JWKSetCache {
    let source = try HTTPSJWKSetSource(url: url)
    let keys = try JWKSetCache(sources: [source]) { event in print(event) }
    keys.start()
    return keys
}
// end

// snippet: verifier
func makeVerifier(appID: String, keys: any JSONWebKeySetProvider) throws -> LoginVerifier {
    let policy = try VerificationPolicy(appIDs: [appID])
    return LoginVerifier(policy: policy, keys: keys)
}
// end

// snippet: verify
func logIn(
    _ token: String,
    nonceOfSession: String,
    with verifier: LoginVerifier
) async throws -> Profile? {
    do {
        return try await verifier.verify(token, nonce: nonceOfSession).profile
    } catch let rejection as Rejection {
        print("refused: \(rejection)")
        return nil
    }
}
// end
