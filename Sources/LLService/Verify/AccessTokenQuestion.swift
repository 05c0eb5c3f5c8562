package import LLHTTP
package import LimitedLogin

/// The questions to Graph about one access token, and the verdict on its answers. The first question is about the
/// token; the second, about the person, is asked only if the token is for one of the apps
/// (developers.facebook.com/docs/graph-api/reference/v26.0/debug_token).
package struct AccessTokenQuestion: Sendable {
    private let token: GraphAccessToken
    /// The apps that the token may be for, with their secrets. They are tried one after another.
    private var apps: [AppSecret]
    private let subject: String?
    private var nonce: NonceExpectation?
    private let policy: VerificationPolicy

    /// The question about a text that may be no access token.
    /// - Parameter apps: Nil if access tokens are not accepted.
    /// - Throws: A refusal if the settings or the token's form do not allow the question.
    package init(
        checking token: [UInt8],
        apps: [AppSecret]?,
        subject: String?,
        policy: VerificationPolicy
    ) throws(Rejection) {
        guard let apps else {
            throw Rejection(
                .accessTokenNotAllowed,
                "Access tokens are not accepted here; send an id token, or see LIMITED_LOGIN_ACCESS_TOKENS."
            )
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
        let (nonces, mustBeIssued) = (settings.verifier.nonces, binding.requiresIssuedNonce)
        guard !mustBeIssued || nonces != nil else { throw .noNonceIssuer }
        let given = binding.givenNonce.flatMap { Nonce(String(decoding: $0, as: UTF8.self)) }
        guard given != nil || binding.givenNonce == nil else { throw .invalidNonce }
        // With a user the token prolongs a session: its nonce was used up when that began.
        let isRefresh = given != nil && subject != nil
        nonce = NonceExpectation(given, nonces, mustBeIssued: mustBeIssued, isRefresh: isRefresh)
    }

    /// Asks Graph. It blocks the thread until there is a verdict or the time is over.
    /// - Parameter now: Returns the time for the verdict; called after Graph has answered.
    package func ask(
        _ client: GraphClient,
        until deadline: MonotonicInstant,
        now: () -> NumericDate
    ) throws(Rejection) -> VerifiedAccessToken {
        let answer = try inspection(client, until: deadline)
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
            try client.me(fields, with: token, app: app, until: deadline)
        }
        var verified = try judged { try VerifiedAccessToken(me: person, of: inspection) }
        guard let nonce else { return verified }
        let info = try ofTokenItself { () throws(GraphFailure) in
            try client.loginInfo(of: token, appID: inspection.appID, until: deadline)
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

    /// Graph's answer to the first app that it accepts. Graph answers the token's own app alone. If one app cannot ask
    /// now, the question stays open, unless another app gets the answer.
    private func inspection(_ client: GraphClient, until deadline: MonotonicInstant) throws(Rejection) -> [UInt8] {
        var setback: GraphFailure?
        var answered = 0
        for app in apps {
            do throws(GraphFailure) {
                if let answer = try client.inspection(of: token, app: app, until: deadline) { return answer }
                answered += 1
            } catch {
                setback = setback ?? error
                guard MonotonicClock.now() < deadline else { break }
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
        // This question revokes nothing.
        failure.mayBeDone = false
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
