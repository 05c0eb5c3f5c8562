import Foundation
import JWTKit

/// The payload, declared as in jwt-kit's README. It makes the checks of jwt-kit's own `GoogleIdentityToken`, and checks
/// the audience with the library's function for it.
struct LimitedLoginToken: JWTPayload {
    static let issuer = "https://www.facebook.com"
    static let appID = CommandLine.arguments[2]

    let iss: IssuerClaim
    let sub: SubjectClaim
    let aud: AudienceClaim
    let iat: IssuedAtClaim
    let exp: ExpirationClaim
    let nonce: String?

    func verify(using algorithm: some JWTAlgorithm) throws {
        guard iss.value == Self.issuer else {
            throw JWTError.claimVerificationFailure(failedClaim: iss, reason: "not Facebook's")
        }
        try aud.verifyIntendedAudience(includes: Self.appID)
        try exp.verifyNotExpired()
    }
}

/// Reads tokens from standard input, one a line, and answers each with `accepted` or `refused REASON`.
@main
struct Judge {
    static func main() async throws {
        let keySet = try String(contentsOfFile: CommandLine.arguments[1], encoding: .utf8)
        let keys = try await JWTKeyCollection().add(jwksJSON: keySet)
        while let token = readLine() {
            var answer = "accepted"
            do {
                _ = try await keys.verify(token, as: LimitedLoginToken.self)
            } catch {
                answer = "refused \(error)".replacing("\n", with: " ")
            }
            // `print` would buffer the lines, because standard output is a pipe.
            FileHandle.standardOutput.write(Data("\(answer)\n".utf8))
        }
    }
}
