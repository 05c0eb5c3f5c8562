import FoundationEssentials
import LLBytes
import LLJOSE
import LLStandIn
import LLTestSupport
import Testing

@testable import LimitedLogin

@Suite("Vectors of the RFCs and of other verifiers", .live)
struct TokensRFCTests {
    private struct Input: Decodable {
        struct Content: Decodable { let key: JSONValue }
        struct Output: Decodable { let compact: String?, json: JSONValue? }
        let input: Content
        let output: Output
    }

    @Test(
        "RFC 7515 appendix A.2: the signature verifies, but as an id token it is refused: it has no key ID",
        VectorFolder.needs("rfc7515/A.2_rs256.json")
    )
    func appendixA2() throws {
        struct File: Decodable { let jwk: [String: String], jws: String }
        let file = try VectorFolder.decode(File.self, "rfc7515/A.2_rs256.json")
        let token = Array(file.jws.utf8)
        let split = JWSCompactSerialization(splitting: token.span)
        let jws = try #require(split)
        var signature: [UInt8] = []
        let isStrict = Base64URL.decode(token.span, jws.signature, into: &signature)
        let key = try PublicKey(.rsa(modulus: bytes(file.jwk["n"]), exponent: bytes(file.jwk["e"])))
        let digest = try SHA256.digest(of: token[jws.signingInput].span)
        let isValid = key.isValidSignature(signature.span, of: digest)
        #expect(isStrict && isValid)
        let keySet = try JSONEncoder().encode(["keys": [file.jwk.merging(["kid": "a"]) { own, _ in own }]])
        #expect(try SignatureLayer().rejection(of: file.jws, keySet: Array(keySet)) == Rejection(.missingKeyID))
    }

    @Test(
        "RFC 7520 section 4.1 verifies under its key",
        VectorFolder.needs("rfc7520-cookbook/4_1.rsa_v15_signature.json")
    )
    func section41() throws {
        let file = try VectorFolder.decode(Input.self, "rfc7520-cookbook/4_1.rsa_v15_signature.json")
        let key = try VectorFolder.decode(JSONValue.self, "rfc7520-cookbook/3_3.rsa_public_key.json")
        let keySet = Array(try JSONEncoder().encode(["keys": [key]]))
        let token = try #require(file.output.compact)
        #expect(try SignatureLayer().rejection(of: token, keySet: keySet) == nil)
    }

    @Test(
        "RFC 7520 sections 4.2 to 4.4: other algorithms are refused before any key is looked for",
        VectorFolder.needs("rfc7520-cookbook/4_4.hmac-sha2_integrity_protection.json"),
        arguments: [
            ("4_2.rsa-pss_signature", "PS384"), ("4_3.ecdsa_signature", "ES512"),
            ("4_4.hmac-sha2_integrity_protection", "HS256"),
        ]
    )
    func otherAlgorithms(name: String, algorithm: String) throws {
        let file = try VectorFolder.decode(Input.self, "rfc7520-cookbook/\(name).json")
        let keySet = Array(try JSONEncoder().encode(["keys": [file.input.key]]))
        let token = try #require(file.output.compact)
        #expect(try SignatureLayer().rejection(of: token, keySet: keySet) == .unsupportedAlgorithm(algorithm))
    }

    @Test(
        "RFC 7520 section 4.8: the JSON serialization is refused",
        VectorFolder.needs("rfc7520-cookbook/4_8.multiple_signatures.json")
    )
    func jsonSerialization() throws {
        let file = try VectorFolder.decode(Input.self, "rfc7520-cookbook/4_8.multiple_signatures.json")
        let json = try #require(file.output.json)
        let text = String(decoding: try JSONEncoder().encode(json), as: UTF8.self)
        #expect(try SignatureLayer().rejection(of: text, keySet: Array(#"{"keys":[]}"#.utf8)) == .jsonSerialization)
    }

    @Test(
        "All 14 malformed keys of libjwt are ignored one by one beside a good key, which still verifies",
        VectorFolder.needs("libjwt/bad_keys.json")
    )
    func malformedKeys() throws {
        struct KeySet: Codable { var keys: [JSONValue] }
        let set = try VectorFolder.decode(KeySet.self, "libjwt/bad_keys.json")
        let badCount = set.keys.count
        #expect(badCount >= 14)
        let minter = StandInKeys.current
        let good = try JSONDecoder().decode(JSONValue.self, from: Data(minter.jsonWebKey.utf8))
        let token = try minter.mint(header: minter.header, payload: [])
        for position in [0, 7, badCount] {
            var mixed = set
            mixed.keys.insert(good, at: position)
            let text = Array(try JSONEncoder().encode(mixed))
            let parsed = try JWKSet(parsing: text.span)
            #expect(parsed.keys.count == 1 && parsed.ignoredKeys.count == badCount)
            #expect(try SignatureLayer().rejection(of: token, keySet: text) == nil)
        }
    }

    private func bytes(_ text: String?) throws -> [UInt8] {
        let digits = Array((text ?? "").utf8)
        var value: [UInt8] = []
        try #require(Base64URL.decode(digits.span, 0..<digits.count, into: &value))
        return value
    }
}
