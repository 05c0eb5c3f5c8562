import FoundationEssentials
import LLTestSupport

/// The answer to an accepted token as a client decodes it.
struct DecodedAnswer: Decodable {
    struct Token: Decodable {
        let issuer, audience, subject, tokenID, keyID, tracking: String
        let nonce, keyThumbprint: String?
        let issuedAt, expiresAt: Int

        enum CodingKeys: String, CodingKey {
            case issuer, audience, subject, nonce, tracking
            case tokenID = "token_id"
            case keyID = "key_id"
            case keyThumbprint = "key_thumbprint"
            case issuedAt = "issued_at"
            case expiresAt = "expires_at"
        }
    }

    struct Profile: Decodable {
        let userID: String
        let name, firstName, middleName, lastName, email, imageURL, linkURL, birthday, gender: String?
        let emailVerified: Bool?
        let friendIDs: [String]?
        let ageRange: [String: Int]?
        let hometown, location: [String: String]?
        let permissions: [String]
        let isLimited: Bool

        enum CodingKeys: String, CodingKey {
            case name, email, birthday, gender, hometown, location, permissions
            case userID = "user_id"
            case firstName = "first_name"
            case middleName = "middle_name"
            case lastName = "last_name"
            case emailVerified = "email_verified"
            case imageURL = "image_url"
            case linkURL = "link_url"
            case friendIDs = "friend_ids"
            case ageRange = "age_range"
            case isLimited = "is_limited"
        }
    }

    enum Claim: Decodable, Equatable {
        case text(String)
        case other

        init(from decoder: any Decoder) throws {
            self = (try? decoder.singleValueContainer().decode(String.self)).map { .text($0) } ?? .other
        }
    }

    let authenticationToken: Token
    let profile: Profile
    let missingPermissions: [String]?
    let unverifiablePermissions: [String]?
    let claims: [String: Claim]

    enum CodingKeys: String, CodingKey {
        case profile, claims
        case authenticationToken = "authentication_token"
        case missingPermissions = "missing_permissions"
        case unverifiablePermissions = "unverifiable_permissions"
    }
}

/// A problem as a client decodes it.
struct DecodedProblem: Decodable {
    let type, title, detail, hint, code: String
    let status: Int
    let claim: String?
    let requestID: String

    enum CodingKeys: String, CodingKey {
        case type, title, detail, hint, code, status, claim
        case requestID = "request_id"
    }
}

extension TestResponse {
    /// The problem's code; nil if the answer is no problem.
    var code: String? { (try? JSONDecoder().decode(DecodedProblem.self, from: Data(body)))?.code }
    /// The problem's detail; empty if the answer is no problem.
    var detail: String { (try? JSONDecoder().decode(DecodedProblem.self, from: Data(body)))?.detail ?? "" }
    /// The problem's hint; empty if the answer is no problem.
    var hint: String { (try? JSONDecoder().decode(DecodedProblem.self, from: Data(body)))?.hint ?? "" }
}
