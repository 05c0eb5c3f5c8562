internal import LLJOSE

/// The reasons why Graph did not carry out a request. The numbers are Graph's own error codes and subcodes
/// (developers.facebook.com/docs/graph-api/guides/error-handling).
extension Rejection.Code {
    package static let graphAccessTokenRefused =
        graph("access_token_refused", 502, "Graph refuses the app's access token")
        .detail("Graph refuses the app's own access token; check that the app secret is the one in the App Dashboard.")
    package static let graphAppNotInstalled = graph("app_not_installed", 404, "The person is not logged in to the app")
        .detail(
            "The person has not, or no longer, logged in to this app; there is nothing left to revoke, and a new "
                + "login brings the permissions back."
        )
    package static let graphUserCheckpointed =
        graph("user_checkpointed", 403, "The person's account is at a checkpoint")
        .detail("Facebook holds the person's account at a checkpoint; they must log in at www.facebook.com first.")
    package static let graphPasswordChanged = graph("password_changed", 403, "The person changed their password")
        .detail("The person changed their password; have them log in to the app again.")
    package static let graphSessionExpired = graph("session_expired", 403, "The person's session has expired")
        .detail("The person's session has expired; have them log in to the app again.")
    package static let graphUserNotConfirmed = graph("user_not_confirmed", 403, "The person's account is not confirmed")
        .detail("The person's account is not confirmed; they must confirm it at www.facebook.com first.")
    package static let graphSessionInvalidated = graph("session_invalidated", 403, "The person's session was ended")
        .detail("The person's session was ended at Facebook; have them log in to the app again.")
    package static let graphRoleMissing = graph("role_missing", 403, "The person lacks a role")
        .detail("The person lacks the role that Graph asks for; give it to them, or leave them out.")
    package static let graphSessionEnded = graph("session_ended", 403, "The session is over")
        .detail("The session is over, or the person logged out; have them log in to the app again.")
    package static let graphCapabilityMissing = graph("capability_missing", 403, "The app lacks a capability")
        .detail("The app may not call this; look in the App Dashboard for the capability it lacks.")
    package static let graphPermissionDenied = graph("permission_denied", 403, "Graph denies the app this")
        .detail("Graph denies the app this; look in the App Dashboard for what it was granted.")
    package static let graphPermissionNotGranted = graph("permission_not_granted", 403, "The permission is not granted")
        .detail("The permission is not granted, or was taken back; have the app ask the person for it.")
    package static let graphPolicyBlocked = graph("policy_blocked", 403, "Facebook blocks this by its policies")
        .detail("Facebook blocks this for a breach of its policies; wait, and look in the App Dashboard.")
    package static let graphInvalidParameter = graph("invalid_parameter", 502, "Graph refuses a parameter")
        .detail("Graph refuses a parameter; check the version of Graph, and that the app secret is the app's.")
    package static let graphUnknownUser = graph("unknown_user", 404, "Graph knows no such person")
        .detail(
            "Graph knows no such person for this app; the id must be app-scoped: the claim sub of a token for this app."
        )
    package static let graphDuplicateRequest = graph("duplicate_request", 409, "Graph was asked the same before")
        .detail("Graph has just been asked the same; nothing need be done.")
    package static let graphAppThrottled = graph("app_throttled", 429, "The app asks Graph too often")
        .detail("The app calls Graph too often; wait as Retry-After says.")
    package static let graphUserThrottled = graph("user_throttled", 429, "Graph was asked about the person too often")
        .detail("Graph was asked about this person too often; wait as Retry-After says.")
    package static let graphPageThrottled = graph("page_throttled", 429, "Graph was asked about a page too often")
        .detail("The app calls Graph too often for one page; wait as Retry-After says.")
    package static let graphAppLimitReached = graph("app_limit_reached", 429, "The app has reached its limit at Graph")
        .detail("The app has reached its limit at Graph; wait as Retry-After says.")
    package static let graphRateLimited = graph("rate_limited", 429, "Graph's rate limit is reached")
        .detail("Graph's rate limit is reached; wait as Retry-After says.")
    package static let graphUnknownFault = graph("unknown_fault", 503, "Graph failed", retryAfter: 5)
        .detail("Graph failed and did not say why; try again shortly.")
    package static let graphUnavailable = graph("unavailable", 503, "Graph is out of service", retryAfter: 5)
        .detail("Graph is out of service; try again shortly.")
    package static let graphError = graph("error", 502, "Graph answered an error")
        .detail("Graph answered an error this service does not know; the log names its number at level debug.")
    package static let graphRefused = graph("refused", 502, "Graph did not do it")
        .detail("Graph answered that it did not do it; look whether the permission is still there.")
    package static let graphUnreadableAnswer = graph("unreadable_answer", 502, "Graph's answer cannot be read")
        .detail("The answer is none that Graph documents; check Graph's URL and version, and what stands between.")
    package static let graphUnreachable = graph("unreachable", 504, "Graph cannot be reached")
        .detail("Graph could not be reached, or the connection broke; look at the network and try again.")
    package static let graphTimedOut = graph("timeout", 504, "Graph did not answer in time")
        .detail("Graph did not answer in time; try again. What was to be revoked may have been.")
    package static let graphTLSFailed = graph("tls_failed", 502, "The connection to Graph cannot be secured")
        .detail(
            "The connection to Graph could not be secured; check the authorities, the clock, and what stands between."
        )

    package static let ofGraph: [Rejection.Code] = [
        .graphAccessTokenRefused, .graphAppNotInstalled, .graphUserCheckpointed, .graphPasswordChanged,
        .graphSessionExpired, .graphUserNotConfirmed, .graphSessionInvalidated, .graphRoleMissing, .graphSessionEnded,
        .graphCapabilityMissing, .graphPermissionDenied, .graphPermissionNotGranted, .graphPolicyBlocked,
        .graphInvalidParameter, .graphUnknownUser, .graphDuplicateRequest, .graphAppThrottled, .graphUserThrottled,
        .graphPageThrottled, .graphAppLimitReached, .graphRateLimited, .graphUnknownFault, .graphUnavailable,
        .graphError, .graphRefused, .graphUnreadableAnswer, .graphUnreachable, .graphTimedOut, .graphTLSFailed,
    ]

    /// The status (RFC 9110 section 15) is 403 or 404 if the person or the app is at fault, 429 if Graph is asked too often,
    /// 503 if it is down, 504 if it is unreachable or too slow, and 502 if its answer or our configuration is invalid.
    private static func graph(_ name: String, _ status: Int, _ title: String, retryAfter: Int? = nil) -> Rejection.Code
    {
        let kind: Kind = status == 429 || status >= 500 ? .outage : .caller
        let seconds = status == 429 ? defaultThrottlingSeconds : retryAfter
        return Rejection.Code("graph_" + name, status, kind, title, retryAfter: seconds).hint(graphHint(status))
    }

    /// 60: Graph's windows slide over an hour, and a minute frees a part of it.
    package static let defaultThrottlingSeconds = 60

    private static func graphHint(_ status: Int) -> String {
        switch status {
        case 403: "Look at the app in Facebook's App Dashboard, and have the person log in to the app again."
        case 404:
            "Take the person for logged out, and have them log in again; the id is the claim sub of a token for this app."
        case 409: "Do nothing: Graph is at it already."
        case 429: "Try again when Retry-After is over, and ask less often."
        case 502:
            "Look at app_secrets_file and the settings graph_… (config/settings.md); the log has Graph's number at level debug."
        default: "Try again shortly, and keep users logged in."
        }
    }

    /// - Parameter message: Graph's text, which alone tells some errors of one code apart. It may name people.
    package static func graph(code: Int64, subcode: Int64?, message: String) -> Rejection.Code {
        func says(_ words: String) -> Bool { message.lowercased().contains(words) }
        // These are permanent, although their code is that of a transient fault.
        if code == 1, says("desktop app") || says("client secret") { return .graphAccessTokenRefused }
        if code == 200, says("api access blocked") { return .graphPolicyBlocked }
        let row = subcode.flatMap { numbered[[code, $0]] } ?? numbered[[code]]
        return row ?? ((200...299).contains(code) ? .graphPermissionNotGranted : .graphError)
    }

    /// Graph's errors by code, or code and subcode; a code alone stands for its other subcodes.
    private static let numbered: [[Int64]: Rejection.Code] = [
        [1]: .graphUnknownFault, [2]: .graphUnavailable, [3]: .graphCapabilityMissing, [4]: .graphAppThrottled,
        [10]: .graphPermissionDenied, [17]: .graphUserThrottled, [32]: .graphPageThrottled,
        [100]: .graphInvalidParameter, [100, 33]: .graphUnknownUser, [101]: .graphAccessTokenRefused,
        [102]: .graphSessionEnded, [190]: .graphAccessTokenRefused, [190, 458]: .graphAppNotInstalled,
        [190, 459]: .graphUserCheckpointed, [190, 460]: .graphPasswordChanged, [190, 463]: .graphSessionExpired,
        [190, 464]: .graphUserNotConfirmed, [190, 467]: .graphSessionInvalidated, [190, 490]: .graphUserCheckpointed,
        [190, 492]: .graphRoleMissing, [341]: .graphAppLimitReached, [368]: .graphPolicyBlocked,
        [506]: .graphDuplicateRequest, [613]: .graphRateLimited, [803]: .graphUnknownUser,
    ]

    /// True for the errors that Graph calls transient: the same call may succeed at once.
    package var isTransient: Bool { self == .graphUnknownFault || self == .graphUnavailable }

    package var isThrottling: Bool { status == 429 }
}

/// The meaning of an error that Facebook's Graph API answered a backend's own call, and the remedy.
public struct GraphErrorAdvice: Sendable, Equatable {
    /// The step that helps.
    @nonexhaustive  // SE-0487
    public enum Remedy: String, Sendable {
        /// Have the app ask the person for the permission again.
        case askAgain = "ask again"
        /// Have the person log in to the app again.
        case logInAgain = "log in again"
        /// Send the same call again, after the time in `Retry-After` or with growing pauses.
        case retry
        /// Mend the call, or the app in Facebook's App Dashboard: no repetition helps.
        case mendApp = "mend the app"
    }

    /// The stable name of the error, such as `graph_session_expired`.
    public let name: String
    /// The cause and its cure in one or two sentences, without any word of Graph's message.
    public let cause: String
    /// The step that helps.
    public let remedy: Remedy

    /// Reads Graph's answer, an object with the member `error`, or that member's object alone; nil without a `code` in it.
    public init?(json: [UInt8]) {
        guard let object = JSONObject(json) else { return nil }
        let member = object.object("error") ?? object.document.root
        guard let code = object.integer("code", of: member) else { return nil }
        let (subcode, message) = (object.integer("error_subcode", of: member), object.string("message", of: member))
        var error = Rejection.Code.graph(code: code, subcode: subcode, message: message ?? "")
        if error == .graphError, object.bool("is_transient", of: member) == true { error = .graphUnavailable }
        name = error.rawValue
        (remedy, cause) =
            switch error {
            case .graphAccessTokenRefused where code != 190:
                (.mendApp, "Graph refuses the app's id, its secret or its type.")
            case .graphAccessTokenRefused:
                (.logInAgain, "The access token is damaged, expired, revoked or another app's.")
            case .graphInvalidParameter:
                (.mendApp, "Graph refuses a parameter of the call; its message names the parameter.")
            case .graphError: (.mendApp, "The code is none that Graph documents for every call; look at its message.")
            case .graphPermissionNotGranted: (.askAgain, error.detail)
            case .graphAppNotInstalled, .graphUserCheckpointed, .graphPasswordChanged, .graphSessionExpired,
                .graphUserNotConfirmed, .graphSessionInvalidated, .graphSessionEnded:
                (.logInAgain, error.detail)
            default: (error.isTransient || error.isThrottling ? .retry : .mendApp, error.detail)
            }
    }
}
