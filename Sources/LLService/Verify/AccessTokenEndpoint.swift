internal import LLHTTP
internal import LLJOSE
internal import LLStores
package import LimitedLogin

/// An access token at `POST /verify`: the service asks Graph and judges its answer.
enum AccessTokenEndpoint {
    /// Prepares the answer to a token that is good. Every step that can fail is taken here, before the token is used up.
    typealias Preparation = @Sendable (VerifiedAccessToken, WorkerContext) throws(Rejection) -> ReplayGuard.Writer

    static func answer(
        _ worker: WorkerContext,
        _ request: LoginRequest,
        _ exchange: inout HTTPExchange,
        _ bytes: Span<UInt8>,
        prepare: @escaping Preparation
    ) throws(Rejection) -> Outcome {
        worker.subject = .accessToken
        let question = try AccessTokenQuestion(request, worker.settings)
        // Not 503, since any client can make up access tokens: load balancers would remove the service.
        let busy = Rejection(.tooManyAccessTokens)
        guard let graph = worker.core.graph else { throw busy }
        let deadline = exchange.context.now + graph.client.callTimeout
        let (owner, trace) = (worker.owner(&exchange, bytes), TraceParent.passedOn(exchange.head, bytes))
        let late = GraphFailure(.graphTimedOut).ofAccessToken.problem
        worker.count(request.expectation.binding.nonce, &exchange, bytes)
        let until = deadline + RevocationOrder.grace
        return try worker.wait(&exchange, bytes, until: until, late: late, busy: busy) { waiting in
            let drop = { @Sendable in waiting.finish { _, _, _ throws(Rejection) in throw busy } }
            let isWanted = { @Sendable in waiting.isAwaited }
            return graph.accessTokens.submit(owner: owner, drop: drop, isWanted: isWanted) {
                // Skip the call if the client has disconnected.
                guard waiting.isAwaited else { return }
                let outcome = CallTrace.$parent.withValue(trace) {
                    Result { () throws(Rejection) in
                        try question.ask(graph.client.until(deadline)) { .now }
                    }
                }
                waiting.finish { worker, exchange, bytes throws(Rejection) in
                    let (verified, now) = (try outcome.get(), NumericDate.now)
                    let token = verified.inspection
                    try worker.revocations.requireInForce(token, now)
                    let write = try prepare(verified, worker)
                    let (isOnce, isTold) = (worker.settings.rejectsReplays, token.issuedAt != nil)
                    let uses = ReplayEntry.all(request.token, verified, usesToken: isOnce, now: now)
                    let person = worker.auditName(token.appID, token.userID)
                    return try ReplayGuard.accept(person, using: uses, birthIsKnown: isTold, worker, &exchange, bytes) {
                        VerifyEndpoint.addFields(to: &$0)
                        write(&$0)
                    }
                }
            }
        }
    }
}

extension Revocations {
    /// Refuses a token that was, or may have been, issued before its login was revoked.
    fileprivate func requireInForce(_ token: AccessTokenInspection, _ now: NumericDate) throws(Rejection) {
        guard isKnown else { throw TokenJudge.unknownRevocations }
        let earliest = token.earliestIssue(now: now)
        guard let last = latest(app: token.appID.utf8.span, user: token.userID.utf8.span),
            earliest.wholeSeconds <= last.moment,
            // Facebook ended every token from before its callback, and Graph has just called this one valid.
            token.issuedAt != nil || last.kind != .callback
        else { return }
        if let doubt = doubt(last) { throw doubt }
        guard token.issuedAt == nil else { throw Rejection(.loginRevoked) }
        // Without an estimate the token is refused until the revocation is forgotten.
        let isEstimated = earliest.secondsSince1970 > 0
        let wait = isEstimated ? Int64(AccessTokenInspection.shortLifeSeconds) : Revocations.lifetimeSeconds
        let (revoked, good) = (CallbackEvent.text(of: last.moment), CallbackEvent.text(of: last.moment + wait))
        throw Rejection(
            .loginRevoked,
            "The login was revoked at \(revoked), and Graph does not tell when this access token was issued, so it may be older. "
                + "A token like it is good for certain if its login begins after \(good); an id token is good at once.",
            hint: Rejection.Code.refuseTheLogin
        )
    }
}

/// The answer to an accepted access token: Graph's data about the token, then the person, as for an id token.
package enum AccessTokenAnswer {
    package static func write(_ verified: VerifiedAccessToken, asked: [String]?, to body: inout [UInt8]) {
        let token = verified.inspection
        JSONWriter.raw("{\"access_token\":{", to: &body)
        JSONWriter.member("app_id", token.appID, to: &body)
        JSONWriter.member("user_id", token.userID, to: &body)
        JSONWriter.member("issued_at", seconds(token.issuedAt), to: &body)
        JSONWriter.member("expires_at", seconds(token.expiresAt), to: &body)
        JSONWriter.member("data_access_expires_at", seconds(token.dataAccessExpiresAt), to: &body)
        JSONWriter.member("permissions", token.permissions, to: &body)
        JSONWriter.member("nonce", verified.nonce?.value, to: &body)
        JSONWriter.raw("}", to: &body)
        verified.profile.write(token.permissions, to: &body)
        if let asked {
            JSONWriter.member("missing_permissions", asked.filter { !token.permissions.contains($0) }, to: &body)
        }
        JSONWriter.raw("}", to: &body)
    }

    /// Whole seconds. Graph never sends a fraction; it would be cut off.
    private static func seconds(_ date: NumericDate?) -> Int? { date.map { Int(clamping: $0.wholeSeconds) } }
}

/// The questions to Graph about one access token, and the verdict on its answers. The second, about the person, is
/// asked only if the token is for one of the apps (developers.facebook.com/docs/graph-api/reference/v26.0/debug_token).
package struct AccessTokenQuestion: Sendable {
    private let token: GraphAccessToken
    /// The apps that the token may be for. They are tried one after another.
    private var apps: [AppSecret]
    private let subject: String?
    private var nonce: NonceExpectation?
    private let policy: VerificationPolicy

    /// The question about a text that may be no access token.
    /// - Parameter apps: Nil if access tokens are not accepted.
    package init(
        checking token: [UInt8],
        apps: [AppSecret]?,
        subject: String?,
        policy: VerificationPolicy
    ) throws(Rejection) {
        guard let apps else {
            let sentence = "Access tokens are not accepted here; send an id token, or see LIMITED_LOGIN_ACCESS_TOKENS."
            throw Rejection(.accessTokenNotAllowed, sentence)
        }
        let shape = AccessTokenInspection.shape(token.span)
        guard shape != .gaming else { throw .accessTokenOfGaming }
        guard shape == .accessToken else {
            throw Rejection(
                .accessTokenInvalid,
                "An access token has 20 to 4,096 visible ASCII characters, and nothing around it.",
                hint: PastedToken.remedy(for: token.span)
            )
        }
        (self.token, self.apps, self.subject, self.policy) = (GraphAccessToken(token), apps, subject, policy)
    }

    /// The question of a caller. The form of `POST /token` has checked that the token is no JWT.
    init(_ request: LoginRequest, _ settings: RuntimeSettings) throws(Rejection) {
        guard AccessTokenInspection.shape(request.token.span) != .jwt else {
            throw Rejection(.invalidRequest, "The member access_token holds a JWT: send it as id_token.")
        }
        let binding = request.expectation.binding
        let subject = binding.subject.map { String(decoding: $0, as: UTF8.self) }
        let (apps, policy) = (settings.accessTokenApps, settings.verifier.policy)
        try self.init(checking: request.token, apps: apps, subject: subject, policy: policy)
        if let appID = request.expectation.appIDBytes {
            self.apps.removeAll { !$0.appID.utf8.elementsEqual(appID) }
            guard !self.apps.isEmpty else { throw Rejection(.unknownApp, "The app_id is not a configured app's.") }
        }
        guard request.hasAuthNonce else { return }
        let (nonces, mustBeIssued) = (settings.verifier.nonces, binding.issue == .required)
        guard !mustBeIssued || nonces != nil else { throw .noNonceIssuer }
        let given = binding.nonce.flatMap { Nonce(String(decoding: $0, as: UTF8.self)) }
        guard given != nil || binding.nonce == nil else { throw .invalidNonce }
        // With a user the token prolongs a session: its nonce was used up when that began.
        let isRefresh = given != nil && subject != nil
        nonce = NonceExpectation(given, nonces, mustBeIssued: mustBeIssued, isRefresh: isRefresh)
    }

    /// Asks Graph. It blocks the thread until there is a verdict or the time is over.
    /// - Parameters:
    ///   - client: Its deadline (``GraphClient/until(_:)``) covers all questions together.
    ///   - now: Returns the time for the verdict; called after Graph has answered.
    package func ask(_ client: GraphClient, now: () -> NumericDate) throws(Rejection) -> VerifiedAccessToken {
        let answer = try inspection(client)
        let inspection = try judged {
            try AccessTokenInspection(
                debugToken: answer,
                appIDs: apps.map(\.appID),
                subject: subject,
                maximumTokenAge: policy.maximumTokenAge,
                clockSkew: policy.clockSkew,
                now: now()
            )
        }
        guard let app = apps.first(where: { $0.appID == inspection.appID }) else { throw .accessTokenOfOtherApp }
        let fields = VerifiedAccessToken.fields(for: inspection)
        let person = try ofTokenItself { () throws(GraphFailure) in
            try client.me(fields, with: token, app: app)
        }
        var verified = try judged { try VerifiedAccessToken(me: person, of: inspection) }
        guard let nonce else { return verified }
        let info = try ofTokenItself { () throws(GraphFailure) in
            try client.loginInfo(of: token, appID: inspection.appID)
        }
        verified.nonce = try judged {
            try AccessTokenNonce(accessTokenInfo: info, of: verified, expecting: nonce, now: now())
        }
        return verified
    }

    private func judged<Verdict>(_ judge: () throws -> Verdict) throws(Rejection) -> Verdict {
        do throws(Rejection) {
            return try Rejection.judging(judge)
        } catch {
            // An unreadable answer is not the token's fault.
            throw error.code.kind == .outage ? GraphFailure(.graphUnreadableAnswer).ofAccessToken.problem : error
        }
    }

    /// Graph answers the token's own app alone. If one app cannot ask now, the question stays open, unless another app
    /// gets the answer.
    private func inspection(_ client: GraphClient) throws(Rejection) -> [UInt8] {
        var setback: GraphFailure?
        var answered = 0
        for app in apps {
            do throws(GraphFailure) {
                if let answer = try client.inspection(of: token, app: app) { return answer }
                answered += 1
            } catch {
                setback = setback ?? error
                guard MonotonicClock.now() < client.deadline else { break }
            }
        }
        if var setback = setback?.ofAccessToken {
            // With many apps the deadline would end every try.
            if setback.error == .graphTimedOut, answered > 0 {
                setback.advice =
                    "In the time for one token \(answered) of the \(apps.count) apps got an answer, and the token is none of "
                    + "theirs: send its app_id with it."
            }
            throw setback.problem
        }
        throw .accessTokenOfOtherApp
    }

    /// Asks with the person's token: error 190 is then about that token.
    private func ofTokenItself(_ ask: () throws(GraphFailure) -> [UInt8]) throws(Rejection) -> [UInt8] {
        do throws(GraphFailure) {
            return try ask()
        } catch {
            guard error.code == 190 else { throw error.ofAccessToken.problem }
            throw .accessToken(subcode: error.subcode)
        }
    }
}

extension GraphFailure {
    /// The failure of a question about an access token. Other routes answer some of these as the person's or the app's
    /// fault (403, 404, 409). Here they say nothing about the token, and a caller would mistake them for a refusal.
    package var ofAccessToken: GraphFailure {
        var failure = self
        switch error {
        case .graphTimedOut: failure.advice = "Graph did not answer in time; try again."
        case .graphPermissionNotGranted, .graphPermissionDenied, .graphCapabilityMissing, .graphPolicyBlocked:
            failure.advice = "Facebook refuses the app itself, not the person: look for alerts in the App Dashboard."
        default: failure.advice = sentence
        }
        if error.kind != .outage { failure.error = .graphError }
        return failure
    }
}
