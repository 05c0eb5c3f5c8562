internal import LLBytes
internal import LLJOSE

/// The buffers and the prepared keys of one verdict of the library's public functions. The next verdict reuses both.
/// Only the verdict that took the session out of its ``VerificationSessions`` touches it; hence `@unchecked Sendable`.
final class VerificationSession: @unchecked Sendable {
    var workspace = VerificationWorkspace()
    private var last: (set: JWKSet, keys: VerificationKeys)?

    /// The prepared keys of a set; those of the latest set are kept if OpenSSL could prepare all.
    func keys(of set: JWKSet) -> VerificationKeys {
        if let last, last.set == set { return last.keys }
        let keys = VerificationKeys(set)
        if keys.isWhole { last = (set, keys) }
        return keys
    }
}

/// The idle sessions of one verifier. The lock is held while a session is taken or returned, and never during a
/// verdict.
final class VerificationSessions: Sendable {
    /// The greatest number of idle sessions. 64: more verdicts at once are rare, and each session may have 256 KiB.
    private static let limit = 64
    private let idle = Locked<[VerificationSession]>([])

    func take() -> VerificationSession { idle.withLock { $0.popLast() } ?? VerificationSession() }

    func giveBack(_ session: VerificationSession) {
        idle.withLock { idle in if idle.count < Self.limit { idle.append(session) } }
    }
}
