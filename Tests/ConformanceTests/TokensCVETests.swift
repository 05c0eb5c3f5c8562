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

    /// A verifier that judges one token after another in the same workspace.
    private struct Judge {
        private let verifier: TokenVerifier
        private let expectation: TokenExpectation
        private let date: NumericDate

        init() throws {
            let nonce = try #require(Nonce("n"))
            verifier = TokenVerifier(policy: try VerificationPolicy(appIDs: [appID]))
            expectation = TokenExpectation(binding: .nonce(nonce))
            date = try #require(NumericDate(secondsSince1970: now))
        }

        /// Every verdict has the same buffers: those that the last one gave back.
        func verify(_ token: String, _ keys: JWKSet) throws(Rejection) -> VerifiedToken {
            try Rejection.judging { try verifier.verify(token, expecting: expectation, keys: keys, now: date) }
        }
    }

    private func rejection(of token: String, keys: JWKSet = StandInKeys.set) throws -> Rejection? {
        let judge = try Judge()
        do throws(Rejection) {
            _ = try judge.verify(token, keys)
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
        let pem = DER.pem(DER.publicKeyInfo(minter.key), "PUBLIC KEY")
        let short = DER.pem(DER.publicKey(minter.key), "RSA PUBLIC KEY")
        var secrets: [[UInt8]] = [
            pem, pem.dropLast(), [0x0A] + pem, short, short.dropLast(), DER.publicKeyInfo(minter.key),
            DER.publicKey(minter.key), Array(minter.jsonWebKey.utf8), minter.key.modulus,
            Array(Base64URL.encode(minter.key.modulus).utf8), [],
        ].map { Array($0) }
        secrets.append(Array(String(decoding: pem, as: UTF8.self).replacing("\n", with: "\r\n").utf8))
        for secret in secrets {
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

    @Test("A key for RS512 does not verify RS256")
    func downgrade() throws {
        let text = String(decoding: TokenMinter.jwkSet([StandInKeys.current]), as: UTF8.self)
            .replacing("RS256", with: "RS512")
        #expect(
            try rejection(of: StandInKeys.current.mint(claims()), keys: JWKSet(parsing: text))
                == .keysUnavailable
        )
    }

    @Test("CVE-2018-0114: a key in the header is not trusted")
    func embeddedKey() throws {
        let stranger = StandInKeys.stranger
        for keyID in [stranger.keyID, StandInKeys.current.keyID] {
            let header = "{\"alg\":\"RS256\",\"jwk\":\(stranger.jsonWebKey),\"kid\":\"\(keyID)\"}"
            #expect(try rejection(of: stranger.mint(header: Array(header.utf8), payload: claims().payload)) != nil)
        }
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
            good + "\n",
            "Bearer " + good, parts[0] + "..." + parts[1] + parts[2],
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

    @Test("A key removed from the set verifies nothing, even in the same workspace")
    func removedKey() throws {
        let judge = try Judge()
        let token = try StandInKeys.previous.mint(claims())
        let after = StandInKeys.makeSet([StandInKeys.current])
        _ = try judge.verify(token, StandInKeys.set)
        #expect(throws: Rejection.unknownKey(StandInKeys.previous.keyID.utf8)) {
            try judge.verify(token, after)
        }
    }

    @Test("lua-resty-openidc#399: the same token is judged again for another app and another nonce")
    func noMemory() throws {
        let token = try StandInKeys.current.mint(claims())
        #expect(try rejection(of: token) == nil)
        let other = TokenVerifier(policy: try VerificationPolicy(appIDs: ["9"]))
        let date = try #require(NumericDate(secondsSince1970: Self.now))
        let right = try #require(Nonce("n"))
        let wrong = try #require(Nonce("m"))
        #expect(throws: Rejection.self) {
            try other.verify(
                token,
                expecting: TokenExpectation(binding: .nonce(right)),
                keys: StandInKeys.set,
                now: date
            )
        }
        let same = TokenVerifier(policy: try VerificationPolicy(appIDs: [Self.appID]))
        #expect(throws: Rejection.differentNonce) {
            try same.verify(
                token,
                expecting: TokenExpectation(binding: .nonce(wrong)),
                keys: StandInKeys.set,
                now: date
            )
        }
    }

    @Test("fast-jwt GHSA-rp9m-7r4c-75qg: judged in one workspace, each token yields its own claims")
    func ownClaims() throws {
        let judge = try Judge()
        for index in 0..<300 {
            var minted = claims()
            minted.subject = String(repeating: "8", count: 1 + index % 50) + String(index)
            minted.name = index % 3 == 0 ? nil : "N\(index)"
            let minter = index % 2 == 0 ? StandInKeys.current : StandInKeys.previous
            let token = try judge.verify(minter.mint(minted), StandInKeys.set)
            #expect(token.profile.userID == minted.subject && token.profile.name == minted.name)
            #expect(token.authenticationToken.keyID == minter.keyID)
        }
    }

    @Test("HAProxy#2643: a refused signature leaves OpenSSL's error queue empty")
    func errorQueue() throws {
        let good = try StandInKeys.current.mint(claims())
        for position in 1...40 {
            var bytes = Array(good.utf8)
            bytes[bytes.count - 3 * position] = bytes[bytes.count - 3 * position] == 65 ? 66 : 65
            #expect(try rejection(of: String(decoding: bytes, as: UTF8.self)) != nil)
            #expect(OpenSSLError.isQueueEmpty)
        }
    }
}
