internal import LLHTTP
internal import LLJOSE
internal import LLStores
internal import LimitedLogin

/// The last step of a verdict: it uses up the nonce, the token itself, or the request's proof, and then writes the answer.
/// A credential that is refused for another reason uses up nothing.
enum ReplayGuard {
    /// The longest time that a request waits. The store has a shorter limit; this one applies if the store exceeds it.
    static let patience = Duration.milliseconds(900)

    typealias Writer = @Sendable (_ response: inout HTTPResponse) -> Void

    /// Accepts a credential that is good in all else, once these entries are used up.
    /// - Parameters:
    ///   - entries: In the order in which they are checked; nil for one that cannot be made.
    ///   - birthIsKnown: False if the token's time of issue is estimated, perhaps too early: a loss of the store's memory
    ///     after it is then not the token's fault.
    static func accept(
        _ person: String?,
        using entries: [ReplayEntry?],
        birthIsKnown: Bool = true,
        _ worker: WorkerContext,
        _ exchange: inout HTTPExchange,
        _ bytes: Span<UInt8>,
        write: @escaping Writer
    ) throws(Rejection) -> Outcome {
        guard !entries.isEmpty else {
            write(&exchange.response)
            return .done(person: person)
        }
        let unknown = Rejection(.replayStoreUnavailable)
        let known = entries.compactMap(\.self)
        guard known.count == entries.count else { throw unknown }
        let question = ReplayLookup(known)
        let metrics = worker.core.metrics
        switch worker.core.replayStore {
        case .memory(let store):
            let verdict = store.remember(question, now: WallClock.unixMilliseconds())
            metrics.count(.replayAnswer(verdict.answer))
            try require(verdict, birthIsKnown)
            write(&exchange.response)
            return .done(person: person)
        case .redis(let store):
            let deadline = MonotonicClock.now() + patience
            return try worker.wait(&exchange, bytes, until: deadline, late: unknown, busy: unknown) { waiting in
                store.remember(question, now: MonotonicClock.now()) { verdict in
                    metrics.count(.replayAnswer(verdict.answer))
                    waiting.finish { _, exchange, _ throws(Rejection) in
                        try require(verdict, birthIsKnown)
                        write(&exchange.response)
                        return .done(person: person)
                    }
                }
                return true
            }
        }
    }

    private static func require(_ verdict: ReplayVerdict, _ birthIsKnown: Bool) throws(Rejection) {
        switch (verdict.answer, verdict.kind) {
        case (.first, _): return
        case (.seen, .nonce): throw Rejection(.nonceUsed)
        case (.olderThanStore, .nonce): throw .nonceOlderThanStore
        case (.seen, .token): throw Rejection(.tokenReplayed)
        case (.olderThanStore, .token) where birthIsKnown: throw .tokenOlderThanStore
        case (.olderThanStore, .token):
            throw Rejection(
                .replayStoreUnavailable,
                "Facebook does not tell when this access token was issued. It may be older than the memory of accepted tokens, which "
                    + "was lost, so it cannot be known whether it was accepted before: send an id token, or log in anew."
            )
        case (.seen, .proof): throw .proofReplayed
        case (.tooMany, _):
            throw Rejection(
                .tooManyProofs,
                "The device's key, or its person, has as many proofs as may be remembered at a time; try again when one has expired.",
                retryAfter: verdict.retryAfterSeconds
            )
        // The device makes a new proof for each request, so a proof older than the store's memory is not its fault.
        case (.unavailable, _), (.olderThanStore, _), (.seen, _): throw Rejection(.replayStoreUnavailable)
        }
    }
}

extension ReplayEntry {
    /// The entry of an issued nonce. Any credential of the app uses it up.
    init?(_ nonce: RecognizedNonce, app: Span<UInt8>) {
        self.init(
            .nonce,
            scope: app,
            nonce.identity.span,
            issuedAt: nonce.issuedAtMilliseconds,
            expiresAt: nonce.expiresAtMilliseconds
        )
    }

    /// The entry of a DPoP proof: its `jti`, within its key (RFC 9449 section 11.1).
    /// - Parameter app, user: the login whose token comes with the proof.
    init?(_ proof: DPoPProof, app: String, user: String) {
        // In range: the moment is at most 2⁵³ seconds.
        let issuedAt = UInt64(proof.issuedAt.secondsSince1970 * 1_000)
        self.init(
            .proof,
            scope: proof.keyThumbprint.utf8.span,
            proof.tokenID.utf8.span,
            issuedAt: issuedAt,
            // One more millisecond makes up for the fraction that was cut off.
            expiresAt: issuedAt + UInt64(DPoPProof.greatestAgeSeconds) * 1_000 + 1,
            person: (app, user)
        )
    }

    /// The entries that an id token uses up: the nonce if it is an issued one; if the policy says so, the token, and the
    /// access token sent with it, since a reload may let it be accepted by itself.
    static func all(
        _ claims: VerifiedClaims,
        _ payload: Span<UInt8>,
        nonce: RecognizedNonce?,
        usesToken: Bool,
        accessToken: [UInt8]? = nil
    ) -> [ReplayEntry?] {
        // Decoded, so that another spelling in JSON is the same entry.
        let app = JSONText.value(payload, claims.audience)
        // The nonce comes first: if it is refused, the token stays unused.
        var entries: [ReplayEntry?] = []
        if let nonce { entries.append(ReplayEntry(nonce, app: app.utf8.span)) }
        guard usesToken else { return entries }
        // The entry lasts for the greatest possible skew: a reload may raise the configured one, and the token
        // would be good again. In range: both times are at most 2⁵³ seconds, and the skew is at most 300.
        let skew = UInt64(VerificationLimits.clockSkewSeconds) * 1_000
        let (name, end) = (JSONText.value(payload, claims.tokenID), UInt64(claims.expiresAt.secondsSince1970 * 1_000))
        entries.append(ReplayEntry(token: name.utf8.span, app: app, issuedAt: claims.issuedAt, until: end + skew))
        if let accessToken {
            // `at_hash` proves that both were issued at the same time. Graph is not asked about its expiry: 90 days are
            // more than the 60 of the tokens for Facebook's SDKs.
            let end = hour(after: claims.issuedAt.secondsSince1970 + 7_776_000)
            entries.append(ReplayEntry(token: accessToken.span, app: app, issuedAt: claims.issuedAt, until: end))
        }
        return entries
    }

    /// The entries that an access token uses up, likewise.
    static func all(
        _ token: [UInt8],
        _ verified: VerifiedAccessToken,
        usesToken: Bool,
        now: NumericDate
    ) -> [ReplayEntry?] {
        let inspection = verified.inspection
        var entries: [ReplayEntry?] = []
        if let nonce = verified.nonce?.issued { entries.append(ReplayEntry(nonce, app: inspection.appID.utf8.span)) }
        guard usesToken else { return entries }
        // Ten years, the greatest lifetime in the Redis store, for a token without an expiry.
        let longest = now.secondsSince1970 + 315_360_000
        let end = hour(after: min(inspection.expiresAt?.secondsSince1970 ?? .infinity, longest))
        let born = inspection.earliestIssue(now: now)
        entries.append(ReplayEntry(token: token.span, app: inspection.appID, issuedAt: born, until: end))
        return entries
    }

    /// The end of an access token's entry in milliseconds, rounded up to an hour: such tokens live for months.
    private static func hour(after seconds: Double) -> UInt64 {
        let step: UInt64 = 3_600_000
        return (UInt64(seconds * 1_000) / step + 1) * step
    }

    /// The entry of a token within its app: an id token's by its `jti`, an access token's by its SHA-256.
    private init?(token: Span<UInt8>, app: String, issuedAt: NumericDate, until end: UInt64) {
        let birth = UInt64(issuedAt.secondsSince1970 * 1_000)
        self.init(.token, scope: app.utf8.span, token, issuedAt: birth, expiresAt: end)
    }
}
