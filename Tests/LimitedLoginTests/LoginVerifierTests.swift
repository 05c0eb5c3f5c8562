import LLJOSE
import LLStandIn
import LLTestSupport
import Synchronization
import Testing

@testable import LimitedLogin

@Suite("The login verifier: a verdict and somebody else's keys")
struct LoginVerifierTests {
    private static let appID = "123456789012345"
    private static let now: Int64 = 1_700_000_000

    private static func verifier<Keys: JSONWebKeySetProvider>(
        _ keys: Keys,
        clock: @escaping @Sendable () -> Double = { 1_700_000_000 }
    ) throws -> LoginVerifier<Keys> {
        LoginVerifier(policy: try VerificationPolicy(appIDs: [appID, "42"]), keys: keys, clock: clock)
    }

    private static func token(
        nonce: String = "n-1",
        audience: String = appID,
        by minter: TokenMinter = StandInKeys.current
    ) throws -> String {
        try minter.mint(MintedClaims(audience: audience, subject: "1234", nonce: nonce, issuedAt: now))
    }

    /// Answers what a test says, and keeps what it was asked.
    private final class Provider: JSONWebKeySetProvider {
        struct Down: Error {}
        let asked = Mutex<[String]>([])
        let set: JSONWebKeySet?

        init(_ set: JSONWebKeySet?) { self.set = set }

        func keySet(containing keyID: String) async throws(Down) -> JSONWebKeySet {
            asked.withLock { $0.append(keyID) }
            guard let set else { throw Down() }
            return set
        }
    }

    /// The reason that a token is refused for.
    private func refusal(_ verdict: () async throws -> VerifiedToken) async -> Refusal? {
        do {
            _ = try await verdict()
            return nil
        } catch {
            return (error as? TokenRejection)?.refusal ?? (error as? InvalidExpectation)?.refusal
        }
    }

    @Test("A login is verified by its nonce, its raw nonce or its subject")
    func accepted() async throws {
        let verifier = try Self.verifier(StandInKeys.set)
        let verified = try await verifier.verify(Self.token(), nonce: "n-1")
        #expect(verified.profile.userID == "1234")
        #expect(try await verifier.verify(Self.token(), subject: "1234", appID: Self.appID).profile.userID == "1234")
        // The SHA-256 of "secret".
        let hashed = try Self.token(nonce: "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b")
        #expect(try await verifier.verify(hashed, rawNonce: "secret").profile.userID == "1234")
    }

    @Test("The keys are asked for once, by the token's key ID")
    func asksOnce() async throws {
        let provider = Provider(StandInKeys.set)
        _ = try await Self.verifier(provider).verify(Self.token(), nonce: "n-1")
        #expect(provider.asked.withLock { $0 } == [StandInKeys.current.keyID])
    }

    @Test(
        "What is no token, or no expectation, asks for no keys",
        arguments: [
            ("", "n-1", TokenRejection.Code?.some(.malformedToken)), ("a.b.c", "n-1", .malformedToken),
            ("EAABwzLixnjYBO0123456789", "n-1", .notAnIDToken), ("a.b.c", "", nil), ("a.b.c", "a b", nil),
            ("eyJhbGciOiJub25lIiwia2lkIjoiYSJ9.e30.AAAA", "n", .unsupportedAlgorithm),
        ]
    )
    func early(token: String, nonce: String, code: TokenRejection.Code?) async throws {
        let provider = Provider(StandInKeys.set)
        let verifier = try Self.verifier(provider)
        // A nonce that is none is a mistake of the caller's.
        let rejection = await refusal { try await verifier.verify(token, nonce: nonce) }
        #expect(code == nil ? rejection == .invalidNonce : rejection?.code == code)
        #expect(provider.asked.withLock { $0.isEmpty })
    }

    @Test("Each bad token is refused for its own reason")
    func refused() async throws {
        let verifier = try Self.verifier(StandInKeys.set)
        let old = try Self.verifier(StandInKeys.set, clock: { 1_700_010_000 })
        let unfit = try Self.verifier(StandInKeys.set, clock: { .nan })
        let mint = try Self.token()
        #expect(await refusal { try await verifier.verify(mint, nonce: "n-2") } == .nonceMismatch(.different))
        #expect(await refusal { try await verifier.verify(mint, subject: "9") } == .subjectMismatch)
        #expect(await refusal { try await verifier.verify(mint, nonce: "n-1", appID: "9") } == .unknownApp)
        #expect(
            await refusal { try await verifier.verify(mint, nonce: "n-1", appID: "42") }
                == .invalidAudience(.otherApp(Self.appID))
        )
        let expired = await #expect(throws: TokenRejection.self) { try await old.verify(mint, nonce: "n-1") }
        #expect(expired?.code == .expired)
        await #expect(throws: VerificationUnavailable.clock) { try await unfit.verify(mint, nonce: "n-1") }
        let stranger = try Self.token(by: StandInKeys.stranger)
        let unknown = await #expect(throws: TokenRejection.self) { try await verifier.verify(stranger, nonce: "n-1") }
        #expect(unknown?.code == .unknownKey)
    }

    @Test("A task that is cancelled while it waits for a key refuses no token")
    func cancellation() async throws {
        struct Waiting: JSONWebKeySetProvider {
            func keySet(containing keyID: String) async throws -> JSONWebKeySet {
                while true {
                    try Task.checkCancellation()
                    await Task.yield()
                }
            }
        }
        let (verifier, token) = (try Self.verifier(Waiting()), try Self.token())
        let verdict = Task { try await verifier.verify(token, nonce: "n-1") }
        verdict.cancel()
        await #expect(throws: VerificationUnavailable.keys) { try await verdict.value }
    }

    @Test("A source that is down is no fault of the token; a key ID no set can hold asks nobody")
    func outage() async throws {
        let down = Provider(nil)
        let verifier = try Self.verifier(down)
        let good = try Self.token()
        await #expect(throws: VerificationUnavailable.keys) { try await verifier.verify(good, nonce: "n-1") }
        #expect(down.asked.withLock { $0.count } == 1)
        let key = TokenMinter(key: StandInKeys.current.key, keyID: String(repeating: "k", count: 300))
        let long = try Self.token(by: key)
        let rejection = await #expect(throws: TokenRejection.self) { try await verifier.verify(long, nonce: "n-1") }
        #expect(rejection?.refusal == .unknownKey(keyID: String(repeating: "k", count: 64)))
        #expect(down.asked.withLock { $0.count } == 1)
    }
}
