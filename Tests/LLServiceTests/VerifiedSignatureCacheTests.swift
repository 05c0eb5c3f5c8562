import LLStandIn
import LLTestSupport
import LimitedLogin
import Testing

@testable import LLService

@Suite("Remembered signatures", .live)
struct VerifiedSignatureCacheTests {
    private static let now: Int64 = 1_700_000_000
    private static let stranger = StandInKeys.stranger

    /// Another key with the published key's ID.
    private static let impostor = TokenMinter(key: stranger.key, keyID: StandInKeys.current.keyID)

    /// One worker: its cache, its buffers, and the current keys and policy.
    private final class Worker {
        let memory: VerifiedSignatureCache
        var workspace = VerificationWorkspace()
        var keys = VerificationKeys(StandInKeys.set)
        var policy: VerificationPolicy

        init(capacity: Int = 100) throws {
            memory = VerifiedSignatureCache(capacity: capacity)
            policy = try VerificationPolicy(appIDs: [InProcessService.appID], binding: .optional)
        }

        /// The verified facts of a token.
        struct Facts: Equatable {
            var texts: [ClaimName: String] = [:]
            var rest: [String] = []
        }

        /// Verifies a token and returns its facts.
        func facts(_ token: String) throws -> Facts {
            let claims = try verdict(token)
            var facts = Facts()
            for text in ClaimName.allCases where !ClaimSet(text).isEmpty {
                facts.texts[text] = claims[text].map { String(decoding: workspace.payload[$0], as: UTF8.self) }
            }
            facts.rest = [
                "\(claims.issuedAt) \(claims.expiresAt) \(claims.isLimited) \(claims.isBoundToKey)",
                "\(claims.permissions) \(claims.satisfiedPermissions)",
            ]
            return facts
        }

        /// The refusal's code; nil if the token is accepted.
        func refusal(_ token: String, app: String? = nil, at now: Int64 = VerifiedSignatureCacheTests.now) throws
            -> Rejection?
        {
            do throws(Rejection) {
                _ = try verdict(token, app: app, at: now)
                return nil
            } catch {
                return error
            }
        }

        private func verdict(
            _ token: String,
            app: String? = nil,
            at now: Int64 = VerifiedSignatureCacheTests.now
        ) throws(Rejection) -> VerifiedClaims {
            let bytes = Array(token.utf8)
            return try memory.judge(
                bytes.span,
                TokenExpectation(binding: .unbound, appID: app),
                texts: .all,
                verifier: TokenVerifier(policy: policy),
                keys: keys,
                now: NumericDate(secondsSince1970: now) ?? .beginning,
                workspace: &workspace
            )
        }
    }

    private static func token(_ minter: TokenMinter = StandInKeys.current) throws -> String {
        try minter.mint(Tokens.claims(issuedAt: now - 5))
    }

    /// Tokens with few claims and with all, with and without escapes, at each end of a base64url word. Some of them
    /// must be parsed each time.
    private static func kinds() throws -> [String] {
        var claims = Tokens.claims(issuedAt: now - 5)
        var tokens = [try StandInKeys.current.mint(claims)]
        claims.name = "Анна \"Zoë\" 😀"
        claims.givenName = String(repeating: "ж", count: 150)
        (claims.middleName, claims.familyName, claims.nonce) = ("M", "%\\", "")
        claims.picture = "https://example.com/?" + String(repeating: "p", count: 600)
        claims.confirmationThumbprint = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
        claims.accessTokenHash = "77QmUPtjPfzWtF2AnpK9RQ"
        (claims.gender, claims.birthday, claims.friendIDs) = ("female", "01/02/1990", ["1"])
        for length in 0..<4 {
            claims.email = String(repeating: "e", count: 10 + length) + "@example.com"
            tokens.append(try StandInKeys.current.mint(claims))
        }
        claims.issuer = "https://a.example/x"
        tokens.append(try StandInKeys.current.mint(claims))
        claims.picture = String(repeating: "p", count: 2_047)
        tokens.append(try StandInKeys.current.mint(claims))
        let members = Tokens.claims(issuedAt: now - 5).members
        for added in [("nbf", "\(now)"), ("cnf", "null")] {
            tokens.append(try StandInKeys.current.mint(members: members + [added]))
        }
        return tokens
    }

    @Test("A remembered token is still refused for another app or another policy")
    func judgedAnew() throws {
        let worker = try Worker()
        let token = try Self.token()
        #expect(try worker.refusal(token) == nil)
        #expect(try worker.refusal(token, app: "42") == Rejection(.unknownApp))
        worker.policy = try VerificationPolicy(appIDs: ["42"], binding: .optional)
        #expect(try worker.refusal(token)?.code == .invalidAudience)
        worker.policy = try VerificationPolicy(
            appIDs: [InProcessService.appID],
            issuers: ["https://other.example"],
            binding: .optional
        )
        #expect(try worker.refusal(token)?.code == .invalidIssuer)
        worker.policy = try VerificationPolicy(appIDs: [InProcessService.appID])
        #expect(try worker.refusal(token) == .bindingRequired)
    }

    @Test("A remembered token is still refused for its nbf, or for tracking if the policy wants Limited Login alone")
    func judgedAnewForMore() throws {
        let worker = try Worker()
        let members = Tokens.claims(issuedAt: Self.now - 5).members
        let later = try StandInKeys.current.mint(members: members + [("nbf", "\(Self.now + 50)")])
        var tracked = Tokens.claims(issuedAt: Self.now - 5)
        tracked.accessTokenHash = "77QmUPtjPfzWtF2AnpK9RQ"
        let classic = try StandInKeys.current.mint(tracked)
        for token in [later, classic] { for _ in 0..<2 { #expect(try worker.refusal(token) == nil) } }
        for _ in 0..<2 { #expect(try worker.refusal(later, at: Self.now - 20)?.code == .notYetValid) }
        worker.policy = try VerificationPolicy(appIDs: [InProcessService.appID], binding: .optional, tracking: .limited)
        for _ in 0..<2 { #expect(try worker.refusal(classic)?.code == .trackingNotAllowed) }
        #expect(try worker.refusal(try Self.token()) == nil)
    }

    @Test("A remembered token gets the same verdict as a new one at every moment")
    func everyMoment() throws {
        let (worker, fresh) = (try Worker(), try Worker(capacity: 0))
        let token = try Self.token()
        for age in [nil, 1, 300] as [Int?] {
            for judge in [worker, fresh] {
                judge.policy = try VerificationPolicy(
                    appIDs: [InProcessService.appID],
                    maximumTokenAge: age.map { .seconds($0) },
                    binding: .optional
                )
            }
            #expect(try worker.refusal(token) == nil)
            for moment in [-66, -65, -64, 0, 55, 56, 57, 354, 355, 356, 357, 3_654, 3_655, 3_656] as [Int64] {
                let now = Self.now + moment
                #expect(try worker.refusal(token, at: now) == (try fresh.refusal(token, at: now)), "\(moment)")
            }
        }
    }

    @Test("Remembered claims equal those of the token")
    func told() throws {
        let worker = try Worker()
        worker.policy = try VerificationPolicy(
            appIDs: [InProcessService.appID],
            issuers: ["https://a.example/x", "https://www.facebook.com"],
            binding: .optional
        )
        for token in try Self.kinds() {
            let first = try worker.facts(token)
            for _ in 0..<2 { #expect(try worker.facts(token) == first) }
        }
        #expect(worker.memory.tokens.count == (try Self.kinds().count))
    }

    @Test("A key that left the set, or was replaced under the same ID, verifies nothing any more")
    func otherKeys() throws {
        let worker = try Worker()
        let token = try Self.token()
        #expect(try worker.refusal(token) == nil)
        worker.keys = VerificationKeys(StandInKeys.makeSet([StandInKeys.previous]))
        #expect(try worker.refusal(token)?.code == .unknownKey)
        worker.keys = VerificationKeys(StandInKeys.makeSet([Self.impostor]))
        for _ in 0..<2 { #expect(try worker.refusal(token)?.code == .invalidSignature) }
        #expect(try worker.refusal(try Self.token(Self.impostor)) == nil)
        #expect(worker.memory.tokens.count == 1, "signatures of the earlier keys are forgotten")
        // The key is back, and its token is good again; the impostor's token is not.
        worker.keys = VerificationKeys(StandInKeys.set)
        #expect(try worker.refusal(token) == nil)
        for _ in 0..<2 { #expect(try worker.refusal(try Self.token(Self.impostor))?.code == .invalidSignature) }
        // The same key under another ID does not verify the remembered token.
        let renamed = TokenMinter(key: StandInKeys.current.key, keyID: "renamed")
        worker.keys = VerificationKeys(StandInKeys.makeSet([renamed]))
        #expect(try worker.refusal(token)?.code == .unknownKey)
    }

    @Test("Failures are not remembered, nor signatures of tokens that were refused for another reason")
    func onlyAccepted() throws {
        let worker = try Worker()
        let good = try Self.token()
        let parts = good.split(separator: ".").map(String.init)
        let other = try StandInKeys.current.mint(Tokens.claims(nonce: "n-2", issuedAt: Self.now - 5))
        let mixed = parts[0] + "." + parts[1] + "." + String(other.split(separator: ".")[2])
        for token in [
            mixed, try Self.token(Self.impostor), try Self.token(Self.stranger), parts[0] + "..", "a.b.c", "",
        ] {
            for _ in 0..<2 { #expect(try worker.refusal(token) != nil) }
        }
        #expect(try worker.refusal(good, at: Self.now + 10_000)?.code == .expired)
        let foreign = try StandInKeys.current.mint(Tokens.claims(audience: "987", issuedAt: Self.now - 5))
        #expect(try worker.refusal(foreign)?.code == .invalidAudience)
        #expect(worker.memory.tokens.count == 0)
        // A refused token before or after a good one does not take its place.
        #expect(try worker.refusal(good) == nil)
        #expect(try worker.refusal(mixed)?.code == .invalidSignature)
        #expect(worker.memory.tokens.count == 1)
    }
}
