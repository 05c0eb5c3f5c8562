import LLJOSE
import LLService
import LLStandIn
import LLTestSupport
import LimitedLogin
import Testing

/// Changes good tokens in every small way, and expects each changed token to be refused.
@Suite("Mutations of good tokens")
struct TokensMutationTests {
    private static let now: Int64 = 1_700_000_000
    private static let appID = "1234567890123456"
    private static let nonce = "0B6F5C35-92C1-4E5C-9D0C-5B5F7A3C2D11"

    /// One verifier and its buffers, used for many judgements.
    private final class Judge {
        let verifier: TokenVerifier
        let unboundVerifier: TokenVerifier
        let keys = VerificationKeys(StandInKeys.set)
        var workspace = VerificationWorkspace()
        /// The cache of one worker.
        let memory = VerifiedSignatureCache(capacity: 100)
        let now: NumericDate
        /// The expectation of a token; each judgement sets its binding to the nonce or to none.
        var expectation: TokenExpectation
        var triedCount = 0
        var acceptedCount = 0

        init(_ expectation: TokenExpectation = TokenExpectation(binding: .unbound)) throws {
            self.expectation = expectation
            verifier = TokenVerifier(policy: try VerificationPolicy(appIDs: [appID]))
            unboundVerifier = verifier.acceptingUnbound()
            now = try #require(NumericDate(secondsSince1970: TokensMutationTests.now))
        }

        /// The refusal of a token as `/verify` judges it. Judgements with the cache of accepted tokens, as in
        /// `/introspect` with a nonce and in `/auth`, must not differ from those without it.
        func rejection(of token: [UInt8]) -> Rejection? {
            let bound = TokenBinding(nonce: Array(nonce.utf8))
            let rejection = rejection(of: token, bound)
            let unbound = self.rejection(of: token, .unbound)
            for _ in 0..<(rejection == nil || unbound == nil ? 2 : 1) {
                let again = self.rejection(of: token, bound, memory)
                if again != rejection { Issue.record("with tokens remembered \(String(describing: again))") }
                let free = self.rejection(of: token, .unbound, memory)
                if free != unbound { Issue.record("unbound, with tokens remembered \(String(describing: free))") }
            }
            return rejection
        }

        private func rejection(of token: [UInt8], _ binding: TokenBinding, _ memory: VerifiedSignatureCache? = nil)
            -> Rejection?
        {
            expectation.binding = binding
            let verifier = binding.isUnbound ? unboundVerifier : self.verifier
            do throws(Rejection) {
                if let memory {
                    _ = try memory.judge(
                        token.span,
                        expectation,
                        texts: .all,
                        verifier: verifier,
                        keys: keys,
                        now: now,
                        workspace: &workspace
                    )
                } else {
                    _ = try verifier.judge(token.span, expectation, keys: keys, now: now, workspace: &workspace)
                }
                return nil
            } catch {
                return error
            }
        }

        /// Expects the refusal of a changed token; skips an unchanged one.
        func expectRefusal(_ mutant: [UInt8], of original: [UInt8], _ what: @autoclosure () -> String) {
            guard mutant != original else { return }
            triedCount += 1
            if rejection(of: mutant) == nil {
                acceptedCount += 1
                Issue.record("accepted: \(what())")
            }
        }
    }

    /// Tokens of different lengths, so that each part ends at each position of a base64url group.
    private static func makeTokens(_ count: Int) throws -> [[UInt8]] {
        try (0..<count).map { index in
            var claims = MintedClaims(
                audience: appID,
                subject: String(repeating: "7", count: 10 + index),
                nonce: nonce,
                issuedAt: now - 5
            )
            claims.email = "jane@example.com"
            claims.name = "Jané Doe"
            claims.friendIDs = ["1"]
            let minter = index % 2 == 0 ? StandInKeys.current : StandInKeys.previous
            return Array(try minter.mint(claims).utf8)
        }
    }

    /// The number of shares into which a token's offsets are divided; the shares are tested in parallel.
    private static let shareCount = 4

    @Test(
        "A token with a flipped bit or a deleted, doubled, inserted or replaced character is refused",
        arguments: 0..<shareCount
    )
    func smallChanges(share: Int) throws {
        let judge = try Judge()
        // One token is enough under a sanitizer.
        for token in try Self.makeTokens(Sanitizer.isActive ? 1 : 5) {
            #expect(judge.rejection(of: token) == nil)
            for offset in stride(from: share, to: token.count, by: Self.shareCount) {
                for bit in 0..<8 {
                    var mutant = token
                    mutant[offset] ^= 1 << UInt8(bit)
                    judge.expectRefusal(mutant, of: token, "bit \(bit) of byte \(offset)")
                }
                var shorter = token
                shorter.remove(at: offset)
                judge.expectRefusal(shorter, of: token, "without byte \(offset)")
                var doubled = token
                doubled.insert(token[offset], at: offset)
                judge.expectRefusal(doubled, of: token, "byte \(offset) doubled")
                for character in Array("A_=.+ \n\u{0}~9".utf8) {
                    var longer = token
                    longer.insert(character, at: offset)
                    judge.expectRefusal(longer, of: token, "\(character) before byte \(offset)")
                    var replaced = token
                    replaced[offset] = character
                    judge.expectRefusal(replaced, of: token, "\(character) for byte \(offset)")
                }
            }
            for count in stride(from: share, to: token.count, by: Self.shareCount) {
                judge.expectRefusal(Array(token[..<count]), of: token, "prefix of \(count)")
                judge.expectRefusal(Array(token[(token.count - count)...]), of: token, "suffix of \(count)")
            }
        }
        #expect(judge.triedCount >= (Sanitizer.isActive ? 20_000 : 100_000) / Self.shareCount)
        #expect(judge.acceptedCount == 0)
        #expect(OpenSSLError.isQueueEmpty)
        print("mutation: \(judge.triedCount) small changes tried, \(judge.acceptedCount) accepted")
    }

    @Test("No mixture of parts of good tokens is accepted")
    func exchangedParts() throws {
        let judge = try Judge()
        let tokens = try Self.makeTokens(6)
        let parts = tokens.map { token in token.split(separator: UInt8(ascii: ".")).map { Array($0) } }
        let dot = [UInt8(ascii: ".")]
        for header in parts.indices {
            for payload in parts.indices {
                for signature in parts.indices where !(header == payload && payload == signature) {
                    let mutant = parts[header][0] + dot + parts[payload][1] + dot + parts[signature][2]
                    // Tokens of one key have the same header, so a mixture may equal an original.
                    guard !tokens.contains(mutant) else { continue }
                    judge.expectRefusal(mutant, of: [], "parts \(header), \(payload), \(signature)")
                }
            }
        }
        #expect(judge.triedCount > 150 && judge.acceptedCount == 0)
        print("mutation: \(judge.triedCount) mixtures tried, \(judge.acceptedCount) accepted")
    }

    /// The values that each claim is set to, as JSON text.
    private static let values = [
        "null", "true", "false", "0", "-0", "-1", "1.5", "1e19", "1e400", "-1e400", "9007199254740991",
        "9007199254740992", "9007199254740993", "9223372036854775807", "9223372036854775808", "\"\"", "\"0\"", "\" \"",
        "\"\\u0000\"", "\"\\uD800\"", "[]", "[null]", "[\"\"]", "[\"1234567890123456\",\"1234567890123456\"]", "[[]]",
        "{}",
        "{\"a\":1,\"a\":2}", "\"" + String(repeating: "x", count: 4000) + "\"",
        "[" + Array(repeating: "1", count: 1500).joined(separator: ",") + "]",
        "[" + Array(repeating: "0", count: 10_000).joined(separator: ",") + "]",
        String(repeating: "[", count: 17) + String(repeating: "]", count: 17),
    ]

    /// True if a claim may have this value: the value is right, or no check depends on it.
    private static func mayBe(_ claim: String, _ value: String) -> Bool {
        switch claim {
        case "iat": ["0", "-0", "1.5"].contains(value)
        case "exp": ["9007199254740991", "9007199254740992"].contains(value)
        case "sub": ["\"0\"", "\" \"", "\"\\u0000\""].contains(value)
        case "jti": value.hasPrefix("\"") && value != "\"\"" && value != "\"\\uD800\""
        default: false
        }
    }

    @Test("A required claim that is removed or has a wrong value is refused")
    func claims() throws {
        let judge = try Judge()
        let minted = MintedClaims(audience: Self.appID, subject: "7", nonce: Self.nonce, issuedAt: Self.now - 5)
        let members = minted.members
        var goodCount = 0
        for (position, member) in members.enumerated() {
            var removed = members
            removed.remove(at: position)
            let token = Array(try StandInKeys.current.mint(members: removed).utf8)
            judge.expectRefusal(token, of: [], "without \(member.name)")
            for value in Self.values {
                var changed = members
                changed[position].json = value
                let mutant = Array(try StandInKeys.current.mint(members: changed).utf8)
                if Self.mayBe(member.name, value) {
                    #expect(judge.rejection(of: mutant) == nil, "\(member.name) = \(value)")
                    goodCount += 1
                } else {
                    judge.expectRefusal(mutant, of: [], "\(member.name) = \(value.prefix(40))")
                }
                // A repeated claim is refused in both orders, even if one of the values is right.
                for both in [[member, changed[position]], [changed[position], member]] {
                    var twice = members
                    twice.replaceSubrange(position...position, with: both)
                    let token = Array(try StandInKeys.current.mint(members: twice).utf8)
                    judge.expectRefusal(token, of: [], "\(member.name) twice with \(value.prefix(40))")
                }
            }
        }
        #expect(judge.acceptedCount == 0 && goodCount > 5)
        print(
            "mutation: \(judge.triedCount) changed claims tried, \(judge.acceptedCount) accepted, \(goodCount) rightly good"
        )
    }

    private static let thumbprint = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
    /// The example of OpenID Connect Core appendix A.4.
    private static let accessToken = "jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y"
    private static let accessTokenHash = "77QmUPtjPfzWtF2AnpK9RQ"

    @Test("An expected cnf or at_hash must be the one of the device or the access token")
    func deviceAndAccessToken() throws {
        let ofDevice = TokenExpectation(binding: .unbound, keyThumbprint: Self.thumbprint)
        let ofAccessToken = TokenExpectation(binding: .unbound, accessToken: Self.accessToken)
        let expectations = [
            ("cnf", #"{"jkt":"\#(Self.thumbprint)"}"#, ofDevice),
            ("at_hash", #""\#(Self.accessTokenHash)""#, ofAccessToken),
        ]
        var triedCount = 0
        for (name, right, expectation) in expectations {
            let judge = try Judge(expectation)
            let members = MintedClaims(audience: Self.appID, subject: "7", nonce: Self.nonce, issuedAt: Self.now - 5)
                .members
            func token(_ claims: [String]) throws -> [UInt8] {
                Array(try StandInKeys.current.mint(members: members + claims.map { (name, $0) }).utf8)
            }
            let good = try token([right])
            #expect(judge.rejection(of: good) == nil)
            for mutant in Self.mutants(of: right) + Self.values {
                judge.expectRefusal(try token([mutant]), of: good, "\(name) = \(mutant.prefix(80))")
                judge.expectRefusal(try token([right, mutant]), of: good, "\(name) twice, then \(mutant.prefix(80))")
                judge.expectRefusal(try token([mutant, right]), of: good, "\(name) twice, first \(mutant.prefix(80))")
            }
            judge.expectRefusal(try token([]), of: good, "without \(name)")
            #expect(judge.acceptedCount == 0)
            triedCount += judge.triedCount
        }
        #expect(triedCount > 1_500)
        print("mutation: \(triedCount) changes of cnf and at_hash tried, 0 accepted")
    }

    /// The text with one character deleted, doubled or replaced, or with one letter's case changed.
    private static func mutants(of text: String) -> [String] {
        let bytes = Array(text.utf8)
        var mutants: [[UInt8]] = []
        for offset in bytes.indices {
            mutants.append(Array(bytes[..<offset] + bytes[(offset + 1)...]))
            mutants.append(Array(bytes[...offset] + bytes[offset...]))
            for byte in Array("A-_=x".utf8) where byte != bytes[offset] {
                mutants.append(Array(bytes[..<offset] + [byte] + bytes[(offset + 1)...]))
            }
            if bytes[offset] ^ 0x20 != bytes[offset], bytes[offset] > 0x40 {
                mutants.append(Array(bytes[..<offset] + [bytes[offset] ^ 0x20] + bytes[(offset + 1)...]))
            }
        }
        // A mutant that is not JSON is refused too; one that is JSON must not be the right claim in another spelling.
        return mutants.map { String(decoding: $0, as: UTF8.self) }
    }

    @Test("A token with another claim of any kind and size is accepted if it is strict JSON")
    func otherClaims() throws {
        let judge = try Judge()
        let minted = MintedClaims(audience: Self.appID, subject: "7", nonce: Self.nonce, issuedAt: Self.now - 5)
        for value in Self.values {
            let isJSON =
                !value.contains("e400") && !value.contains("D800") && !value.contains("\"a\":2")
                && !value.hasPrefix("[[[[") && value.utf8.count < 5000
            let token = Array(try StandInKeys.current.mint(members: minted.members + [("other", value)]).utf8)
            #expect((judge.rejection(of: token) == nil) == isJSON, "\(value.prefix(40))")
        }
    }
}
