import JOSE
import KeySets
import LimitedLogin
import LoginStores
import OpenSSL
import Sockets
import StandInIssuer
import TestSupport
import Testing

@testable import VerificationService

@Suite("Signatures remembered", .live)
struct SignatureMemoryTests {
    private static let now: Int64 = 1_700_000_000
    private static let stranger = StandInKeys.stranger

    /// A key that bears the published key's ID.
    private static let impostor = TokenMinter(key: stranger.key, keyID: StandInKeys.current.keyID)

    /// One worker: its memory, its buffers, and what is in force.
    private final class Worker {
        let memory: SignatureMemory
        let workspace = VerificationWorkspace()
        var keys = VerificationKeys(StandInKeys.set)
        var policy: VerificationPolicy

        init(capacity: Int = 100) throws {
            memory = SignatureMemory(capacity: capacity)
            policy = try VerificationPolicy(appIDs: [InProcessService.appID], binding: .optional)
        }

        /// Who is told what.
        struct Facts: Equatable {
            var texts: [TokenReading.Text: String] = [:]
            var rest: [String] = []
        }

        /// What an accepted token tells.
        func facts(_ token: String, _ texts: TokenReading.Texts = .all) throws -> Facts {
            let claims = try verdict(token, texts: texts)
            var facts = Facts()
            for text in TokenReading.Text.allCases {
                facts.texts[text] = claims[text].map { String(decoding: workspace.payload[$0], as: UTF8.self) }
            }
            facts.rest = [
                "\(claims.issuedAt) \(claims.expiresAt) \(claims.tracking) \(claims.isBoundToKey)",
                "\(claims.permissions) \(claims.satisfiedPermissions)",
            ]
            return facts
        }

        /// The refusal's code; nil where the token is accepted.
        func refusal(_ token: String, app: String = "", at now: Int64 = SignatureMemoryTests.now) throws -> Refusal? {
            do throws(Refusal) {
                _ = try verdict(token, app: app, at: now)
                return nil
            } catch {
                return error
            }
        }

        private func verdict(
            _ token: String,
            app: String = "",
            at now: Int64 = SignatureMemoryTests.now,
            texts: TokenReading.Texts = .all
        ) throws(Refusal) -> VerifiedClaims {
            let (bytes, appID, none) = (Array(token.utf8), Array(app.utf8), [UInt8]())
            return try memory.judge(
                bytes.span,
                binding: .unbound,
                value: none.span,
                appID: appID.span,
                telling: texts,
                verifier: TokenVerifier(policy: policy),
                keys: keys,
                now: NumericDate(secondsSince1970: now) ?? .beginning,
                workspace: workspace
            )
        }
    }

    private static func token(_ minter: TokenMinter = StandInKeys.current) throws -> String {
        try minter.mint(Tokens.claims(issuedAt: now - 5))
    }

    /// Tokens with few claims and with all, plain and spelt with escapes, at each end of a base64url word, and some that are
    /// read each time.
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

    @Test("A good token is remembered once, and stays good")
    func again() throws {
        let worker = try Worker()
        let token = try Self.token()
        for _ in 0..<3 {
            #expect(try worker.refusal(token) == nil)
            #expect(worker.memory.count == 1)
        }
    }

    @Test("A remembered signature saves no token from its expiry, its age, another app or another policy")
    func judgedAnew() throws {
        let worker = try Worker()
        let token = try Self.token()
        #expect(try worker.refusal(token) == nil)
        #expect(try worker.refusal(token, at: Self.now + 10_000)?.code == .expired)
        #expect(try worker.refusal(token, at: Self.now - 10_000)?.code == .notYetValid)
        #expect(try worker.refusal(token, app: "42")?.code == .unknownApp)
        worker.policy = try VerificationPolicy(appIDs: ["42"], binding: .optional)
        #expect(try worker.refusal(token)?.code == .invalidAudience)
        worker.policy = try VerificationPolicy(
            appIDs: [InProcessService.appID],
            issuers: ["https://other.example"],
            binding: .optional
        )
        #expect(try worker.refusal(token)?.code == .invalidIssuer)
        worker.policy = try VerificationPolicy(
            appIDs: [InProcessService.appID],
            maximumTokenAgeSeconds: 1,
            binding: .optional
        )
        #expect(try worker.refusal(token, at: Self.now + 300)?.code == .tooOld)
        worker.policy = try VerificationPolicy(appIDs: [InProcessService.appID])
        #expect(try worker.refusal(token) == .bindingRequired)
    }

    @Test("Nor does it save a token from its nbf, or one of tracked login from a policy that wants Limited Login alone")
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

    @Test("Each moment has the same verdict for a remembered token as for a new one")
    func everyMoment() throws {
        let (worker, fresh) = (try Worker(), try Worker(capacity: 0))
        let token = try Self.token()
        for age in [nil, 1, 300] as [Int?] {
            for judge in [worker, fresh] {
                judge.policy = try VerificationPolicy(
                    appIDs: [InProcessService.appID],
                    maximumTokenAgeSeconds: age,
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

    @Test("What was read off a token tells what the token does, whichever of its claims are asked for")
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
            for text in TokenReading.Text.allCases {
                var asked = TokenReading.Texts()
                asked.insert(text)
                let some = try worker.facts(token, asked)
                #expect(some.texts[text] == first.texts[text])
                #expect(some.texts[.subject] == first.texts[.subject])
            }
        }
        #expect(worker.memory.count == (try Self.kinds().count))
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
        #expect(worker.memory.count == 1, "what the keys before had signed is forgotten")
        // The key is back, and its token good again. The impostor's is not.
        worker.keys = VerificationKeys(StandInKeys.set)
        #expect(try worker.refusal(token) == nil)
        for _ in 0..<2 { #expect(try worker.refusal(try Self.token(Self.impostor))?.code == .invalidSignature) }
        // The same key under another ID is another token; its signature is its own.
        let renamed = TokenMinter(key: StandInKeys.current.key, keyID: "renamed")
        worker.keys = VerificationKeys(StandInKeys.makeSet([renamed]))
        #expect(try worker.refusal(token)?.code == .unknownKey)
    }

    @Test("No failure is remembered, and no signature of a token that was refused for something else")
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
        #expect(worker.memory.count == 0)
        #expect(worker.memory.allocatedBytes == 0)
        // A refused one before or after a good one does not take its place.
        #expect(try worker.refusal(good) == nil)
        #expect(try worker.refusal(mixed)?.code == .invalidSignature)
        #expect(worker.memory.count == 1)
    }

    @Test("With a capacity of zero nothing is remembered, and every verdict is the same")
    func none() throws {
        let worker = try Worker(capacity: 0)
        for _ in 0..<2 {
            #expect(try worker.refusal(try Self.token()) == nil)
            #expect(try worker.refusal(try Self.token(Self.impostor))?.code == .invalidSignature)
        }
        #expect(worker.memory.count == 0)
        #expect(worker.memory.allocatedBytes == 0)
    }

    @Test("Beyond its capacity the one used longest ago is verified anew, and is good")
    func full() throws {
        let worker = try Worker(capacity: 3)
        let tokens = try (0..<5).map { number in
            try StandInKeys.current.mint(Tokens.claims(nonce: "n-\(number)", issuedAt: Self.now - 5))
        }
        for token in tokens + tokens { #expect(try worker.refusal(token) == nil) }
        #expect(worker.memory.count == 3)
    }
}

/// The same through the whole service: one handler is one worker.
@Suite("Signatures remembered at /auth and /introspect", .live)
struct SignatureMemoryRouteTests {
    private static let key = "X-Api-Key: secret"
    private static let form = "Content-Type: application/x-www-form-urlencoded"

    private static func service(
        minters: [TokenMinter] = [StandInKeys.current],
        gateway: GatewaySettings = GatewaySettings()
    ) async throws -> InProcessService {
        let keys = try ClientKeys(parsing: Array("backend \(ClientKeysTests.secret)".utf8), place: "clients")
        return try await InProcessService(minters: minters, clients: keys, gateway: gateway)
    }

    private static func lookups(_ service: InProcessService) -> [Int] {
        ["hit", "miss"].map { result in
            let prefix = "limited_login_signature_cache_lookups_total{result=\"\(result)\"} "
            let line = service.registry.render().split(separator: "\n").first { $0.hasPrefix(prefix) }
            return line.flatMap { Int($0.dropFirst(prefix.count)) } ?? -1
        }
    }

    private static func auth(_ service: InProcessService, _ token: String, _ query: String = "") throws -> TestResponse
    {
        try service.answer("GET", "/auth\(query)", fields: ["Authorization: Bearer \(token)"])
    }

    @Test("Both routes share what they remember, and count it; /verify takes no part")
    func counted() async throws {
        let service = try await Self.service()
        let token = try Tokens.mint(Tokens.claims())
        #expect(Self.lookups(service) == [0, 0])
        for _ in 0..<2 {
            let answer = try service.answer(
                fields: ["Content-Type: application/json", Self.key],
                body: "{\"id_token\":\"\(token)\",\"nonce\":\"n-1\"}"
            )
            #expect(answer.status == 200)
        }
        #expect(Self.lookups(service) == [0, 0])
        #expect(try Self.auth(service, token).status == 200)
        #expect(Self.lookups(service) == [0, 1])
        #expect(try Self.auth(service, token).status == 200)
        #expect(Self.lookups(service) == [1, 1])
        let introspected = try service.answer(
            "POST",
            "/introspect",
            fields: [Self.form, Self.key],
            body: "token=\(token)"
        )
        #expect(introspected.text.hasPrefix("{\"active\":true"))
        #expect(Self.lookups(service) == [2, 1])
    }

    @Test("Demand, app and settings of each request hold for a remembered token too")
    func judgedAnew() async throws {
        let service = try await Self.service()
        let token = try Tokens.mint(Tokens.claims())
        #expect(try Self.auth(service, token).status == 200)
        #expect(try Self.auth(service, token, "?permissions=email").status == 403)
        #expect(try Self.auth(service, token, "?app_id=42").code == "invalid_audience")
        #expect(try Self.auth(service, String(token.dropLast())).status == 401)
        #expect(try Self.auth(service, token).status == 200)
        service.core.settings.publish(
            RuntimeSettings(
                verifier: TokenVerifier(policy: try VerificationPolicy(appIDs: ["42"])),
                clients: nil,
                gateway: GatewaySettings()
            )
        )
        #expect(try Self.auth(service, token).code == "invalid_audience")
        let hits = Self.lookups(service)[0]
        #expect(hits == 4)
    }

    @Test("The answers about a remembered token are those about a new one, with every claim and with few")
    func sameAnswers() async throws {
        let all = AuthField.Claim.allCases.enumerated().map { "X-\($0)=\($1.rawValue)" }
        var claims = Tokens.claims()
        claims.name = "Анна Zoë"
        (claims.email, claims.picture, claims.givenName) = ("anna@example.com", "https://example.com/%20?a=1", "Анна")
        claims.confirmationThumbprint = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
        for token in [try Tokens.mint(Tokens.claims()), try Tokens.mint(claims)] {
            for list in [all, ["X-Name=name"], ["X-Exp=exp"]] {
                let fields = try list.map { try AuthField($0) }
                let service = try await Self.service(gateway: GatewaySettings(fields: fields))
                let answers = try (0..<3).map { _ in try Self.auth(service, token) }
                for answer in answers {
                    #expect(answer.status == 200)
                    for field in fields {
                        #expect(answer[field.name.lowercased()] == answers[0][field.name.lowercased()])
                    }
                }
                let texts = try (0..<3).map { _ in
                    try service.answer("POST", "/introspect", fields: [Self.form, Self.key], body: "token=\(token)")
                        .text
                }
                #expect(texts[0].hasPrefix("{\"active\":true") && Set(texts).count == 1)
                let unseen = try await Self.service()
                let first = try unseen.answer(
                    "POST",
                    "/introspect",
                    fields: [Self.form, Self.key],
                    body: "token=\(token)"
                )
                #expect(texts[0] == first.text)
            }
        }
    }

    @Test("A remembered token of a login that was revoked since is refused")
    func revoked() async throws {
        let service = try await Self.service()
        let token = try Tokens.mint(Tokens.claims(issuedAt: WallClock.unixSeconds() - 5))
        for _ in 0..<2 { #expect(try Self.auth(service, token).status == 200) }
        let (app, user) = (Array(InProcessService.appID.utf8), Array("2954873201847263".utf8))
        service.core.revocations.revoke(app: app.span, user: user.span, at: WallClock.unixSeconds()) { _ in }
        for _ in 0..<2 { #expect(try Self.auth(service, token).code == "login_revoked") }
        #expect(Self.lookups(service) == [3, 1])
    }

    @Test("A published set without the key, or with another under its ID, ends a remembered token at once")
    func otherKeys() async throws {
        let impostor = TokenMinter(key: StandInKeys.stranger.key, keyID: StandInKeys.current.keyID)
        let service = try await Self.service(minters: [StandInKeys.current, StandInKeys.previous])
        let token = try Tokens.mint(Tokens.claims())
        for _ in 0..<2 { #expect(try Self.auth(service, token).status == 200) }
        service.source.publish([impostor, StandInKeys.previous])
        _ = await service.cache.refresh()
        for _ in 0..<2 { #expect(try Self.auth(service, token).code == "invalid_signature") }
        service.source.publish([StandInKeys.current, StandInKeys.previous])
        _ = await service.cache.refresh()
        #expect(try Self.auth(service, token).status == 200)
    }
}
