internal import HTTPClient
internal import HTTPServer
internal import JOSE
internal import KeySets
internal import LimitedLogin
internal import LoginStores
internal import Sockets

/// Judges tokens with the keys at hand, or says until when a request must wait for others. One for each worker.
final class TokenJudge {
    /// What a token must be at `/auth` and `/introspect`, whose callers may not know the login.
    struct Question {
        /// How the token is tied to a login; `.unbound` where the caller cannot know.
        var binding = BindingKind.unbound
        /// What the binding compares with.
        var bindingValue: [UInt8] = []
        /// The one app the token must be for; empty for any configured one.
        var appID: [UInt8] = []
        /// What is told of the token.
        var texts = TokenReading.Texts()
    }

    /// The verdict, or the wait for it.
    enum Outcome {
        case verified(VerifiedClaims)
        case wait(MonotonicInstant)
    }

    private let workerKeys: WorkerKeys
    private let keyWait: KeyWait
    private let revocations: RevocationReader
    /// What the token judged last left behind: its payload, which the ranges of its claims point into, and its nonce.
    let workspace = VerificationWorkspace()

    init(cache: JWKSetCache, workerKeys: WorkerKeys, revocations: RevocationReader) {
        self.workerKeys = workerKeys
        self.revocations = revocations
        keyWait = KeyWait(cache: cache, workerKeys: workerKeys)
    }

    /// As below, for a question.
    func judge(
        _ token: Span<UInt8>,
        _ question: Question,
        signatures: SignatureMemory? = nil,
        verifier: TokenVerifier,
        context: RequestContext,
        trace: @autoclosure () -> String?
    ) throws(Problem) -> Outcome {
        try judge(
            token,
            binding: question.binding,
            value: question.bindingValue.span,
            appID: question.appID.span,
            telling: question.texts,
            signatures: signatures,
            verifier: verifier,
            context: context,
            trace: trace()
        )
    }

    /// Judges a token, or says until when it must wait for keys.
    /// - Parameters:
    ///   - value: what the binding compares with.
    ///   - appID: the one app the token must be for; empty for any configured one.
    ///   - added: what else must hold.
    ///   - texts: what is told of the token; others may be missing where `signatures` are given.
    ///   - signatures: those found good before, where the same token is expected again; nil verifies each.
    ///   - trace: the request's `traceparent`, for a fetch of keys that is made for it.
    @inline(__always)
    func judge(
        _ token: Span<UInt8>,
        binding: BindingKind,
        value: Span<UInt8>,
        appID: Span<UInt8>,
        added: AddedExpectation = AddedExpectation(),
        telling texts: TokenReading.Texts = TokenReading.Texts(),
        signatures: SignatureMemory? = nil,
        verifier: TokenVerifier,
        context: RequestContext,
        trace: @autoclosure () -> String?
    ) throws(Problem) -> Outcome {
        guard revocations.isKnown else { throw Self.unknownRevocations }
        // A second and third look are for a key set that is published between the look and the question to the cache.
        for _ in 0..<3 {
            workerKeys.refresh()
            let wait: KeyWait.Outcome
            if workerKeys.isUsable(at: context.now) {
                let now = try ServiceClock.now()
                do throws(Refusal) {
                    let claims: VerifiedClaims
                    if let signatures {
                        claims = try signatures.judge(
                            token,
                            binding: binding,
                            value: value,
                            appID: appID,
                            added: added,
                            telling: texts,
                            verifier: verifier,
                            keys: workerKeys.keys,
                            now: now,
                            workspace: workspace
                        )
                    } else {
                        claims = try verifier.judge(
                            token,
                            binding: binding,
                            value: value,
                            appID: appID,
                            added: added,
                            keys: workerKeys.keys,
                            now: now,
                            workspace: workspace
                        )
                    }
                    if !revocations.isEmpty(), isRevoked(claims) { throw .loginRevoked }
                    return .verified(claims)
                } catch {
                    guard error.code == .unknownKey else { throw Problem(error) }
                    wait = try keyWait.forKey(workspace.keyID.span, Problem(error), context, trace())
                }
            } else {
                wait = try keyWait.forAnyKey(context)
            }
            if case .until(let moment) = wait { return .wait(moment) }
        }
        throw KeyWait.restless
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

/// What a request does whose token cannot be judged with the keys at hand: it waits, looks again, or is answered.
struct KeyWait {
    enum Outcome {
        /// Park the request, at most until this moment.
        case until(MonotonicInstant)
        /// The keys have changed since the look.
        case lookAgain
    }

    let cache: JWKSetCache
    let workerKeys: WorkerKeys

    /// No keys at all: wait for the fetch under way, or say that there are none.
    func forAnyKey(_ context: RequestContext) throws(Problem) -> Outcome {
        var retryAfter: Int?
        if context.visit != .expired {
            switch cache.keysUnavailable(
                seenEpoch: workerKeys.snapshot.epoch,
                waitingSince: context.firstByteAt,
                now: context.now
            ) {
            case .wait(let moment): return .until(moment)
            case .lookAgain: return .lookAgain
            case .unknown: break
            case .unavailable(let seconds): retryAfter = seconds
            }
        }
        throw Problem(
            .keysUnavailable,
            "The issuer's keys could not be fetched; try again shortly.",
            retryAfter: retryAfter
        )
    }

    /// A key ID that is not in the set: the issuer may have rotated, so its set is asked for once more, within a
    /// budget. `problem` is what the token is refused with when the issuer has no such key.
    func forKey(
        _ keyID: Span<UInt8>,
        _ problem: Problem,
        _ context: RequestContext,
        _ trace: @autoclosure () -> String?
    ) throws(Problem) -> Outcome {
        var retryAfter: Int?
        if context.visit != .expired {
            let answer = CallTrace.$parent.withValue(trace()) {
                cache.unknownKeyID(
                    keyID,
                    seenEpoch: workerKeys.snapshot.epoch,
                    waitingSince: context.firstByteAt,
                    now: context.now
                )
            }
            switch answer {
            case .wait(let moment): return .until(moment)
            case .lookAgain: return .lookAgain
            case .unknown: throw problem
            case .unavailable(let seconds): retryAfter = seconds
            }
        }
        // It cannot be known whether the key exists: an outage or a spent budget is never the token's fault.
        throw Problem(
            .keysUnavailable,
            "The token's key is not cached, and the issuer could not be asked for it; try again shortly.",
            retryAfter: retryAfter
        )
    }

    /// The keys changed with every look.
    static var restless: Problem {
        Problem(.keysUnavailable, "The issuer's keys are changing; try again shortly.")
    }
}

/// One worker's verification keys, built from the cache's snapshot and rebuilt when the key set changes.
///
/// On the request path it costs one atomic load; the snapshot is taken, and OpenSSL's contexts are made, only when the
/// cache has published another epoch.
final class WorkerKeys {
    private var copy: Published<JWKSetSnapshot>.Copy
    private(set) var keys: VerificationKeys
    /// The snapshot's own moment; one that is past where there are no keys.
    private var usableUntil: MonotonicInstant

    init(cache: JWKSetCache) {
        copy = Published.Copy(cache.published)
        keys = VerificationKeys(copy.value.keySet)
        usableUntil = Self.end(of: copy.value, keys)
    }

    private static func end(of snapshot: JWKSetSnapshot, _ keys: VerificationKeys) -> MonotonicInstant {
        keys.isEmpty ? MonotonicInstant(nanoseconds: 0) : snapshot.usableUntil
    }

    var snapshot: JWKSetSnapshot { copy.value }

    /// Takes the cache's newest snapshot if there is one.
    func refresh() {
        guard copy.isOld else { return }
        let newer = copy.renewed
        // An extension of the keys' time leaves the keys themselves, and so the contexts, as they are.
        if newer.value.keySetVersion != snapshot.keySetVersion { keys = VerificationKeys(newer.value.keySet) }
        copy = newer
        usableUntil = Self.end(of: snapshot, keys)
    }

    /// Whether the keys may verify at this moment (past max-stale they verify nothing).
    func isUsable(at now: MonotonicInstant) -> Bool { now < usableUntil }
}

/// The wall clock, as far as verdicts need it.
enum ServiceClock {
    static func now() throws(Problem) -> NumericDate {
        guard let now = NumericDate(secondsSince1970: WallClock.unixSeconds()) else {
            throw Problem(.internalError, "This machine's clock stands before 1970.")
        }
        return now
    }
}
