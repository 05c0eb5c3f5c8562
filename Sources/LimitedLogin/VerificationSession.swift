internal import LLBytes
internal import LLCrypto
internal import LLJOSE

/// The buffers and the prepared keys of one verdict of the library's public functions. The next verdict reuses both.
///
/// Only the verdict that took the session out of its ``VerificationSessions`` touches it; hence `@unchecked Sendable`.
final class VerificationSession: @unchecked Sendable {
    var workspace = VerificationWorkspace()
    /// The prepared keys of the latest sets, each with the published key.
    private var ready: [(published: JSONWebKey, key: RSAPublicKey)] = []

    /// The prepared key with this name; nil if the set has none.
    func key(withID keyID: String, in set: JSONWebKeySet) throws(Rejection) -> RSAPublicKey? {
        guard let published = set.key(withID: keyID) else { return nil }
        for entry in ready where entry.published == published { return entry.key }
        // Keys outside the set are removed, so at most the 64 keys of a set are kept.
        ready.removeAll { entry in !set.keys.contains(entry.published) }
        // The set has only valid keys, so a failure here is one of OpenSSL and not the token's fault.
        guard let key = try? RSAPublicKey(modulus: published.modulus, exponent: published.publicExponent) else {
            throw .cryptographyFailed
        }
        ready.append((published, key))
        return key
    }
}

/// The idle sessions of one verifier. The lock is held while a session is taken or returned, and never during a
/// verdict.
final class VerificationSessions: Sendable {
    /// The greatest number of idle sessions. 64: more verdicts at once are rare, and each session may have 256 KiB.
    private static let limit = 64
    private let idle = Locked<[VerificationSession]>([])

    /// An idle session, or a new one.
    func take() -> VerificationSession { idle.withLock { $0.popLast() } ?? VerificationSession() }

    /// Keeps a session for the next verdict. One without SHA-256, for which OpenSSL had no memory, is not used again.
    func giveBack(_ session: VerificationSession) {
        guard session.workspace.sha256 != nil else { return }
        idle.withLock { idle in
            if idle.count < Self.limit { idle.append(session) }
        }
    }
}
