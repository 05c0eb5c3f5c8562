import LLHTTP
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

        /// Verifies a token and returns its facts.
        func facts(_ token: String) throws -> [String?] {
            let claims = try verdict(token)
            let texts = ClaimName.allCases.filter { !ClaimSet($0).isEmpty }.map { name in
                claims[name].map { String(decoding: workspace.payload[$0], as: UTF8.self) }
            }
            let times = "\(claims.issuedAt) \(claims.expiresAt)"
            let rest = "\(claims.isLimited) \(claims.isBoundToKey) \(claims.permissions) \(claims.satisfiedPermissions)"
            return texts + [times, rest]
        }

        /// The refusal's code; nil if the token is accepted.
        func refusal(_ token: String, app: String? = nil, at now: Int64 = VerifiedSignatureCacheTests.now) throws
            -> Rejection?
        {
            do throws(Rejection) {
                _ = try verdict(token, app: app, at: now)
                return nil
            } catch { return error }
        }

        private func verdict(_ token: String, app: String? = nil, at now: Int64 = VerifiedSignatureCacheTests.now)
            throws(Rejection) -> VerifiedClaims
        {
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
        RefreshRouteTests.bind(&claims)
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

    @Test("A remembered token gets the same verdict as a new one, under every policy and at every moment")
    func judgedAnew() throws {
        let app = InProcessService.appID
        let policies = try [
            VerificationPolicy(appIDs: [app], binding: .optional), VerificationPolicy(appIDs: [app]),
            VerificationPolicy(appIDs: [app], maximumTokenAge: .seconds(1), binding: .optional),
            VerificationPolicy(appIDs: [app], maximumTokenAge: .seconds(300), binding: .optional),
            VerificationPolicy(appIDs: [app], binding: .optional, tracking: .limited),
            VerificationPolicy(appIDs: [app], issuers: ["https://other.example"], binding: .optional),
            VerificationPolicy(appIDs: ["42"], binding: .optional),
        ]
        let members = Tokens.claims(issuedAt: Self.now - 5).members
        var tracked = Tokens.claims(issuedAt: Self.now - 5)
        tracked.accessTokenHash = "77QmUPtjPfzWtF2AnpK9RQ"
        let later = try StandInKeys.current.mint(members: members + [("nbf", "\(Self.now + 50)")])
        let (worker, fresh) = (try Worker(), try Worker(capacity: 0))
        let moments: [Int64] = [-10_000, -66, -65, -64, -20, 0, 55, 56, 57, 354, 355, 356, 357, 3_654, 3_655, 3_656]
        var codes: Set<String> = []
        for token in [try Self.token(), later, try StandInKeys.current.mint(tracked)] {
            worker.policy = policies[0]
            #expect(try worker.refusal(token) == nil)
            for policy in policies {
                (worker.policy, fresh.policy) = (policy, policy)
                for (moment, app) in moments.map({ ($0, nil) }) + [(0, "42")] as [(Int64, String?)] {
                    let refusal = try worker.refusal(token, app: app, at: Self.now + moment)
                    #expect(refusal == (try fresh.refusal(token, app: app, at: Self.now + moment)), "\(moment)")
                    codes.insert(refusal?.code.rawValue ?? "accepted")
                }
            }
        }
        #expect(worker.memory.tokens.count == 3)
        #expect(
            codes == [
                "accepted", "not_yet_valid", "expired", "too_old", "tracking_not_allowed", "invalid_issuer",
                "invalid_audience", "unknown_app", "invalid_request",
            ]
        )
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
        ] { for _ in 0..<2 { #expect(try worker.refusal(token) != nil) } }
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

/// The tests of VerifiedSignatureCacheTests through the whole service. One handler is one worker.
@Suite("Remembered signatures at /auth and /introspect", .live)
struct VerifiedSignatureCacheRouteTests {
    private static func lookups(_ service: InProcessService) -> [Int] {
        ["hit", "miss"].map { result in
            let prefix = "limited_login_signature_cache_lookups_total{result=\"\(result)\"} "
            let line = service.registry.render().split(separator: "\n").first { $0.hasPrefix(prefix) }
            return line.flatMap { Int($0.dropFirst(prefix.count)) } ?? -1
        }
    }

    @Test("/auth and /introspect share the remembered signatures and count the lookups; /verify does not use them")
    func counted() async throws {
        let service = try await InProcessService(clients: ClientKeysTests.backend(), gatewayIsEnabled: true)
        let token = try Tokens.mint(Tokens.claims())
        let body = "{\"id_token\":\"\(token)\",\"nonce\":\"n-1\"}"
        for _ in 0..<2 {
            let fields = ["Content-Type: application/json", "X-Api-Key: secret"]
            #expect(try service.answer(fields: fields, body: body).status == 200)
        }
        #expect(Self.lookups(service) == [0, 0])
        for hits in 0..<2 {
            #expect(try service.answer("GET", "/auth", fields: ["Authorization: Bearer \(token)"]).status == 200)
            #expect(Self.lookups(service) == [hits, 1])
        }
        #expect(try service.introspect("token=\(token)").text.hasPrefix("{\"active\":true"))
        #expect(Self.lookups(service) == [2, 1])
        // What the caller says about the login is compared each time.
        for (more, isActive) in [
            ("nonce=other", false), ("raw_nonce=n-1", false), ("subject=1", false), ("app_id=42", false),
            ("nonce=n-1", true), ("subject=2954873201847263", true),
        ] {
            let text = try service.introspect("token=\(token)&\(more)").text
            #expect(text.hasPrefix("{\"active\":\(isActive)"), "\(more): \(text)")
        }
    }
}

@Suite("The table of recent digests")
struct RecentDigestsTests {
    /// Digests with random words: clients cannot choose them.
    private static func digest(_ number: Int) throws -> SHA256Digest {
        let bytes = Array("\(number)".utf8)
        return try SHA256.digest(of: bytes.span)
    }

    /// Uses a digest as the callers of the table do; returns whether it was kept.
    private static func use(_ digest: SHA256Digest, _ table: inout RecentDigests) -> Bool {
        let isKept = table.find(digest) != nil
        table.use(digest, nil)
        return isKept
    }

    @Test("The digests used last are kept, and never more than the capacity", arguments: [0, 1, 2, 3, 63, 64, 65, 200])
    func model(capacity: Int) throws {
        var table = RecentDigests(capacity: capacity)
        var used: [Int] = []
        var random = SystemRandomNumberGenerator()
        let digests = try (0..<300).map(Self.digest)
        for step in 0..<6_000 {
            // Two thirds of the lookups choose among few digests, the others among all.
            let number = Int.random(in: 0..<(step % 3 == 0 ? 300 : max(1, min(300, capacity + 2))), using: &random)
            // The position among the digests in the order of their last use, the latest first.
            let age = used.firstIndex(of: number)
            let isKept = Self.use(digests[number], &table)
            if let age, age < capacity / 2 { #expect(isKept, "step \(step)") }
            if age ?? .max >= capacity { #expect(!isKept, "step \(step)") }
            if let age { used.remove(at: age) }
            used.insert(number, at: 0)
            #expect(table.count <= capacity)
        }
    }
}
