internal import Bytes
internal import HTTPClient
internal import HTTPServer
internal import JOSE
internal import KeySets
package import LimitedLogin
internal import LoginStores
internal import OpenSSL
internal import Sockets

/// Judges tokens with the keys at hand, or says until when a request must wait for others. One for each worker.
final class TokenJudge {
    enum Outcome {
        case verified(VerifiedClaims)
        case wait(MonotonicInstant)
    }

    private let cache: JWKSetCache
    /// This worker's copy of the key set, and what is made of it.
    private var snapshot: Published<JWKSetSnapshot>.Copy
    private var keys: VerificationKeys
    private let revocations: RevocationReader
    private let noSignatures = SignatureMemory(capacity: 0)
    /// What the token judged last left behind: its payload, which the ranges of its claims point into, and its nonce.
    private(set) var workspace = VerificationWorkspace()

    init(cache: JWKSetCache, revocations: RevocationReader) {
        self.cache = cache
        self.revocations = revocations
        snapshot = Published.Copy(cache.published)
        keys = VerificationKeys(snapshot.value.keySet)
    }

    /// Judges a token, or says until when it must wait for keys.
    /// - Parameters:
    ///   - signatures: those found good before, where the same token is expected again; nil verifies each.
    ///   - trace: the request's `traceparent`, for a fetch of keys that is made for it.
    @inline(__always)
    func judge(
        _ token: Span<UInt8>,
        _ question: TokenQuestion,
        signatures: SignatureMemory? = nil,
        verifier: TokenVerifier,
        context: RequestContext,
        trace: @autoclosure () -> String?
    ) throws(Problem) -> Outcome {
        guard revocations.isKnown else { throw Self.unknownRevocations }
        // A second and third look are for a key set that is published between the look and the question to the cache.
        for _ in 0..<3 {
            refreshKeys()
            let wait: MonotonicInstant?
            // Past max-stale they verify nothing.
            if !keys.isEmpty, snapshot.value.isUsable(at: context.now) {
                let now = try ServiceClock.now()
                do throws(Refusal) {
                    let claims = try (signatures ?? noSignatures).judge(
                        token,
                        question,
                        verifier: verifier,
                        keys: keys,
                        now: now,
                        workspace: &workspace
                    )
                    if !revocations.isEmpty(), isRevoked(claims) { throw .loginRevoked }
                    return .verified(claims)
                } catch {
                    // An ID that is too long for any published key is empty here: nobody is asked about it.
                    guard error.code == .unknownKey, !workspace.keyID.isEmpty else { throw Problem(error) }
                    wait = try waitForKeys(Problem(error), context, trace())
                }
            } else {
                wait = try waitForKeys(nil, context, nil)
            }
            if let wait { return .wait(wait) }
        }
        throw Problem(.keysUnavailable, "The issuer's keys are changing; try again shortly.")
    }

    /// On the request path it costs one atomic load; the snapshot is taken, and OpenSSL's contexts are made, only when the
    /// cache has published another epoch.
    private func refreshKeys() {
        guard snapshot.isOld else { return }
        let newer = snapshot.renewed
        // An extension of the keys' time leaves the keys themselves, and so the contexts, as they are.
        if newer.value.keySetVersion != snapshot.value.keySetVersion { keys = VerificationKeys(newer.value.keySet) }
        snapshot = newer
    }

    /// Whether the login was revoked since the token was issued; asks this replica's own copy.
    private func isRevoked(_ claims: VerifiedClaims) -> Bool {
        let payload = workspace.payload.span
        let (app, user) = (payload.extracting(claims.audience), payload.extracting(claims.subject))
        let issuedAt = claims.issuedAt.wholeSeconds
        if JSONText.isPlain(app), JSONText.isPlain(user) {
            return revocations.isRevoked(app: app, user: user, issuedAt: issuedAt)
        }
        return revocations.isRevoked(
            app: JSONText.value(payload, claims.audience).utf8.span,
            user: JSONText.value(payload, claims.subject).utf8.span,
            issuedAt: issuedAt
        )
    }

    /// A replica that starts while Redis cannot be asked knows of no revocation, and so may accept nothing yet.
    static var unknownRevocations: Problem {
        Problem(.replayStoreUnavailable, "The revocations have not been read since the start; try again shortly.")
    }
}

extension TokenJudge {
    /// What a request does whose token cannot be judged with the keys at hand: it is parked, at most until the moment
    /// returned, or looks again (nil), or is answered.
    ///
    /// Where a key ID is not in the set, the issuer may have rotated: its set is asked for once more, within a budget.
    /// - Parameter unknown: what the token is refused with when the issuer has no such key; nil where there are no keys at
    ///   all, so that only a fetch under way is waited for.
    private func waitForKeys(
        _ unknown: Problem?,
        _ context: RequestContext,
        _ trace: @autoclosure () -> String?
    ) throws(Problem) -> MonotonicInstant? {
        var retryAfter: Int?
        if context.visit != .expired {
            let answer = CallTrace.$parent.withValue(trace()) {
                cache.missingKey(
                    unknown == nil ? nil : JWKSetCache.hash(workspace.keyID.span),
                    seenEpoch: snapshot.value.epoch,
                    waitingSince: context.firstByteAt,
                    now: context.now
                )
            }
            switch answer {
            case .wait(let moment): return moment
            case .lookAgain: return nil
            case .unknown: if let unknown { throw unknown }
            case .unavailable(let seconds): retryAfter = seconds
            }
        }
        // It cannot be known whether the key exists: an outage or a spent budget is never the token's fault.
        throw Problem(
            .keysUnavailable,
            unknown == nil
                ? "The issuer's keys could not be fetched; try again shortly."
                : "The token's key is not cached, and the issuer could not be asked for it; try again shortly.",
            retryAfter: retryAfter
        )
    }
}

/// The tokens whose signatures were found good before, so that the same token again costs no RSA operation and is not
/// decoded again. One for each worker.
///
/// What is remembered are facts that do not age: these bytes are signed by a key of this set, and say this. SHA-256 of the
/// whole token is compared, and with a set of keys that differs in anything all is forgotten. Everything else about a token
/// is judged anew each time, and no failure is kept.
///
/// A token enters only once it was accepted, so that neither forged nor expired ones take anybody's place.
package final class SignatureMemory {
    package private(set) var tokens: RecentDigests
    /// The keys under which the signatures of `tokens` are good.
    private var keys: VerificationKeys?
    private let sha256: SHA256?
    private let metrics: ServiceMetrics?

    /// 10,000: as many people as use one worker within minutes, in a megabyte.
    package static let defaultCapacity = 10_000
    /// The most that can be configured: 1,000,000 for each worker, some 100 MB, if ``memoryShare`` has room for them.
    package static let greatestCapacity = 1_000_000

    /// The part of the service's memory that all workers together remember tokens in: a sixteenth. A half is the
    /// connections', and the program has the most of the rest.
    package static let memoryShare = 16

    /// How many tokens each worker remembers: as many as are wanted, if its share of the memory has room for them.
    package static func capacity(wanted: Int, workers: Int, memory: Int) -> Int {
        min(wanted, memory / memoryShare / max(workers, 1) / RecentDigests.bytesPerEntry)
    }

    /// - Parameter capacity: the most tokens remembered; zero for none.
    package init(capacity: Int, metrics: ServiceMetrics? = nil) {
        self.metrics = metrics
        sha256 = capacity > 0 ? try? SHA256() : nil
        tokens = RecentDigests(capacity: capacity)
    }

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
        var name: SHA256Digest?
        var place: RecentDigests.Place?
        if let sha256, token.count <= VerificationLimits.tokenByteCount,
            let stop = token.lastOffset(of: UInt8(ascii: ".")),
            let digest = sha256.digest(of: token, markingStart: stop)
        {
            if keys !== self.keys {
                if self.keys?.areSame(as: keys) != true { tokens = RecentDigests(capacity: tokens.capacity) }
                self.keys = keys
            }
            let found = tokens.find(digest)
            metrics?.countSignature(isRemembered: found != nil)
            if let found, let reading = found.value,
                let claims = verifier.accept(
                    reading,
                    of: token.extracting(0..<stop),
                    question,
                    now: now,
                    workspace: &workspace
                )
            {
                tokens.use(found.place)
                return claims
            }
            (name, place) = (digest, found?.place)
        }
        let claims = try verifier.judge(
            token,
            question,
            keys: keys,
            isSigned: place != nil,
            digest: name != nil && place == nil ? sha256?.digestOfStart() : nil,
            now: now,
            workspace: &workspace
        )
        if let place {
            tokens.use(place)
        } else if let name {
            tokens.add(name, TokenReading(claims, of: token))
        }
        return claims
    }
}

/// The wall clock, as far as verdicts need it: with its fraction, for a device's `iat` may have one, and without a skew a
/// whole second would be up to a second behind it.
enum ServiceClock {
    static func now() throws(Problem) -> NumericDate {
        guard let now = NumericDate(secondsSince1970: Double(WallClock.unixNanoseconds()) / 1_000_000_000) else {
            throw Problem(.internalError, "This machine's clock stands before 1970.")
        }
        return now
    }
}
