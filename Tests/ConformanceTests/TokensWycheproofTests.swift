import FoundationEssentials
import LLBytes
import LLJOSE
import LLTestSupport
import Testing

@testable import LimitedLogin

/// Judges tokens at the layer of the JWS: header, key and signature, without claims.
struct SignatureLayer {
    private let verifier: TokenVerifier

    init() throws {
        verifier = TokenVerifier(policy: try VerificationPolicy(appIDs: ["1"]))
    }

    /// The reason for the refusal of a JWS under a JWK Set; nil if its signature verifies.
    func rejection(of jws: String, keySet: [UInt8]) throws -> Rejection? {
        let keys = VerificationKeys(try JWKSet(parsing: keySet.span))
        // OpenSSL's error queue is empty in every case.
        defer { #expect(OpenSSLError.isQueueEmpty) }
        do throws(Rejection) {
            let token = Array(jws.utf8)
            var workspace = VerificationWorkspace()
            try verifier.authenticate(token.span, keys: keys, workspace: &workspace)
            return nil
        } catch {
            return error
        }
    }
}

@Suite("Wycheproof", .live)
struct TokensWycheproofTests {
    @Test(
        "All 318 RSA cases of the JWS set are judged as an RS256-only verifier must",
        VectorFolder.needs("wycheproof/jws_rsa_rs256_policy.json")
    )
    func signatures() throws {
        struct File: Decodable { let cases: [Case] }
        struct Case: Decodable {
            let tcId: Int, jwk: [String: JSONValue], jws: String, expected: String

            enum CodingKeys: String, CodingKey { case tcId, jwk, jws, expected = "rs256_only_result" }
        }
        let cases = try VectorFolder.decode(File.self, "wycheproof/jws_rsa_rs256_policy.json").cases
        #expect(cases.count >= 318)
        let layer = try SignatureLayer()
        var acceptedCount = 0
        for item in cases {
            let keySet = try JSONEncoder().encode(["keys": [item.jwk]])
            let rejection = try layer.rejection(of: item.jws, keySet: Array(keySet))
            #expect((rejection == nil) == (item.expected == "valid"), "tcId \(item.tcId): \(rejection as Any)")
            if rejection == nil { acceptedCount += 1 }
        }
        #expect(acceptedCount == 8)
        print("Wycheproof JWS: \(cases.count) RSA cases, \(acceptedCount) accepted")
    }

    @Test("All 26 cases of the JWK set are judged right", VectorFolder.needs("wycheproof/json_web_key_test.json"))
    func keys() throws {
        struct File: Decodable { let testGroups: [Group] }
        struct Group: Decodable { let `public`: JSONValue?, `private`: JSONValue?, tests: [Case] }
        struct Case: Decodable { let tcId: Int, jws: String, result: String }
        let groups = try VectorFolder.decode(File.self, "wycheproof/json_web_key_test.json").testGroups
        let layer = try SignatureLayer()
        var count = 0
        for group in groups {
            guard let keySet = group.public ?? group.private else { continue }
            for item in group.tests {
                let rejection = try layer.rejection(of: item.jws, keySet: Array(JSONEncoder().encode(keySet)))
                // Wycheproof calls shared secrets and other curves valid; here only the RS256 key may verify.
                let isExpected = item.result == "valid" && item.tcId == 5
                #expect((rejection == nil) == isExpected, "tcId \(item.tcId): \(rejection as Any)")
                count += 1
            }
        }
        #expect(count >= 26)
        print("Wycheproof JWK: \(count) cases")
    }

    @Test(
        "All 259 raw RSA-2048 signatures are judged right",
        VectorFolder.needs("wycheproof/rsa_signature_2048_sha256_test.json")
    )
    func rawSignatures() throws {
        struct File: Decodable { let testGroups: [Group] }
        struct Group: Decodable { let publicKey: Key, tests: [Case] }
        struct Key: Decodable { let modulus: String, publicExponent: String }
        struct Case: Decodable { let tcId: Int, msg: String, sig: String, result: String }
        let groups = try VectorFolder.decode(File.self, "wycheproof/rsa_signature_2048_sha256_test.json").testGroups
        var count = 0
        var acceptedCount = 0
        func hexadecimal(_ text: String) -> [UInt8] { Hexadecimal.decode(text.utf8) ?? [] }
        for group in groups {
            let modulus = Array(hexadecimal(group.publicKey.modulus).drop { $0 == 0 })
            let exponent = Array(hexadecimal(group.publicKey.publicExponent).drop { $0 == 0 })
            let key = try PublicKey(.rsa(modulus: modulus, exponent: exponent))
            for item in group.tests {
                let (message, signature) = (hexadecimal(item.msg), hexadecimal(item.sig))
                let digest = try SHA256.digest(of: message.span)
                let isAccepted = key.isValidSignature(signature.span, of: digest)
                #expect(isAccepted == (item.result == "valid"), "tcId \(item.tcId)")
                #expect(OpenSSLError.isQueueEmpty)
                count += 1
                acceptedCount += isAccepted ? 1 : 0
            }
        }
        #expect(count >= 259)
        print("Wycheproof RSA 2048: \(count) cases, \(acceptedCount) accepted")
    }

    @Test(
        "All 83 cases of the mixed set are refused as id tokens, and every five-part one as encrypted",
        VectorFolder.needs("wycheproof/json_web_crypto_test.json")
    )
    func encrypted() throws {
        struct File: Decodable { let testGroups: [Group] }
        struct Group: Decodable { let tests: [Case] }
        struct Case: Decodable { let tcId: Int, jws: JSONValue?, jwe: JSONValue? }
        let groups = try VectorFolder.decode(File.self, "wycheproof/json_web_crypto_test.json").testGroups
        let layer = try SignatureLayer()
        let keySet = Array(#"{"keys":[]}"#.utf8)
        var count = 0
        var encryptedCount = 0
        for item in groups.flatMap(\.tests) {
            guard let value = item.jws ?? item.jwe else { continue }
            let token: String
            if case .string(let text) = value {
                token = text
            } else {
                token = String(decoding: try JSONEncoder().encode(value), as: UTF8.self)
            }
            let rejection = try layer.rejection(of: token, keySet: keySet)
            #expect(rejection != nil, "tcId \(item.tcId)")
            if token.split(separator: ".", omittingEmptySubsequences: false).count == 5 {
                encryptedCount += 1
                #expect(rejection == .encryptedToken, "tcId \(item.tcId)")
            }
            count += 1
        }
        #expect(count >= 83)
        #expect(encryptedCount > 0)
        print("Wycheproof JSON Web Crypto: \(count) cases, \(encryptedCount) of them five-part")
    }
}
