internal import LLBytes
internal import LLCrypto
internal import LLHTTPClient
internal import LLHTTPServer
internal import LLJOSE
internal import LLSockets
internal import LLStores
package import LimitedLogin
internal import LimitedLoginKeys

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
    /// The requests that wait for a key that is not in the set.
    private(set) var keyWaits: KeyWaits
    /// How many bytes the request under way takes, head and body; the handler says it.
    var requestByteCount = 0
    /// What the token judged last left behind: its payload, which the ranges of its claims point into, and its nonce.
    private(set) var workspace = VerificationWorkspace()

    init(cache: JWKSetCache, revocations: RevocationReader, keyWaitPlaces: Int = KeyWaits.defaultPlaces) {
        self.cache = cache
        keyWaits = KeyWaits(places: keyWaitPlaces)
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
        // One that waits on takes its place again.
        let hasWaited = context.visit != .first && keyWaits.remove(context.request)
        guard revocations.isKnown else { throw Self.unknownRevocations }
        // A second and third look are for a key set that is published between the look and the question to the cache.
        for _ in 0..<3 {
            refreshKeys()
            let wait: MonotonicInstant?
            var isInDoubt = false
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
                    if !revocations.isEmpty(), isRevoked(claims, &isInDoubt) { throw .loginRevoked }
                    return .verified(claims)
                } catch {
                    if isInDoubt { throw Self.doubtfulRevocation }
                    // An ID that is too long for any published key is empty here: nobody is asked about it.
                    guard error.code == .unknownKey, !workspace.keyID.isEmpty else {
                        throw Problem(error, of: token)
                    }
                    wait = try waitForKeys(Problem(error), context, hasWaited, trace())
                }
            } else {
                wait = try waitForKeys(nil, context, hasWaited, nil)
            }
            if let wait { return .wait(wait) }
        }
        throw Problem(.keysUnavailable, "The issuer's keys are changing; try again shortly.")
    }

    /// The client of a request has left.
    func abandon(_ request: ParkedRequest) { _ = keyWaits.remove(request) }

    /// On the request path it costs one atomic load; the snapshot is taken, and OpenSSL's contexts are made, only when the
    /// cache has published another epoch.
    private func refreshKeys() {
        guard snapshot.isOld else { return }
        let newer = snapshot.renewed
        // An extension of the keys' time leaves the keys themselves, and so the contexts, as they are.
        if newer.value.keySetVersion != snapshot.value.keySetVersion { keys = VerificationKeys(newer.value.keySet) }
        snapshot = newer
    }

    /// True if the login was revoked since the token was issued, or may have been; asks this replica's own copy.
    private func isRevoked(_ claims: VerifiedClaims, _ isInDoubt: inout Bool) -> Bool {
        let payload = workspace.payload.span
        let (app, user) = (payload.extracting(claims.audience), payload.extracting(claims.subject))
        let latest =
            if JSONText.isPlain(app), JSONText.isPlain(user) {
                revocations.latest(app: app, user: user)
            } else {
                revocations.latest(
                    app: JSONText.value(payload, claims.audience).utf8.span,
                    user: JSONText.value(payload, claims.subject).utf8.span
                )
            }
        let issuedAt = claims.issuedAt.wholeSeconds
        guard let latest, issuedAt <= latest.moment else { return false }
        isInDoubt = revocations.isInDoubt(latest, issuedAt: issuedAt)
        return true
    }

    /// The answer about a token that may be older than its login's revocation, or newer.
    static var doubtfulRevocation: Problem {
        Problem(
            .replayStoreUnavailable,
            "The login was revoked while a clock was ahead, so it cannot be known whether the token is older; the log tells more."
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
    /// Where a key ID is not in the set, the issuer may have rotated: the request waits for the next fetch.
    /// - Parameters:
    ///   - unknown: what the token is refused with when the issuer has no such key; nil where there are no keys at all, so
    ///     that only a fetch under way is waited for.
    ///   - hasWaited: whether the request had a place among those that wait.
    private func waitForKeys(
        _ unknown: Problem?,
        _ context: RequestContext,
        _ hasWaited: Bool,
        _ trace: @autoclosure () -> String?
    ) throws(Problem) -> MonotonicInstant? {
        let hash = unknown == nil ? nil : JWKSetCache.hash(workspace.keyID.span)
        let mayWait = hasWaited || hash.map { keyWaits.hasRoom(for: $0, bytes: requestByteCount) } ?? true
        let answer = CallTrace.$parent.withValue(trace()) {
            cache.missingKey(
                hash,
                seenEpoch: snapshot.value.epoch,
                waitingSince: context.firstByteAt,
                mayWait: mayWait,
                now: context.now
            )
        }
        // Neither an outage nor a crowd is the token's fault, so it is no 401.
        switch answer {
        case .wait(let moment) where context.visit != .expired:
            if let hash { keyWaits.add(context.request, hash, bytes: requestByteCount) }
            return moment
        case .lookAgain: return nil
        case .unknown: throw unknown ?? Problem(.keysUnavailable, Self.noKeys)
        case .wait:
            throw hash == nil ? Problem(.keysUnavailable, Self.noKeys) : Problem(.keyChecksExhausted, Self.noPlace)
        case .unavailable(let seconds): throw Problem(.keysUnavailable, Self.noKeys, retryAfter: seconds)
        case .exhausted(let seconds): throw Problem(.keyChecksExhausted, Self.noPlace, retryAfter: seconds)
        }
    }

    private static let noKeys = "The issuer's keys could not be fetched; try again shortly."
    private static let noPlace =
        "The token's key is not cached, and too many tokens name unknown keys for the issuer to be asked in time; try again."
}

/// The requests of one worker that wait for a key which the issuer has not been asked about.
///
/// Anybody can send tokens with made-up key IDs, so their places are few. After a rotation all genuine tokens name the same
/// new key, which made-up ones cannot know in advance: so a key ID that another request waits for already may have as many
/// places again.
struct KeyWaits {
    /// 512: a hundred made-up key IDs a second for as long as a request waits.
    static let defaultPlaces = 512
    /// Longer requests share an eighth of the places, so that the memory for all is bounded. 8 KiB, four genuine ones.
    static let usualByteCount = 8_192

    private let places: Int
    private var waits: [ParkedRequest: (keyID: UInt64, isLong: Bool)] = [:]
    private var requestsByKeyID: [UInt64: Int] = [:]
    private var longCount = 0

    init(places: Int) { self.places = places }

    var count: Int { waits.count }

    /// True if one more request may wait.
    /// - Parameters:
    ///   - keyID: hash of the key ID that its token names.
    ///   - bytes: its length.
    func hasRoom(for keyID: UInt64, bytes: Int) -> Bool {
        if bytes > Self.usualByteCount, longCount >= places / 8 { return false }
        return waits.count < (requestsByKeyID[keyID] == nil ? places : 2 * places)
    }

    mutating func add(_ request: ParkedRequest, _ keyID: UInt64, bytes: Int) {
        let isLong = bytes > Self.usualByteCount
        waits[request] = (keyID, isLong)
        requestsByKeyID[keyID, default: 0] += 1
        if isLong { longCount += 1 }
    }

    /// - Returns: Whether the request had a place.
    mutating func remove(_ request: ParkedRequest) -> Bool {
        guard let wait = waits.removeValue(forKey: request) else { return false }
        let others = requestsByKeyID[wait.keyID, default: 1] - 1
        requestsByKeyID[wait.keyID] = others > 0 ? others : nil
        if wait.isLong { longCount -= 1 }
        return true
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
    ///   - workspace: the bytes that the ranges of the claims point into.
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
