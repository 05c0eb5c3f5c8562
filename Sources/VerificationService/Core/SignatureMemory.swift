internal import Bytes
package import LimitedLogin
internal import OpenSSL

/// The tokens whose signatures were found good before, so that the same token again costs no RSA operation and is not
/// decoded again. One for each worker.
///
/// What is remembered are facts that do not age: these bytes are signed by a key of this set, and say this. SHA-256 of the
/// whole token is compared, and with a set of keys that differs in anything all is forgotten. Everything else about a token
/// is judged anew each time, and no failure is kept.
///
/// A token enters only once it was accepted, so that neither forged nor expired ones take anybody's place.
package final class SignatureMemory {
    /// Nil for a token that ``TokenReading`` has no room for.
    private var tokens: RecentDigests<TokenReading?>
    /// The keys under which the signatures of `tokens` are good.
    private var keys: VerificationKeys?
    private let sha256: SHA256?
    private let metrics: ServiceMetrics?

    /// 10,000: as many people as use one worker within minutes, in a megabyte.
    package static let defaultCapacity = 10_000
    /// The most that can be configured. 1,000,000 entries take some 100 MB for each worker.
    package static let greatestCapacity = 1_000_000

    /// - Parameter capacity: the most tokens remembered; zero for none.
    package init(capacity: Int, metrics: ServiceMetrics? = nil) {
        self.metrics = metrics
        sha256 = capacity > 0 ? try? SHA256() : nil
        tokens = RecentDigests(capacity: capacity)
    }

    package var count: Int { tokens.count }

    package var allocatedBytes: Int { tokens.allocatedBytes }

    /// Judges a token as the verifier does, but for what is remembered of it; remembers it where it is accepted.
    /// - Parameters:
    ///   - question: what the token must be; what it does not ask to be told may be missing in the claims.
    ///   - workspace: what the ranges of the claims point into.
    package func judge(
        _ token: Span<UInt8>,
        _ question: TokenQuestion,
        verifier: TokenVerifier,
        keys: VerificationKeys,
        now: NumericDate,
        workspace: inout VerificationWorkspace
    ) throws(Refusal) -> VerifiedClaims {
        guard let sha256, token.count <= VerificationLimits.tokenByteCount,
            let stop = token.lastOffset(of: UInt8(ascii: ".")),
            let name = sha256.digest(of: token, markingStart: stop)
        else {
            return try verifier.judge(token, question, keys: keys, now: now, workspace: &workspace)
        }
        forgetOthers(than: keys)
        let found = tokens.find(name)
        metrics?.countSignature(isRemembered: found != nil)
        let signingInput = token.extracting(0..<stop)
        if let found, let reading = found.value,
            let claims = verifier.accept(reading, of: signingInput, question, now: now, workspace: &workspace)
        {
            tokens.use(found.place)
            return claims
        }
        let claims = try verifier.judge(
            token,
            question,
            keys: keys,
            isSigned: found != nil,
            digest: found == nil ? sha256.digestOfStart() : nil,
            now: now,
            workspace: &workspace
        )
        if let found {
            tokens.use(found.place)
        } else {
            tokens.add(name, TokenReading(claims, of: token))
        }
        return claims
    }

    /// Forgets all that is remembered under other keys than these.
    private func forgetOthers(than keys: VerificationKeys) {
        guard keys !== self.keys else { return }
        if self.keys?.areSame(as: keys) != true { tokens = RecentDigests(capacity: tokens.capacity) }
        self.keys = keys
    }
}
