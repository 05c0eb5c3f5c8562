internal import LLCrypto
internal import LLJOSE
internal import LLThreads

/// What one verdict of the library's doors works with: buffers, and the keys that it has made ready. The next verdict takes
/// them over, so that it makes neither anew.
///
/// Only the verdict that took the session out of its ``VerificationSessions`` touches it; hence `@unchecked Sendable`.
final class VerificationSession: @unchecked Sendable {
    var workspace = VerificationWorkspace()
    /// Keys of the sets seen last, each beside the key as it was published.
    private var ready: [(published: JSONWebKey, key: RSAPublicKey)] = []

    /// The key of this name, made ready; nil where the set has none of this name.
    func key(withID keyID: String, in set: JSONWebKeySet) throws(Refusal) -> RSAPublicKey? {
        guard let published = set.key(withID: keyID) else { return nil }
        for entry in ready where entry.published == published { return entry.key }
        // Keys that left the set are forgotten, so at most a set's 64 are kept.
        ready.removeAll { entry in !set.keys.contains(entry.published) }
        // The set holds sound keys alone: only OpenSSL itself can fail here, which is no fault of the token.
        guard let key = try? RSAPublicKey(modulus: published.modulus, exponent: published.publicExponent) else {
            throw .keysUnavailable
        }
        ready.append((published, key))
        return key
    }
}

/// The sessions of one verifier that no verdict uses at the moment. The lock is held while one is taken or given back, and
/// never during a verdict.
final class VerificationSessions: Sendable {
    /// Greatest number of idle sessions. 64: more verdicts than this at once are rare, and each may hold 256 KiB.
    private static let limit = 64
    private let idle = Locked<[VerificationSession]>([])

    /// An idle session, or a new one.
    func take() -> VerificationSession { idle.withLock { $0.popLast() } ?? VerificationSession() }

    func giveBack(_ session: VerificationSession) {
        idle.withLock { idle in
            if idle.count < Self.limit { idle.append(session) }
        }
    }
}
