internal import LLHTTP
internal import LLJOSE
internal import LLStores
internal import LimitedLogin

/// The last step of a verdict: it uses up the nonce, the token itself, or the request's proof. A credential that is
/// refused for another reason uses up nothing.
///
/// The answer is written after that. The store in memory decides at once; for any other store the request is parked.
/// The token is not judged again.
enum ReplayGuard {
    /// The longest time that a request waits. The store has a shorter limit; this one applies if the store exceeds it.
    static let patience = Duration.milliseconds(900)

    typealias Writer = @Sendable (_ response: inout HTTPResponse) -> Void

    /// - Parameters:
    ///   - birthIsKnown: True if the token's time of issue is known, and not estimated. An estimate may be too early: a
    ///     loss of the store's memory after it is then not the token's fault.
    static func consume(
        _ question: ReplayLookup?,
        of credential: Credential,
        _ person: String?,
        birthIsKnown: Bool = true,
        _ worker: WorkerContext,
        _ exchange: inout HTTPExchange,
        _ bytes: Span<UInt8>,
        write: @escaping Writer
    ) throws(Rejection) -> Outcome {
        guard let question else { throw Rejection(.replayStoreUnavailable) }
        let metrics = worker.core.metrics
        switch worker.core.replayStore {
        case .memory(let store):
            let verdict = store.remember(question, now: WallClock.unixMilliseconds())
            metrics.countReplayAnswer(verdict)
            try require(verdict, birthIsKnown)
            write(&exchange.response)
            return .accepted(credential, person: person)
        case .redis(let store):
            let deadline = MonotonicClock.now() + patience
            let unknown = Rejection(.replayStoreUnavailable)
            let late: Route.Answer = { _, _, _ in .refused(credential, unknown) }
            return try worker.wait(&exchange, bytes, until: deadline, late: late, busy: unknown) { waiting in
                store.remember(question, now: MonotonicClock.now()) { verdict in
                    metrics.countReplayAnswer(verdict)
                    waiting.finish { _, exchange, _ in
                        do throws(Rejection) { try require(verdict, birthIsKnown) } catch {
                            return .refused(credential, error)
                        }
                        write(&exchange.response)
                        return .accepted(credential, person: person)
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
        case (.olderThanStore, .nonce): throw .nonceExpired(.olderThanStore)
        case (.seen, .token): throw .tokenReplayed(.remembered)
        case (.olderThanStore, .token): throw birthIsKnown ? .tokenReplayed(.olderThanStore) : unknownBirth
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

    private static var unknownBirth: Rejection {
        Rejection(
            .replayStoreUnavailable,
            "Facebook does not tell when this access token was issued. It may be older than the memory of accepted tokens, which "
                + "was lost, so it cannot be known whether it was accepted before: send an id token, or log in anew."
        )
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
}

extension ReplayLookup {
    /// The entry of a DPoP proof: its `jti`, within its key (RFC 9449 section 11.1).
    /// - Parameter app, user: the login whose token comes with the proof.
    init?(_ proof: DPoPProof, app: String, user: String) {
        // In range: the moment is at most 2⁵³ seconds.
        let issuedAt = UInt64(proof.issuedAt.secondsSince1970 * 1_000)
        let entry = ReplayEntry(
            .proof,
            scope: proof.keyThumbprint.utf8.span,
            proof.tokenID.utf8.span,
            issuedAt: issuedAt,
            // One more millisecond makes up for the fraction that was cut off.
            expiresAt: issuedAt + UInt64(DPoPProof.greatestAgeSeconds) * 1_000 + 1,
            person: (app, user)
        )
        guard let entry else { return nil }
        self.init([entry])
    }

    /// The entries that a verdict uses up: the nonce if it is an issued one, the token if the policy says so, and the
    /// access token sent with it, since a reload may let it be accepted by itself.
    init?(
        _ claims: VerifiedClaims,
        _ payload: Span<UInt8>,
        nonce: RecognizedNonce?,
        usesToken: Bool,
        accessToken: [UInt8]? = nil
    ) {
        // Decoded, so that another spelling in JSON is the same entry.
        let app = JSONText.value(payload, claims.audience)
        var entries: [ReplayEntry] = []
        if let nonce {
            guard let entry = ReplayEntry(nonce, app: app.utf8.span) else { return nil }
            // The nonce comes first: if it is refused, the token stays unused.
            entries.append(entry)
        }
        if usesToken {
            // The entry lasts for the greatest possible skew: a reload may raise the configured one, and the token
            // would be good again. In range: both times are at most 2⁵³ seconds, and the skew is at most 300.
            let skew = UInt64(VerificationLimits.clockSkewSeconds) * 1_000
            let entry = ReplayEntry(
                .token,
                scope: app.utf8.span,
                JSONText.value(payload, claims.tokenID).utf8.span,
                issuedAt: UInt64(claims.issuedAt.secondsSince1970 * 1_000),
                expiresAt: UInt64(claims.expiresAt.secondsSince1970 * 1_000) + skew
            )
            guard let entry else { return nil }
            entries.append(entry)
        }
        if let accessToken {
            guard let entry = Self.entry(ofAccessToken: accessToken, app: app, issuedAt: claims.issuedAt)
            else { return nil }
            entries.append(entry)
        }
        self.init(entries)
    }
}
