import Foundation
import Hummingbird
import JWTKit
import Logging
import NIOPosix

/// `hummingbird-jwt-kit PORT KEYS APP`: `POST /verify` on one event loop, answering the claims.
@main
struct Server {
    struct Request: Decodable {
        let idToken: String
        let nonce: String

        enum CodingKeys: String, CodingKey {
            case idToken = "id_token"
            case nonce
        }
    }

    /// The claims of Limited Login's tokens.
    struct Claims: JWTPayload, ResponseEncodable {
        struct Place: Codable {
            let id: String
            let name: String
        }

        struct AgeRange: Codable {
            let min: Int?
            let max: Int?
        }

        let iss: IssuerClaim
        let aud: AudienceClaim
        let sub: SubjectClaim
        let exp: ExpirationClaim
        let iat: IssuedAtClaim
        let jti: IDClaim
        let nonce: String
        let name: String?
        let givenName: String?
        let middleName: String?
        let familyName: String?
        let email: String?
        let picture: String?
        let userFriends: [String]?
        let userBirthday: String?
        let userAgeRange: AgeRange?
        let userLink: String?
        let userHometown: Place?
        let userLocation: Place?
        let userGender: String?

        enum CodingKeys: String, CodingKey {
            case iss, aud, sub, exp, iat, jti, nonce, name, email, picture
            case givenName = "given_name"
            case middleName = "middle_name"
            case familyName = "family_name"
            case userFriends = "user_friends"
            case userBirthday = "user_birthday"
            case userAgeRange = "user_age_range"
            case userLink = "user_link"
            case userHometown = "user_hometown"
            case userLocation = "user_location"
            case userGender = "user_gender"
        }

        func verify(using algorithm: some JWTAlgorithm) throws {
            try exp.verifyNotExpired()
        }
    }

    static func main() async throws {
        let arguments = CommandLine.arguments
        let app = arguments[3]
        let keys = JWTKeyCollection()
        try await keys.add(jwksJSON: String(contentsOfFile: arguments[2], encoding: .utf8))
        let router = Router()
        router.post("/verify") { request, context -> Claims in
            let body = try await request.decode(as: Request.self, context: context)
            do {
                let claims = try await keys.verify(body.idToken, as: Claims.self)
                try claims.aud.verifyIntendedAudience(includes: app)
                guard claims.iss.value == "https://www.facebook.com", claims.nonce == body.nonce else {
                    throw HTTPError(.unauthorized)
                }
                return claims
            } catch let error as JWTError {
                throw HTTPError(.unauthorized, message: "\(error.errorType)")
            }
        }
        var logger = Logger(label: "peer")
        logger.logLevel = .error
        let server = Application(
            router: router,
            configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: Int(arguments[1]) ?? 0)),
            eventLoopGroupProvider: .shared(MultiThreadedEventLoopGroup(numberOfThreads: 1)),
            logger: logger
        )
        try await server.runService()
    }
}
