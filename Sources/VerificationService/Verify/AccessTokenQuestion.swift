package import Graph
package import LimitedLogin
package import Sockets

/// What Graph is asked about one access token, and the verdict on what it says: first whose token it is, and only where
/// it is one of ours, whose person (developers.facebook.com/docs/graph-api/reference/v26.0/debug_token).
package struct AccessTokenQuestion: Sendable {
    /// Why there is no verdict, or a refusal.
    package enum Failure: Error, Sendable {
        case rejected(AccessTokenRejection)
        case graph(GraphFailure)
    }

    package let token: GraphAccessToken
    /// The apps the token may be for, each with what it proves itself with; each is asked in turn.
    package let apps: [AppSecret]
    /// The person it must belong to; nil for anybody.
    package let subject: String?

    package init(token: GraphAccessToken, apps: [AppSecret], subject: String?) {
        self.token = token
        self.apps = apps
        self.subject = subject
    }

    /// Asks; blocks the thread until there is a verdict or the time is over.
    /// - Parameters:
    ///   - now: the time to judge as of, asked for when Graph has answered; nil where this machine has none.
    package func ask(
        _ client: GraphClient,
        metrics: ServiceMetrics? = nil,
        until deadline: MonotonicInstant,
        now: () -> NumericDate?
    ) throws(Failure) -> VerifiedAccessToken {
        let answer = try inspection(client, metrics, until: deadline)
        guard let moment = now() else { throw .graph(GraphFailure(.other, reason: "no time to judge as of")) }
        let inspection = try judged { () throws(AccessTokenRejection) in
            try AccessTokenInspection(debugToken: answer, appIDs: apps.map(\.appID), subject: subject, now: moment)
        }
        let person = try me(inspection, client, metrics, until: deadline)
        return try judged { () throws(AccessTokenRejection) in try VerifiedAccessToken(me: person, of: inspection) }
    }

    private func judged<Verdict>(
        _ judge: () throws(AccessTokenRejection) -> Verdict
    ) throws(Failure) -> Verdict {
        do throws(AccessTokenRejection) {
            return try judge()
        } catch {
            // An answer that cannot be read is no fault of the token.
            guard error.code != nil else { throw .graph(GraphFailure(.unreadableAnswer)) }
            throw .rejected(error)
        }
    }

    /// The answer of the first app that Graph tells the token to. It tells it to the token's own app alone, so that an
    /// app that cannot ask now leaves the question open, unless another one is told.
    private func inspection(
        _ client: GraphClient,
        _ metrics: ServiceMetrics?,
        until deadline: MonotonicInstant
    ) throws(Failure) -> [UInt8] {
        var setback: GraphFailure?
        for app in apps {
            do throws(GraphFailure) {
                let answer = try ServiceMetrics.counting(.debugToken, in: metrics) { () throws(GraphFailure) in
                    try client.inspection(of: token, app: app, until: deadline)
                }
                if let answer { return answer }
            } catch {
                setback = setback ?? error
                guard MonotonicClock.now() < deadline else { break }
            }
        }
        if let setback { throw .graph(setback) }
        throw .rejected(.otherApp)
    }

    private func me(
        _ inspection: AccessTokenInspection,
        _ client: GraphClient,
        _ metrics: ServiceMetrics?,
        until deadline: MonotonicInstant
    ) throws(Failure) -> [UInt8] {
        guard let app = apps.first(where: { $0.appID == inspection.appID }) else { throw .rejected(.otherApp) }
        do throws(GraphFailure) {
            return try ServiceMetrics.counting(.me, in: metrics) { () throws(GraphFailure) in
                try client.me(VerifiedAccessToken.fields(for: inspection), with: token, app: app, until: deadline)
            }
        } catch {
            var failure = error
            // The app's own token was good in the question before, so this is about the person's.
            if failure.error == .accessTokenRefused, failure.advice == nil {
                failure.advice = "Graph refuses the person's access token, which it just called valid; try again."
            }
            throw .graph(failure)
        }
    }
}

extension GraphFailure {
    /// The failure of a question about an access token: what other routes answer as the person's or the app's fault (403,
    /// 404, 409) tells nothing about the token here, and a caller would take it for a refusal.
    package var ofAccessToken: GraphFailure {
        var failure = self
        // Nothing was to be revoked here.
        failure.mayBeDone = false
        failure.advice = error == .timedOut ? "Graph did not answer in time; try again." : sentence
        if error.status != 429, error.status < 500 { failure.error = .other }
        return failure
    }
}
