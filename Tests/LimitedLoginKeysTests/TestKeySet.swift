import LLBytes
import LLJOSE
import LLStandIn
import LLTestSupport

/// JWK Sets for tests, made of two shared keys under any key IDs.
enum TestKeySet {
    /// The members of each key, without its key ID.
    static let first = members(StandInKeys.current)
    static let second = members(StandInKeys.previous)

    /// A set with the first key under each of `keyIDs` and the second key under each of `others`.
    static func json(_ keyIDs: [String], second others: [String] = []) -> [UInt8] {
        let keys =
            keyIDs.map { "{\"kid\":\"\($0)\",\(first)}" } + others.map { "{\"kid\":\"\($0)\",\(second)}" }
        return Array("{\"keys\":[\(keys.joined(separator: ","))]}".utf8)
    }

    private static func members(_ minter: TokenMinter) -> String {
        let key = (try? JSONWebKeySet(parsing: TokenMinter.jsonWebKeySet([minter]).span))?.keys.first
        let modulus = String(decoding: Base64URL.encode(key?.modulus ?? []), as: UTF8.self)
        return "\"kty\":\"RSA\",\"alg\":\"RS256\",\"use\":\"sig\",\"n\":\"\(modulus)\",\"e\":\"AQAB\""
    }
}
