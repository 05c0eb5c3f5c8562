internal import LLHTTP1
internal import LLHTTPServer
internal import LLJOSE
internal import LLSockets
internal import LLStores
internal import LimitedLogin

/// The very last step of a verdict: its nonce, the token itself, or the request's proof is used up. A credential that
/// is refused for anything else uses up nothing.
///
/// The store in memory answers at once. Another answers later: then the answer to the request, which is written already,
/// is kept, the request parked, and the token not judged again.
enum FirstUse {
    /// Requests of one worker that wait for the store: what a second of a busy worker asks.
    static let waitingLimit = 8_192
    /// The longest a request waits. The store has its own, shorter limit; this one holds should it fail to keep it.
    static let patience = Duration.milliseconds(900)

    /// - Parameters:
    ///   - question: nil if it cannot be asked.
    ///   - birthIsKnown: whether it is known when the token was issued, and not estimated. An estimate may be too early, so
    ///     that a loss of memory after it is no fault of the token.
    ///   - response: the whole answer, which is written anew once the request has waited.
    /// - Returns: that the credential is accepted, or until when to wait.
    static func use(
        _ question: ReplayQuestion?,
        of credential: Credential,
        birthIsKnown: Bool = true,
        _ worker: WorkerParts,
        _ context: RequestContext,
        _ response: borrowing HTTPResponse
    ) throws(Problem) -> Outcome {
        guard let question else { throw unavailable }
        let metrics = worker.core.metrics
        switch worker.core.replayStore {
        case .memory(let store):
            let verdict = store.remember(question, now: WallClock.unixMilliseconds())
            metrics.countReplayAnswer(verdict)
            try require(verdict, birthIsKnown)
            return .accepted(credential)
        case .redis(let store):
            let deadline = MonotonicClock.now() + patience
            // The body of `/auth` is empty, but may have the room of another answer.
            let body = response.body.isEmpty ? [] : response.body
            let (jobs, fields) = (worker.firstUses, response.fields)
            let late: WorkerParts.Continuation = { _, _, _ in .refused(credential, unavailable) }
            let isBegun = jobs.begin(context, keeping: late, until: deadline) { request in
                let isAsked = store.remember(question, now: MonotonicClock.now()) { verdict in
                    metrics.countReplayAnswer(verdict)
                    let next: WorkerParts.Continuation = { _, _, response in
                        do throws(Problem) { try require(verdict, birthIsKnown) } catch {
                            return .refused(credential, error)
                        }
                        response.addFields(fields)
                        response.body += body
                        return .accepted(credential)
                    }
                    jobs.finish(request, next, now: MonotonicClock.now())
                }
                if !isAsked { metrics.countReplayAnswer(.unavailable) }
                return isAsked
            }
            guard isBegun else { throw unavailable }
            return .wait(until: deadline)
        }
    }

    private static func require(_ verdict: ReplayVerdict, _ birthIsKnown: Bool) throws(Problem) {
        switch (verdict.answer, verdict.kind) {
        case (.first, _): return
        case (.seen, .nonce): throw Problem(.nonceUsed)
        case (.beyondMemory, .nonce): throw Problem(.nonceExpired(.beyondMemory))
        case (.seen, .token): throw Problem(.tokenReplayed(.remembered))
        case (.beyondMemory, .token): throw birthIsKnown ? Problem(.tokenReplayed(.beyondMemory)) : unknownBirth
        case (.seen, .proof): throw Problem(.replayed)
        case (.tooMany, _):
            throw Problem(
                .tooManyProofs,
                "The device's key has as many proofs as may be remembered at a time; try again when one has expired.",
                retryAfter: verdict.retryAfterSeconds
            )
        // The device makes another proof for each request, so that one beyond memory is no fault of its own.
        case (.unavailable, _), (.beyondMemory, _), (.seen, _): throw unavailable
        }
    }

    private static var unknownBirth: Problem {
        Problem(
            .replayStoreUnavailable,
            "Facebook does not tell when this access token was issued. It may be older than the memory of accepted tokens, which "
                + "was lost, so it cannot be known whether it was accepted before: send an id token, or log in anew."
        )
    }

    static var unavailable: Problem {
        Problem(
            .replayStoreUnavailable,
            "It cannot be known now whether this was used before; try again shortly, with a new login or proof if need be."
        )
    }
}

extension ReplayEntry {
    /// An issued nonce, which any credential of the app's uses up.
    /// - Parameter app: its id.
    init?(_ nonce: RecognizedNonce, app: Span<UInt8>) {
        self.init(
            .nonce,
            scope: app,
            nonce.identity.span,
            bornAt: nonce.issuedAtMilliseconds,
            expiresAt: nonce.expiresAtMilliseconds
        )
    }
}

extension ReplayQuestion {
    /// The thing a DPoP proof uses up: its name, among those of its key (RFC 9449 section 11.1).
    init?(_ proof: DPoPProof) {
        // In range: the moment is at most 2⁵³ seconds.
        let issuedAt = UInt64(proof.issuedAt.secondsSince1970 * 1_000)
        let entry = ReplayEntry(
            .proof,
            scope: Array(proof.keyThumbprint.utf8).span,
            Array(proof.tokenID.utf8).span,
            bornAt: issuedAt,
            // One millisecond more for the fraction that was cut off.
            expiresAt: issuedAt + UInt64(DPoPProof.greatestAgeSeconds) * 1_000 + 1
        )
        guard let entry else { return nil }
        self.init([entry])
    }

    /// What a verdict uses up: the nonce where it is an issued one, the token where the policy says so, and the access token
    /// that came beside it where that would be accepted by itself.
    ///
    /// - Parameter accessToken: empty if none is used up.
    init?(
        _ claims: VerifiedClaims,
        _ payload: Span<UInt8>,
        nonce: RecognizedNonce?,
        usesToken: Bool,
        accessToken: [UInt8] = []
    ) {
        let scope = payload.extracting(claims.audience)
        var entries: [ReplayEntry] = []
        if let nonce {
            guard let entry = ReplayEntry(nonce, app: scope) else { return nil }
            // The first: a nonce that is refused leaves the token unused.
            entries.append(entry)
        }
        if usesToken {
            // The greatest skew, whatever is configured: a reload may raise it, and the token would be good again. In range:
            // both times are at most 2⁵³ seconds, and the skew 300.
            let skew = UInt64(VerificationLimits.clockSkewSeconds) * 1_000
            let entry = ReplayEntry(
                .token,
                scope: scope,
                payload.extracting(claims.tokenID),
                bornAt: UInt64(claims.issuedAt.secondsSince1970 * 1_000),
                expiresAt: UInt64(claims.expiresAt.secondsSince1970 * 1_000) + skew
            )
            guard let entry else { return nil }
            entries.append(entry)
        }
        if !accessToken.isEmpty {
            let entry = Self.entry(
                ofAccessToken: accessToken,
                app: JSONText.value(payload, claims.audience),
                issuedAt: claims.issuedAt
            )
            guard let entry else { return nil }
            entries.append(entry)
        }
        self.init(entries)
    }
}
