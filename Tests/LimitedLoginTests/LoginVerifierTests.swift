import LLJOSE
import LLStandIn
import LLTestSupport
import Synchronization
import Testing

@testable import LimitedLogin

@Suite("The login verifier, with keys from a provider")
struct LoginVerifierTests {
    private static let appID = "123456789012345"
    private static let now: Int64 = 1_700_000_000

    private static func verifier(
        _ keys: any JWKSetProvider,
        clock: @escaping @Sendable () -> Double = { 1_700_000_000 }
    ) throws -> LoginVerifier {
        LoginVerifier(policy: try VerificationPolicy(appIDs: [appID, "42"]), keys: keys, clock: clock)
    }

    private static func token(
        nonce: String = "n-1",
        audience: String = appID,
        by minter: TokenMinter = StandInKeys.current
    ) throws -> String {
        try minter.mint(MintedClaims(audience: audience, subject: "1234", nonce: nonce, issuedAt: now))
    }

    /// Gives the test's key set, and keeps the key IDs that it was asked for.
    private final class Provider: JWKSetProvider {
        struct Down: Error {}
        let asked = Mutex<[String]>([])
        let set: JWKSet?

        init(_ set: JWKSet?) { self.set = set }

        func keySet(containing keyID: String) async throws(Down) -> JWKSet {
            asked.withLock { $0.append(keyID) }
            guard let set else { throw Down() }
            return set
        }
    }

    /// The reason for refusing a token; nil if it is accepted.
    private func refusal(_ verdict: () async throws -> VerifiedToken) async -> Rejection? {
        do {
            _ = try await verdict()
            return nil
        } catch {
            return .of(error)
        }
    }

    @Test("A key that OpenSSL cannot prepare is an outage, and the next token prepares it again")
    func unpreparedKey() throws {
        let session = VerificationSession()
        func verdict(_ keys: VerificationKeys) throws -> Rejection? {
            let token = Array(try Self.token().utf8)
            let policy = try VerificationPolicy(appIDs: [Self.appID])
            return Login.rejection {
                try TokenVerifier(policy: policy).judge(
                    token.span,
                    TokenExpectation(TokenBinding(nonce: Array("n-1".utf8))),
                    keys: keys,
                    now: Login.date(Self.now),
                    workspace: &session.workspace
                )
            }
        }
        let unprepared = withoutKeyPreparation { session.keys(of: StandInKeys.set) }
        #expect(try verdict(unprepared) == .cryptographyFailed)
        #expect(try verdict(session.keys(of: StandInKeys.set)) == nil)
    }

    @Test("A login is verified by its nonce, its raw nonce or its subject, and each asks once, for the token's key ID")
    func accepted() async throws {
        let provider = Provider(StandInKeys.set)
        let (verifier, token) = (try Self.verifier(provider), try Self.token())
        #expect(try await verifier.verify(token, nonce: "n-1").profile.userID == "1234")
        #expect(provider.asked.withLock { $0 } == [StandInKeys.current.keyID])
        _ = try await verifier.verifyRefresh(token, ofSessionOf: "1234", appID: Self.appID)
        _ = try await verifier.verifyRefresh(token, ofSessionOf: "1234", nonce: "n-1")
        // The SHA-256 of "secret".
        let hashed = try Self.token(nonce: "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b")
        _ = try await verifier.verify(hashed, rawNonce: "secret")
        for (subject, nonce) in [("1234", "x"), ("9", "n-1")] {
            await #expect(throws: Rejection.self) {
                try await verifier.verifyRefresh(token, ofSessionOf: subject, nonce: nonce)
            }
        }
        await #expect(throws: InvalidExpectation.self) {
            try await verifier.verifyRefresh(token, ofSessionOf: "1234", nonce: "")
        }
    }

    @Test(
        "A token or a nonce that fails an earlier check asks for no keys",
        arguments: [
            ("", "n-1", Rejection.Code?.some(.malformedToken)), ("a.b.c", "n-1", .malformedToken),
            ("EAABwzLixnjYBO0123456789", "n-1", .notAnIDToken), ("a.b.c", "", nil), ("a.b.c", "a b", nil),
            ("eyJhbGciOiJub25lIiwia2lkIjoiYSJ9.e30.AAAA", "n", .unsupportedAlgorithm),
        ]
    )
    func early(token: String, nonce: String, code: Rejection.Code?) async throws {
        let provider = Provider(StandInKeys.set)
        let verifier = try Self.verifier(provider)
        // An invalid nonce is the caller's mistake.
        let rejection = await refusal { try await verifier.verify(token, nonce: nonce) }
        #expect(code == nil ? rejection == .invalidNonce : rejection?.code == code)
        #expect(provider.asked.withLock { $0.isEmpty })
    }

    @Test("The app given and the clock count; without a time no token is judged")
    func refused() async throws {
        let verifier = try Self.verifier(StandInKeys.set)
        let old = try Self.verifier(StandInKeys.set, clock: { 1_700_010_000 })
        let unfit = try Self.verifier(StandInKeys.set, clock: { .nan })
        let token = try Self.token()
        let elsewhere = await refusal { try await verifier.verify(token, nonce: "n-1", appID: "42") }
        #expect(elsewhere == .otherAudience(Self.appID))
        #expect(await refusal { try await old.verify(token, nonce: "n-1") }?.code == .expired)
        await #expect(throws: Unavailable.clock) { try await unfit.verify(token, nonce: "n-1") }
    }

    @Test("A task that is cancelled while it waits for a key refuses no token")
    func cancellation() async throws {
        struct Waiting: JWKSetProvider {
            func keySet(containing keyID: String) async throws -> JWKSet {
                while true {
                    try Task.checkCancellation()
                    await Task.yield()
                }
            }
        }
        let (verifier, token) = (try Self.verifier(Waiting()), try Self.token())
        let verdict = Task { try await verifier.verify(token, nonce: "n-1") }
        verdict.cancel()
        let fault = await #expect(throws: Unavailable.self) { try await verdict.value }
        #expect(fault == .keys && fault?.underlyingError is CancellationError)
    }

    /// Gives a key set that the test may replace at any time.
    private final class Rotating: JWKSetProvider {
        let set: Mutex<JWKSet>
        init(_ set: JWKSet) { self.set = Mutex(set) }
        func keySet(containing keyID: String) async throws(Never) -> JWKSet { set.withLock { $0 } }
    }

    @Test("A key that is replaced under its ID or removed verifies nothing afterwards")
    func rotation() async throws {
        let (old, new) = (StandInKeys.current, StandInKeys.previous)
        let renewed = TokenMinter(key: new.key, keyID: old.keyID)
        let provider = Rotating(StandInKeys.makeSet([old]))
        let verifier = try Self.verifier(provider)
        let (before, after) = (try Self.token(by: old), try Self.token(by: renewed))
        #expect(try await verifier.verify(before, nonce: "n-1").authenticationToken.keyID == old.keyID)
        provider.set.withLock { $0 = StandInKeys.makeSet([renewed]) }
        #expect(await refusal { try await verifier.verify(before, nonce: "n-1") } == Rejection(.invalidSignature))
        #expect(try await verifier.verify(after, nonce: "n-1").profile.userID == "1234")
        provider.set.withLock { $0 = StandInKeys.makeSet([StandInKeys.stranger]) }
        #expect(await refusal { try await verifier.verify(after, nonce: "n-1") }?.code == .unknownKey)
        provider.set.withLock { $0 = JWKSet(keys: []) }
        await #expect(throws: Unavailable.keys) { try await verifier.verify(after, nonce: "n-1") }
    }

    @Test("Eight tasks share one verifier while the keys rotate")
    func sharing() async throws {
        let minters = [StandInKeys.current, StandInKeys.previous, StandInKeys.stranger]
        let all = StandInKeys.makeSet(minters)
        let provider = Rotating(all)
        let verifier = try Self.verifier(provider)
        let tokens = try minters.map { try Self.token(by: $0) }
        await withTaskGroup(of: Int.self) { group in
            for task in 0..<8 {
                group.addTask {
                    var wrong = 0
                    for round in 0..<60 {
                        let place = (task + round) % 3
                        if task == 0 {
                            let others = minters.indices.filter { $0 != place }.map { minters[$0] }
                            provider.set.withLock { $0 = round % 2 == 0 ? StandInKeys.makeSet(others) : all }
                        }
                        do {
                            // Judge a bad signature too: neither verdict may reach the other token.
                            if round % 3 == 0 {
                                _ = try await verifier.verify(String(tokens[place].dropLast(4)) + "AAAA", nonce: "n-1")
                                wrong += 1
                            }
                            let verified = try await verifier.verify(tokens[place], nonce: "n-1")
                            wrong += verified.authenticationToken.keyID == minters[place].keyID ? 0 : 1
                        } catch let rejection as Rejection {
                            wrong += [.unknownKey, .invalidSignature].contains(rejection.code) ? 0 : 1
                        } catch {
                            wrong += 1
                        }
                    }
                    return wrong
                }
            }
            for await wrong in group { #expect(wrong == 0) }
        }
    }

    @Test("A failing source is an outage, no refusal; a key ID too long for any set asks no source")
    func outage() async throws {
        let down = Provider(nil)
        let verifier = try Self.verifier(down)
        let good = try Self.token()
        let fault = await #expect(throws: Unavailable.self) { try await verifier.verify(good, nonce: "n-1") }
        #expect(fault == .keys && fault?.underlyingError is Provider.Down)
        #expect(fault?.description == "\(Unavailable.keys) Down()")
        #expect(down.asked.withLock { $0.count } == 1)
        let key = TokenMinter(key: StandInKeys.current.key, keyID: String(repeating: "k", count: 300))
        let long = try Self.token(by: key)
        let rejection = await refusal { try await verifier.verify(long, nonce: "n-1") }
        #expect(rejection == .unknownKey(String(repeating: "k", count: 64).utf8))
        #expect(down.asked.withLock { $0.count } == 1)
    }
}
