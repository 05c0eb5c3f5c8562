import FoundationEssentials
import LLJOSE
import LLTestSupport
import LimitedLogin
import Testing

@Suite("Facebook's own keys and tokens", VectorFolder.needs("facebook/jwks-snapshots/2024-10-01.json"))
struct TokensFacebookTests {
    @Test(
        "Each of the 8 real key sets is read whole",
        arguments: [
            "2023-06-sui-fastcrypto", "2024-04-inferred-zk-oidc-validator", "2024-06-05", "2024-07-02", "2024-08-02",
            "2024-09-02", "2024-10-01", "2025-01-10-near-contract",
        ]
    )
    func keySets(name: String) throws {
        let text = try VectorFolder.bytes("facebook/jwks-snapshots/\(name).json")
        let set = try JWKSet(parsing: text.span)
        #expect(set.keys.count == 2 && set.ignoredKeys.isEmpty)
        for key in set.keys {
            #expect(key.keyID.utf8.count == 40 && key.modulusBitCount == 2048 && key.publicExponent == [1, 0, 1])
        }
    }

    @Test("Each set from 2024-06 to 2024-10 has one new key and keeps one key of the set before")
    func rotation() throws {
        let names = ["2024-06-05", "2024-07-02", "2024-08-02", "2024-09-02", "2024-10-01"]
        var sets: [JWKSet] = []
        for name in names {
            let text = try VectorFolder.bytes("facebook/jwks-snapshots/\(name).json")
            sets.append(try JWKSet(parsing: text.span))
        }
        for (older, newer) in zip(sets, sets.dropFirst()) {
            #expect(newer.keys[1] == older.keys[0])
            #expect(older.key(withID: newer.keys[0].keyID) == nil)
        }
    }

    @Test("The test tokens of the SDKs are refused as id tokens", arguments: ["ios-sdk-test", "android-sdk-test"])
    func testTokens(folder: String) throws {
        let text = try VectorFolder.bytes("facebook/\(folder)/token.jwt").filter { $0 > 0x20 }
        let verifier = TokenVerifier(policy: try VerificationPolicy(appIDs: ["1"], binding: .optional))
        let rejection = #expect(throws: Rejection.self) {
            try verifier.verify(
                String(decoding: text, as: UTF8.self),
                expecting: TokenExpectation(binding: .unbound),
                keys: StandInKeys.set,
                now: #require(NumericDate(secondsSince1970: 1_521_000_000 as Int64))
            )
        }
        if folder == "ios-sdk-test" { #expect(rejection?.code == .missingKeyID) }
    }
}
