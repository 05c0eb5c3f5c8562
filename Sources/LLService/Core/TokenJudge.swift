internal import LLBytes
internal import LLHTTP
package import LLJOSE
internal import LLStores
package import LimitedLogin
internal import LimitedLoginKeys

/// Judges tokens with the current keys, or makes a request wait for new keys. Each worker has one.
final class TokenJudge {
    private let cache: JWKSetCache
    /// This worker's copy of the key set, and the verification keys made from it.
    private var snapshot: Published<JWKSetSnapshot>.Copy
    private var keys: VerificationKeys
    private let signatures: VerifiedSignatureCache
    private let revocations: Revocations
    private let ownTokens: OwnTokenJudge
    /// The time until which the last token that must wait for keys waits.
    private(set) var waitsUntil = MonotonicInstant.never
    /// The requests that wait for a key outside the set.
    private var keyWaits = KeyWaits()
    /// The payload and the nonce of the last token; the ranges of its claims point into this payload.
    private(set) var workspace = VerificationWorkspace()

    init(_ core: ServiceCore, signatureCapacity: Int, _ ownTokens: OwnTokenJudge) {
        (cache, revocations, self.ownTokens) = (core.cache, core.revocations, ownTokens)
        signatures = VerifiedSignatureCache(capacity: signatureCapacity, metrics: core.metrics)
        snapshot = Published.Copy(cache.published)
        keys = VerificationKeys(snapshot.value.keySet)
    }

    /// Judges a token; nil if it must wait for keys, until ``waitsUntil``.
    /// - Parameter texts: The texts to return if the token is remembered; nil verifies every token.
    @inline(__always)
    func judge(
        _ token: Span<UInt8>,
        _ expectation: TokenExpectation,
        _ texts: ClaimSet? = nil,
        verifier: TokenVerifier,
        _ exchange: inout HTTPExchange,
        _ bytes: Span<UInt8>
    ) throws(Rejection) -> VerifiedClaims? {
        // A request that must keep waiting takes a place again.
        let hasWaited = keyWaits.remove(exchange.context.request)
        guard revocations.isKnown else { throw Self.unknownRevocations }
        // The second and third attempts are for a key set published between the check and the question to the cache.
        for _ in 0..<3 {
            refreshKeys()
            // Keys older than `max-stale` verify no token.
            guard !keys.isEmpty, snapshot.value.isUsable(at: exchange.context.now) else {
                if try waitForKeys(&exchange, bytes, refusal: Rejection(.keysUnavailable)) { return nil }
                continue
            }
            let now = NumericDate.now
            let claims: VerifiedClaims
            do throws(Rejection) {
                if let texts {
                    claims = try signatures.judge(
                        token,
                        expectation,
                        texts: texts,
                        verifier: verifier,
                        keys: keys,
                        now: now,
                        workspace: &workspace
                    )
                } else {
                    claims = try verifier.judge(token, expectation, keys: keys, now: now, workspace: &workspace)
                }
            } catch {
                // A token of this service is not Facebook's, whatever its `typ` is, and Facebook is not asked for its key.
                if [.unknownKey, .notAnIDToken].contains(error.code), ownTokens.isOwn(token) { throw .ownToken }
                // A key ID that is too long for any published key is empty here; it causes no fetch.
                guard error.code == .unknownKey, !workspace.keyID.isEmpty else { throw error.of(token) }
                let isLong = bytes.count > KeyWaits.usualByteCount
                let wait = (keyID: JWKSetCache.hash(workspace.keyID.span), isLong: isLong)
                if try waitForKeys(&exchange, bytes, wait, hasWaited: hasWaited, refusal: error) { return nil }
                continue
            }
            if revocations.count > 0 { try requireInForce(claims) }
            return claims
        }
        throw Rejection(.keysUnavailable, "The issuer's keys are changing; try again shortly.")
    }

    func abandon(_ request: ParkedRequest) { keyWaits.remove(request) }

    func isWaiting(_ request: ParkedRequest) -> Bool { keyWaits.contains(request) }

    /// Takes the newest key set. It usually costs one atomic load.
    private func refreshKeys() {
        guard snapshot.isOld else { return }
        let newer = snapshot.renewed
        // A longer lifetime of the same keys leaves the contexts unchanged.
        if newer.value.keySetVersion != snapshot.value.keySetVersion {
            keys = VerificationKeys(newer.value.keySet)
        }
        snapshot = newer
    }

    private func requireInForce(_ claims: VerifiedClaims) throws(Rejection) {
        let payload = workspace.payload.span
        let (app, user) = (JSONText.value(payload, claims.audience), JSONText.value(payload, claims.subject))
        try revocations.requireInForce(app: app.utf8.span, user: user.utf8.span, issuedAt: claims.issuedAt)
    }

    /// A replica that starts while Redis is unreachable knows no revocations yet, so it accepts no token.
    static var unknownRevocations: Rejection {
        Rejection(.replayStoreUnavailable, "The revocations have not been read since the start; try again shortly.")
    }
}

extension TokenJudge {
    /// Handles a request if its key is missing: parks it until ``waitsUntil`` at the latest (true), lets it try again, or
    /// throws its answer. The issuer may have rotated its keys, so a request with an unknown key ID waits for a fetch.
    /// - Parameters:
    ///   - wait: Nil if there are no keys at all, so that the request waits only for a running fetch.
    ///   - hasWaited: True if the request already had a place among the waiting ones.
    ///   - refusal: The answer if the issuer has no such key.
    private func waitForKeys(
        _ exchange: inout HTTPExchange,
        _ bytes: Span<UInt8>,
        _ wait: KeyWaits.Wait? = nil,
        hasWaited: Bool = false,
        refusal: Rejection
    ) throws(Rejection) -> Bool {
        let context = exchange.context
        let mayWait = hasWaited || wait.map { keyWaits.hasRoom(for: $0) } ?? true
        let answer = CallTrace.$parent.withValue(TraceParent.passedOn(exchange.head, bytes)) {
            cache.missingKey(
                wait?.keyID,
                seenEpoch: snapshot.value.epoch,
                waitingSince: context.firstByteAt,
                mayWait: mayWait,
                now: context.now
            )
        }
        // An outage or an overload is not the token's fault, so the status is not 401.
        switch answer {
        case .wait(let moment) where context.visit != .expired:
            if let wait { keyWaits.add(context.request, wait) }
            waitsUntil = moment
            return true
        case .lookAgain: return false
        case .unknown: throw refusal
        case .wait: throw Rejection(wait == nil ? .keysUnavailable : .keyChecksExhausted)
        case .unavailable(let seconds): throw Rejection(.keysUnavailable, retryAfter: seconds)
        case .exhausted(let seconds): throw Rejection(.keyChecksExhausted, retryAfter: seconds)
        }
    }
}

/// The requests of one worker that wait for an unknown key until the next fetch.
///
/// Any client can send tokens with made-up key IDs, so the number of places is small. After a rotation all genuine
/// tokens name the same new key, and an attacker cannot know its ID in advance. A key ID that another request already
/// waits for may therefore use the same number of places again.
struct KeyWaits {
    /// 512: enough for a hundred made-up key IDs a second, for as long as a request waits.
    private static let places = 512
    /// Longer requests share an eighth of the places, which bounds their memory. 8 KiB is four times a genuine one.
    static let usualByteCount = 8_192

    typealias Wait = (keyID: UInt64, isLong: Bool)

    private var waits: [ParkedRequest: Wait] = [:]
    private var requestsByKeyID: [UInt64: Int] = [:]
    private var longCount = 0

    func contains(_ request: ParkedRequest) -> Bool { waits[request] != nil }

    /// It visits no waiting request, so full places do not make the next check slower.
    func hasRoom(for wait: Wait) -> Bool {
        if wait.isLong, longCount >= Self.places / 8 { return false }
        return waits.count < (requestsByKeyID[wait.keyID] == nil ? Self.places : 2 * Self.places)
    }

    mutating func add(_ request: ParkedRequest, _ wait: Wait) {
        waits[request] = wait
        requestsByKeyID[wait.keyID, default: 0] += 1
        if wait.isLong { longCount += 1 }
    }

    /// - Returns: True if the request waited.
    @discardableResult
    mutating func remove(_ request: ParkedRequest) -> Bool {
        guard !waits.isEmpty, let wait = waits.removeValue(forKey: request) else { return false }
        let others = requestsByKeyID[wait.keyID, default: 1] - 1
        requestsByKeyID[wait.keyID] = others > 0 ? others : nil
        if wait.isLong { longCount -= 1 }
        return true
    }
}

/// The tokens with a signature verified earlier, found by their SHA-256. The same token then needs no RSA operation and is
/// not decoded again. Each worker has one.
///
/// Only facts that do not age are kept: a key of this set signed these bytes, and they contain these claims. All other
/// checks are made again each time. Only accepted tokens are added, so that forged or expired ones cannot push out others.
package final class VerifiedSignatureCache {
    package private(set) var tokens: RecentDigests
    /// The set that signed them: another one removes all.
    private var keys: VerificationKeys?
    private let metrics: ServiceMetrics?

    /// 10,000: the number of people that use one worker within minutes, in 2 MB.
    package static let defaultCapacity = 10_000
    /// The most that can be configured: 1,000,000 for each worker, up to 280 MB, if the memory has room for them.
    package static let greatestCapacity = 1_000_000

    package init(capacity: Int, metrics: ServiceMetrics? = nil) {
        self.metrics = metrics
        tokens = RecentDigests(capacity: capacity)
    }

    /// Judges a token like the verifier, but skips the work that is remembered; remembers the token if it is accepted.
    /// - Parameter texts: The texts to return; others may be missing.
    package func judge(
        _ token: Span<UInt8>,
        _ expectation: TokenExpectation,
        texts: ClaimSet,
        verifier: TokenVerifier,
        keys: VerificationKeys,
        now: NumericDate,
        workspace: inout VerificationWorkspace
    ) throws(Rejection) -> VerifiedClaims {
        guard tokens.capacity > 0, token.count <= VerificationLimits.tokenByteCount,
            let digest = try? SHA256.digest(of: token)
        else {
            return try verifier.judge(token, expectation, keys: keys, now: now, workspace: &workspace)
        }
        if keys !== self.keys {
            if self.keys?.areSame(as: keys) != true { tokens = RecentDigests(capacity: tokens.capacity) }
            self.keys = keys
        }
        let known = tokens.find(digest)
        metrics?.count(.signature(isRemembered: known != nil))
        if case .some(let reading?) = known,
            let claims = verifier.accept(reading, of: token, expectation, texts, now: now, workspace: &workspace)
        {
            tokens.use(digest, reading)
            return claims
        }
        let claims = try verifier.judge(
            token,
            expectation,
            keys: keys,
            isSigned: known != nil,
            now: now,
            workspace: &workspace
        )
        tokens.use(digest, known ?? CachedClaims(claims, of: token))
        return claims
    }
}

/// The most recently used digests, each with a value, in two generations. When the newer one has half of ``capacity``,
/// it becomes the older one, and the digests that were used only before are forgotten.
///
/// So a digest stays until half of ``capacity`` others were used since, and a flood cannot remove it earlier. A random
/// secret decides which digests share a bucket (`Hasher`), so that a client cannot choose digests that collide.
package struct RecentDigests: Sendable {
    /// Nil for a token that does not fit into ``CachedClaims``.
    package typealias Value = CachedClaims?

    /// The greatest memory of a digest with its value, in bytes: a dictionary fills at least three eighths of its places.
    package static var bytesPerEntry: Int { (MemoryLayout<SHA256Digest>.stride + MemoryLayout<Value>.stride) * 8 / 3 }

    package let capacity: Int
    private var newer: [SHA256Digest: Value] = [:]
    private var older: [SHA256Digest: Value] = [:]

    package init(capacity: Int) { self.capacity = max(0, capacity) }

    package var count: Int { newer.count + older.count }

    /// The value of a digest; nil if it is not kept. All 32 bytes are compared.
    package func find(_ digest: SHA256Digest) -> Value? { newer[digest] ?? older[digest] }

    /// Marks the digest as the most recently used, and adds it if it is not kept.
    package mutating func use(_ digest: SHA256Digest, _ value: Value) {
        guard capacity > 0 else { return }
        newer.updateValue(value, forKey: digest)
        guard newer.count >= (capacity + 1) / 2 else { return }
        older = newer
        newer = [:]
    }
}
