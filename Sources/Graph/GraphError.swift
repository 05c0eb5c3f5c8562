/// Why Graph did not do what it was asked; the raw value is the stable code that clients compare.
///
/// The numbers are Graph's own error codes and subcodes (developers.facebook.com/docs/graph-api/guides/error-handling).
package enum GraphError: String, Error, CaseIterable, Sendable {
    // The access token, or the person's session behind it: 190 and 102.
    case accessTokenRefused = "graph_access_token_refused"
    case appNotInstalled = "graph_app_not_installed"
    case userCheckpointed = "graph_user_checkpointed"
    case passwordChanged = "graph_password_changed"
    case sessionExpired = "graph_session_expired"
    case userNotConfirmed = "graph_user_not_confirmed"
    case sessionInvalidated = "graph_session_invalidated"
    case roleMissing = "graph_role_missing"
    case sessionEnded = "graph_session_ended"
    // What the app may do: 3, 10, 200 to 299, 368.
    case capabilityMissing = "graph_capability_missing"
    case permissionDenied = "graph_permission_denied"
    case permissionNotGranted = "graph_permission_not_granted"
    case policyBlocked = "graph_policy_blocked"
    // What was asked: 100, 803, 506.
    case invalidParameter = "graph_invalid_parameter"
    case unknownUser = "graph_unknown_user"
    case duplicateRequest = "graph_duplicate_request"
    // Too often: 4, 17, 32, 341, 613.
    case appThrottled = "graph_app_throttled"
    case userThrottled = "graph_user_throttled"
    case pageThrottled = "graph_page_throttled"
    case appLimitReached = "graph_app_limit_reached"
    case rateLimited = "graph_rate_limited"
    // Graph itself: 1, 2, every 5xx, and what none of these codes says.
    case unknownFault = "graph_unknown_fault"
    case unavailable = "graph_unavailable"
    case other = "graph_error"
    case refused = "graph_refused"
    case unreadableAnswer = "graph_unreadable_answer"
    // The way there.
    case unreachable = "graph_unreachable"
    case timedOut = "graph_timeout"
    case tlsFailed = "graph_tls_failed"

    /// The error of Graph's own numbers.
    package init(code: Int64, subcode: Int64?) {
        switch (code, subcode) {
        case (190, 458?): self = .appNotInstalled
        case (190, 459?): self = .userCheckpointed
        case (190, 460?): self = .passwordChanged
        case (190, 463?): self = .sessionExpired
        case (190, 464?): self = .userNotConfirmed
        case (190, 467?): self = .sessionInvalidated
        case (190, 492?): self = .roleMissing
        case (190, _): self = .accessTokenRefused
        case (102, _): self = .sessionEnded
        case (1, _): self = .unknownFault
        case (2, _): self = .unavailable
        case (3, _): self = .capabilityMissing
        case (4, _): self = .appThrottled
        case (17, _): self = .userThrottled
        case (32, _): self = .pageThrottled
        case (341, _): self = .appLimitReached
        case (613, _): self = .rateLimited
        case (10, _): self = .permissionDenied
        case (200...299, _): self = .permissionNotGranted
        case (100, 33?), (803, _): self = .unknownUser
        case (100, _): self = .invalidParameter
        case (368, _): self = .policyBlocked
        case (506, _): self = .duplicateRequest
        default: self = .other
        }
    }

    /// Whether the same call may do better at once: what Graph calls transient.
    package var isTransient: Bool { self == .unknownFault || self == .unavailable }

    /// Whether Graph was asked too often.
    package var isThrottling: Bool {
        switch self {
        case .appThrottled, .userThrottled, .pageThrottled, .appLimitReached, .rateLimited: true
        default: false
        }
    }
}
