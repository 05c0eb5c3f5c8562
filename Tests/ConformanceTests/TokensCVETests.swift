import FoundationEssentials
import LLBytes
import LLJOSE
import LLStandIn
import LLTestSupport
import LimitedLogin
import Testing

/// Published faults of other verifiers that could apply to this one, each tried as an attack.
@Suite("Published faults of other verifiers", .live)
struct TokensCVETests {
    private static let now: Int64 = 1_700_000_000
    private static let appID = "1234567890123456"

    private func claims() -> MintedClaims {
        MintedClaims(audience: Self.appID, subject: "7", nonce: "n", issuedAt: Self.now)
    }

    private func rejection(of token: String, keys: JWKSet = StandInKeys.set) throws -> Rejection? {
        let verifier = TokenVerifier(policy: try VerificationPolicy(appIDs: [Self.appID]))
        let expectation = TokenExpectation(binding: .nonce(try #require(Nonce("n"))))
        let now = try #require(NumericDate(secondsSince1970: Self.now))
        do throws(Rejection) {
            _ = try Rejection.judging { try verifier.verify(token, expecting: expectation, keys: keys, now: now) }
            return nil
        } catch {
            return error
        }
    }

    /// The encoded header and payload, joined and ready to be signed.
    private func signingInput(header: String) -> String {
        let parts = [Array(header.utf8), claims().payload].map { Base64URL.encode($0) }
        return parts.joined(separator: ".")
    }

    @Test(
        "CVE-2016-10555, CVE-2022-29217, CVE-2023-48223, CVE-2026-34950: no form of the public key is a shared secret",
        arguments: ["HS256", "HS384", "HS512"]
    )
    func keyConfusion(algorithm: String) throws {
        let minter = StandInKeys.current
        let pem = try minter.key.publicPEM()
        let digits = pem.split(separator: "\n").dropFirst().dropLast()
        let info = Array(try #require(Data(base64Encoded: digits.joined())))
        // RFC 5280: the algorithm of the key takes 24 bytes before its RSAPublicKey (RFC 8017 appendix A.1.1).
        let key = Array(info.dropFirst(24))
        let lines = Data(key).base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
        let short = "-----BEGIN RSA PUBLIC KEY-----\n\(lines)\n-----END RSA PUBLIC KEY-----\n"
        let texts = [
            pem, String(pem.dropLast()), "\n" + pem, pem.replacing("\n", with: "\r\n"), short, String(short.dropLast()),
            minter.jsonWebKey, Base64URL.encode(minter.key.modulus), "",
        ]
        for secret in texts.map({ Array($0.utf8) }) + [info, key, minter.key.modulus] {
            let header = "{\"alg\":\"\(algorithm)\",\"typ\":\"JWT\",\"kid\":\"\(minter.keyID)\"}"
            let input = signingInput(header: header)
            let message = Array(input.utf8)
            let code = try HMACSHA256.authenticationCode(for: message.span, key: secret.span)
            let signature = Base64URL.encode(code.bytes.indices.map { code.bytes[$0] })
            let token = input + "." + signature
            #expect(try rejection(of: token) == .unsupportedAlgorithm(algorithm))
        }
    }

    @Test(
        "CVE-2026-22817, CVE-2026-22818: a key without alg does not let the token choose one",
        arguments: ["HS256", "PS256", "RS512", "RS384"]
    )
    func keyWithoutAlgorithm(algorithm: String) throws {
        let minter = StandInKeys.current
        let text = String(decoding: TokenMinter.jwkSet([minter]), as: UTF8.self)
            .replacing("\"alg\":\"RS256\",", with: "")
        let keys = try JWKSet(parsing: text)
        #expect(keys.keys.count == 1)
        let header = "{\"alg\":\"\(algorithm)\",\"kid\":\"\(minter.keyID)\"}"
        let token = try minter.mint(header: Array(header.utf8), payload: claims().payload)
        #expect(try rejection(of: token, keys: keys) == .unsupportedAlgorithm(algorithm))
        #expect(try rejection(of: minter.mint(claims()), keys: keys) == nil)
    }

    @Test("CVE-2022-21449: signatures of zeros, ones and the modulus' neighbours are refused")
    func trivialSignatures() throws {
        let minter = StandInKeys.current
        let modulus = minter.key.modulus
        var below = modulus
        below[255] &-= 1
        let one = [UInt8](repeating: 0, count: 255) + [1]
        let input = signingInput(header: String(decoding: minter.header, as: UTF8.self))
        for signature in [[UInt8](repeating: 0, count: 256), Array(repeating: 0xFF, count: 256), one, below, modulus] {
            let token = input + "." + Base64URL.encode(signature)
            #expect(try rejection(of: token) == Rejection(.invalidSignature))
        }
    }

    @Test("CVE-2006-4339, CVE-2014-1568: free bytes after short padding do not forge a signature")
    func laxPadding() throws {
        // 00 01 FF 00 DigestInfo digest, then free bytes: a lax parser would accept this.
        let key = try PublicKey(.rsa(modulus: StandInKeys.current.key.modulus, exponent: [1]))
        let digest = try SHA256.digest(of: Array("x".utf8).span)
        let prefix: [UInt8] = [
            0x30, 0x31, 0x30, 0x0D, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05, 0x00, 0x04,
            0x20,
        ]
        let bytes = digest.bytes.indices.map { digest.bytes[$0] }
        for paddingCount in [1, 8, 100, 201] {
            let head = [0x00, 0x01] + [UInt8](repeating: 0xFF, count: paddingCount) + [0x00] + prefix + bytes
            let message = head + [UInt8](repeating: 0, count: 256 - head.count)
            // With exponent 1 the signature is the encoded message itself, so any message can be tried.
            let verdict = key.isValidSignature(message.span, of: digest)
            #expect(!verdict)
        }
    }

    @Test("CVE-2022-39227, GHSA-c8v6-786g-vjx6, CVE-2026-29000: no other serialization is read")
    func otherSerializations() throws {
        let good = try StandInKeys.current.mint(claims())
        let parts = good.split(separator: ".").map(String.init)
        let texts = [
            "{\"protected\":\"\(parts[0])\",\"payload\":\"\(parts[1])\",\"signature\":\"\(parts[2])\"}",
            "{\"\(good)\":1}", "\"\(good)\"", "[\(good)]", good + "." + parts[1] + "." + parts[2], " " + good,
            good + "\n", "Bearer " + good, parts[0] + "..." + parts[1] + parts[2],
        ]
        for text in texts { #expect(try rejection(of: text) != nil) }
    }

    @Test("CVE-2023-29409: a huge key is ignored, and cheaply")
    func hugeKeys() throws {
        for bitCount in [8_200, 16_384, 300_000] {
            let modulus = [UInt8](repeating: 0xC7, count: bitCount / 8)
            let text =
                "{\"keys\":[{\"kty\":\"RSA\",\"kid\":\"k\",\"e\":\"AQAB\",\"n\":\""
                + Base64URL.encode(modulus) + "\"}]}"
            let start = ContinuousClock.now
            let reasons = try JWKSet(parsing: text).ignoredKeys.map(\.reason)
            #expect(reasons == [.modulusTooLong])
            #expect(ContinuousClock.now - start < timeBound(.milliseconds(200)))
        }
    }

    @Test("golang-jwt#502, json-jwt#129: of texts that differ only in unused bits, one is a token")
    func unusedBits() throws {
        let good = try StandInKeys.current.mint(claims())
        let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        let accepted = try digits.filter { try rejection(of: good.dropLast() + String($0)) == nil }
        #expect(accepted.count == 1)
    }
}
