internal import LLBytes
package import LLHTTP
package import LimitedLogin

/// Asks Graph for a person's permissions and revokes them, with the app's own access token, and asks about a person's.
///
/// Each call blocks its thread until it is answered or its time is over. Only `debug_token` and `access_token_info` take
/// the person's token in their URL. The secret itself is never in a URL, only its proof.
package struct GraphClient: Sendable {
    package let callTimeout: Duration
    private let configuration: GraphConfiguration
    private let client: HTTPSClient
    private let metrics: ServiceMetrics?
    /// A random number below its argument, or 0. It sets the length of the pauses.
    private let random: @Sendable (UInt64) -> UInt64
    /// The latest time for the answer to a call.
    private(set) var deadline = MonotonicInstant.never

    package init(
        configuration: GraphConfiguration,
        client: HTTPSClient,
        metrics: ServiceMetrics? = nil,
        callTimeout: Duration = GraphLimits.callTimeout,
        random: @escaping @Sendable (UInt64) -> UInt64 = { $0 > 0 ? UInt64.random(in: 0..<$0) : 0 }
    ) {
        self.configuration = configuration
        self.client = client
        self.metrics = metrics
        self.callTimeout = callTimeout
        self.random = random
    }

    /// `GET /{user-id}/permissions`.
    package func permissions(of user: GraphUserID, app: AppSecret) throws(GraphFailure) -> UserPermissions {
        let request = try request(.get, "\(user.text)/permissions", by: app.accessToken, app)
        return try answered(.listPermissions, request, GraphAnswer.permissions)
    }

    /// `DELETE /{user-id}/permissions/{permission}`. Without a permission it revokes the whole login.
    package func revoke(_ permission: String?, of user: GraphUserID, app: AppSecret) throws(GraphFailure) {
        guard permission.map(PermissionName.isValid) != false else { throw GraphFailure(.graphInvalidParameter) }
        let tail = permission.map { "/\($0)" } ?? ""
        let request = try request(.delete, "\(user.text)/permissions\(tail)", by: app.accessToken, app)
        let operation: GraphOperation = permission == nil ? .revokeLogin : .revokePermission
        try answered(operation, request, GraphAnswer.revocation)
    }

    /// Uninstalls an app through Limited Login's own endpoint, which keeps the permissions. A POST is sent only once.
    package func uninstall(idToken: String, appID: String) throws(GraphFailure) {
        let form = HTTPSRequest.Body.form([("id_token", idToken), ("app_id", appID)])
        let request = HTTPSRequest(.post, configuration.uninstallURL, headers: Self.fields, body: form)
        try answered(.uninstall, request, GraphAnswer.uninstallation)
    }

    /// `GET /debug_token`, requested with the app's own token; nil if Graph discloses this token only to another app.
    package func inspection(of token: GraphAccessToken, app: AppSecret) throws(GraphFailure) -> [UInt8]? {
        let query = [("input_token", token.text)]
        let request = try request(.get, "debug_token", query, by: app.accessToken, app)
        return try answered(.debugToken, request, GraphAnswer.inspection)
    }

    /// `GET /me`: the person of an access token, requested with that token.
    package func me(_ fields: [String], with token: GraphAccessToken, app: AppSecret) throws(GraphFailure) -> [UInt8] {
        // By default Graph returns only 25 friends, with their names.
        let names = fields.map { $0 == "friends" ? "friends.limit(\(GraphLimits.friendCount)){id}" : $0 }
        let request = try request(.get, "me", [("fields", names.joined(separator: ","))], by: token.text, app)
        return try answered(.me, request, bodyBytes: GraphLimits.profileBytes, GraphAnswer.object)
    }

    /// `GET /oauth/access_token_info`: the login that an access token came from, requested with the token alone, as all
    /// known clients do (developers.facebook.com/documentation/facebook-login/guides/advanced/re-authentication).
    package func loginInfo(of token: GraphAccessToken, appID: String) throws(GraphFailure) -> [UInt8] {
        let query = [(name: "client_id", value: appID), (name: "access_token", value: token.text)]
        let request = try request(.get, "oauth/access_token_info", query)
        return try answered(.accessTokenInfo, request, GraphAnswer.object)
    }

    /// A copy of the client whose calls end at this time at the latest.
    package func until(_ deadline: MonotonicInstant) -> GraphClient {
        var client = self
        client.deadline = deadline
        return client
    }

    /// Ends the running calls and every later one at once, from any thread.
    package func cancel() { client.cancel() }

    private static let fields = [(name: "accept", value: "application/json")]

    /// - Parameter accessToken: Nil for a request that has the token in its query.
    private func request(
        _ method: HTTPMethod,
        _ path: String,
        _ query: [(name: String, value: String)] = [],
        by accessToken: String? = nil,
        _ app: AppSecret? = nil
    ) throws(GraphFailure) -> HTTPSRequest {
        var (query, fields) = (query, Self.fields)
        do {
            if let accessToken, let app {
                query.append(("appsecret_proof", try app.proof(of: accessToken)))
                // RFC 6750, 2.1. Graph accepts the token in this field as well as in a parameter.
                fields.append(("authorization", "Bearer \(accessToken)"))
            }
            return HTTPSRequest(method, try configuration.url(path, query), headers: fields)
        } catch {
            throw GraphFailure(.graphError, reason: "the request cannot be made")
        }
    }

    /// An idempotent request that fails transiently is repeated after a pause. The call is counted with all its tries.
    private func answered<Answer>(
        _ operation: GraphOperation,
        _ request: HTTPSRequest,
        bodyBytes: Int = GraphLimits.bodyBytes,
        _ read: (HTTPSResponse) throws(GraphFailure) -> Answer
    ) throws(GraphFailure) -> Answer {
        let began = MonotonicClock.now()
        let deadline = min(self.deadline, began + callTimeout)
        var (attempt, pause, mayBeDone) = (1, GraphLimits.firstPause.wholeNanoseconds, false)
        while true {
            do throws(GraphFailure) {
                let answer = try attemptOnce(request, bodyBytes: bodyBytes, until: deadline, read)
                metrics?.count(operation, nil, since: began)
                return answer
            } catch {
                // A refusal of a later attempt does not undo the possible effect of an earlier one.
                mayBeDone = mayBeDone || error.mayBeDone
                let moment = MonotonicClock.now().adding(nanoseconds: random(pause))
                // If no time is left for another attempt, this attempt's error is more useful than a timeout.
                guard error.error.isTransient, request.method.isIdempotent, attempt < GraphLimits.attemptCount,
                    error.retryAfterSeconds == nil, moment < deadline, (try? client.pause(until: moment)) != nil
                else {
                    metrics?.count(operation, error.error, since: began)
                    var failure = error
                    failure.mayBeDone = mayBeDone
                    throw failure
                }
                (attempt, pause) = (attempt + 1, pause &* 2)
            }
        }
    }

    private func attemptOnce<Answer>(
        _ request: HTTPSRequest,
        bodyBytes: Int,
        until deadline: MonotonicInstant,
        _ read: (HTTPSResponse) throws(GraphFailure) -> Answer
    ) throws(GraphFailure) -> Answer {
        // After the deadline the caller no longer waits.
        guard MonotonicClock.now() < deadline else { throw GraphFailure(.graphTimedOut) }
        var httpLimits = HTTPSClientLimits()
        httpLimits.fetchTimeout = callTimeout
        httpLimits.bodyBytes = bodyBytes
        var isSent = false
        let response: HTTPSResponse
        do throws(ClientError) {
            response = try client.send(request, limits: httpLimits, until: deadline) { isSent = true }
        } catch {
            var failure = GraphFailure(Self.error(of: error), reason: error.description)
            failure.mayBeDone = isSent
            throw failure
        }
        do throws(GraphFailure) {
            return try read(response)
        } catch {
            var failure = error
            failure.mayBeDone =
                switch error.error {
                case .graphAppNotInstalled, .graphUnknownFault, .graphUnavailable: true
                case .graphUnreadableAnswer: (200..<300).contains(response.status)
                default: false
                }
            throw failure
        }
    }

    private static func error(of error: ClientError) -> Rejection.Code {
        switch error {
        case .timedOut: .graphTimedOut
        case .tls: .graphTLSFailed
        case .malformedResponse, .headTooLarge, .bodyTooLarge, .redirectRefused, .malformedRequest:
            .graphUnreadableAnswer
        default: .graphUnreachable
        }
    }
}

/// A call's name in the metrics.
enum GraphOperation: String, CaseIterable {
    case listPermissions = "list_permissions"
    case revokePermission = "revoke_permission"
    case revokeLogin = "revoke_login"
    case uninstall
    case debugToken = "debug_token"
    case me
    case accessTokenInfo = "access_token_info"
}

package struct GraphFailure: Error, Equatable, Sendable {
    package var error: Rejection.Code
    /// True if Graph may have done it: its answer was lost, was no clear refusal, or said that nothing
    /// is left to do.
    package var mayBeDone = false
    /// Seconds until another attempt makes sense; nil if the answer gave no time and no default applies.
    package var retryAfterSeconds: Int?
    /// Facebook's own identifier of the call (`fbtrace_id`), for its support.
    package var traceID: String?
    /// Graph's own number, for the log.
    package var code: Int64?
    package var subcode: Int64?
    /// The remedy, if more is known than the error says; the same for every occurrence.
    package var advice: String?
    /// The text of a failed connection, for the log. The peer sent none of it.
    package var reason: String?

    package var sentence: String { advice ?? error.detail }

    package init(_ error: Rejection.Code, retryAfterSeconds: Int? = nil, reason: String? = nil) {
        self.error = error
        self.retryAfterSeconds = retryAfterSeconds
        self.reason = reason
    }
}
