internal import LLJOSE

/// The reason why Graph did not carry out a request. The raw value is the stable code that clients compare.
/// The numbers are Graph's own error codes and subcodes (developers.facebook.com/docs/graph-api/guides/error-handling).
package enum GraphError: String, Error, CaseIterable, Sendable {
    // The access token or the person's session: 190 and 102.
    case accessTokenRefused = "graph_access_token_refused"
    case appNotInstalled = "graph_app_not_installed"
    case userCheckpointed = "graph_user_checkpointed"
    case passwordChanged = "graph_password_changed"
    case sessionExpired = "graph_session_expired"
    case userNotConfirmed = "graph_user_not_confirmed"
    case sessionInvalidated = "graph_session_invalidated"
    case roleMissing = "graph_role_missing"
    case sessionEnded = "graph_session_ended"
    // The rights of the app: 3, 10, 200 to 299, 368.
    case capabilityMissing = "graph_capability_missing"
    case permissionDenied = "graph_permission_denied"
    case permissionNotGranted = "graph_permission_not_granted"
    case policyBlocked = "graph_policy_blocked"
    // The content of the request: 100, 803, 506.
    case invalidParameter = "graph_invalid_parameter"
    case unknownUser = "graph_unknown_user"
    case duplicateRequest = "graph_duplicate_request"
    // Throttling: 4, 17, 32, 341, 613.
    case appThrottled = "graph_app_throttled"
    case userThrottled = "graph_user_throttled"
    case pageThrottled = "graph_page_throttled"
    case appLimitReached = "graph_app_limit_reached"
    case rateLimited = "graph_rate_limited"
    // Graph itself: 1, 2, every 5xx, and everything that has none of these codes.
    case unknownFault = "graph_unknown_fault"
    case unavailable = "graph_unavailable"
    case other = "graph_error"
    case refused = "graph_refused"
    case unreadableAnswer = "graph_unreadable_answer"
    // The connection to Graph.
    case unreachable = "graph_unreachable"
    case timedOut = "graph_timeout"
    case tlsFailed = "graph_tls_failed"

    /// - Parameter message: Graph's text, which alone tells some errors of one code apart. It may name people.
    package init(code: Int64, subcode: Int64?, message: String) {
        func says(_ words: String) -> Bool { message.lowercased().contains(words) }
        switch (code, subcode) {
        // These are permanent, although their code is that of a transient fault.
        case (1, _) where says("desktop app") || says("client secret"), (101, _): self = .accessTokenRefused
        case (200, _) where says("api access blocked"): self = .policyBlocked
        case (190, 458?): self = .appNotInstalled
        case (190, 459?), (190, 490?): self = .userCheckpointed
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

    /// True for the errors that Graph calls transient: the same call may succeed at once.
    package var isTransient: Bool { self == .unknownFault || self == .unavailable }

    /// True if Graph refused the call because of too many requests.
    package var isThrottling: Bool {
        switch self {
        case .appThrottled, .userThrottled, .pageThrottled, .appLimitReached, .rateLimited: true
        default: false
        }
    }
}

extension GraphError {
    package var sentence: String {
        switch self {
        case .accessTokenRefused:
            "Graph refuses the app's own access token; check that the app secret is the one in the App Dashboard."
        case .appNotInstalled:
            "The person has not, or no longer, logged in to this app; there is nothing left to revoke, and a new login "
                + "brings the permissions back."
        case .userCheckpointed:
            "Facebook holds the person's account at a checkpoint; they must log in at www.facebook.com first."
        case .passwordChanged: "The person changed their password; have them log in to the app again."
        case .sessionExpired: "The person's session has expired; have them log in to the app again."
        case .userNotConfirmed: "The person's account is not confirmed; they must confirm it at www.facebook.com first."
        case .sessionInvalidated: "The person's session was ended at Facebook; have them log in to the app again."
        case .roleMissing: "The person lacks the role that Graph asks for; give it to them, or leave them out."
        case .sessionEnded: "The session is over, or the person logged out; have them log in to the app again."
        case .capabilityMissing: "The app may not call this; look in the App Dashboard for the capability it lacks."
        case .permissionDenied: "Graph denies the app this; look in the App Dashboard for what it was granted."
        case .permissionNotGranted:
            "The permission is not granted, or was taken back; have the app ask the person for it."
        case .policyBlocked: "Facebook blocks this for a breach of its policies; wait, and look in the App Dashboard."
        case .invalidParameter:
            "Graph refuses a parameter; check the version of Graph, and that the app secret is the app's."
        case .unknownUser:
            "Graph knows no such person for this app; the id must be app-scoped: the claim sub of a token for this app."
        case .duplicateRequest: "Graph has just been asked the same; nothing need be done."
        case .appThrottled: "The app calls Graph too often; wait as Retry-After says."
        case .userThrottled: "Graph was asked about this person too often; wait as Retry-After says."
        case .pageThrottled: "The app calls Graph too often for one page; wait as Retry-After says."
        case .appLimitReached: "The app has reached its limit at Graph; wait as Retry-After says."
        case .rateLimited: "Graph's rate limit is reached; wait as Retry-After says."
        case .unknownFault: "Graph failed and did not say why; try again shortly."
        case .unavailable: "Graph is out of service; try again shortly."
        case .other:
            "Graph answered an error this service does not know; the log names its number at level debug."
        case .refused: "Graph answered that it did not do it; look whether the permission is still there."
        case .unreadableAnswer:
            "The answer is none that Graph documents; check Graph's URL and version, and what stands between."
        case .unreachable: "Graph could not be reached, or the connection broke; look at the network and try again."
        case .timedOut: "Graph did not answer in time; try again. What was to be revoked may have been."
        case .tlsFailed:
            "The connection to Graph could not be secured; check the authorities, the clock, and what stands between."
        }
    }
}

/// The meaning of an error that Facebook's Graph API answered a backend's own call, and the remedy.
///
/// The numbers are Graph's error codes and subcodes (developers.facebook.com/docs/graph-api/guides/error-handling).
public struct GraphErrorAdvice: Sendable, Equatable {
    /// The step that helps. Further ones may come with a new version.
    public struct Remedy: RawRepresentable, Hashable, Sendable {
        /// The step in words, such as `log in again`.
        public let rawValue: String

        /// - Parameter rawValue: The step in words.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// Have the app ask the person for the permission again.
        public static let askAgain = Remedy(rawValue: "ask again")
        /// Have the person log in to the app again.
        public static let logInAgain = Remedy(rawValue: "log in again")
        /// Send the same call again, after the time in `Retry-After` or with growing pauses.
        public static let retry = Remedy(rawValue: "retry")
        /// Mend the call, or the app in Facebook's App Dashboard: no repetition helps.
        public static let mendApp = Remedy(rawValue: "mend the app")
    }

    /// The stable name of the error, such as `graph_session_expired`.
    public let name: String
    /// The cause and its cure in one or two sentences, without any word of Graph's message.
    public let cause: String
    /// The step that helps.
    public let remedy: Remedy

    /// Reads Graph's answer of at most 64 KiB, an object with the member `error`, or that member's object alone; nil for bytes
    /// that are no such object with a whole number as its `code`.
    public init?(json: [UInt8]) {
        guard let object = JSONObject(json) else { return nil }
        let error = object.object("error") ?? object.document.root
        guard let code = object.integer("code", of: error) else { return nil }
        let message = object.string("message", of: error) ?? ""
        let kind = GraphError(code: code, subcode: object.integer("error_subcode", of: error), message: message)
        let isTransient = kind == .other && object.bool("is_transient", of: error) == true
        self.init(isTransient ? .unavailable : kind, isAboutApp: code != 190)
    }

    private init(_ error: GraphError, isAboutApp: Bool) {
        name = error.rawValue
        (remedy, cause) =
            switch error {
            case .accessTokenRefused where isAboutApp: (.mendApp, "Graph refuses the app's id, its secret or its type.")
            case .accessTokenRefused: (.logInAgain, "The access token is damaged, expired, revoked or another app's.")
            case .invalidParameter:
                (.mendApp, "Graph refuses a parameter of the call; its message names the parameter.")
            case .other: (.mendApp, "The code is none that Graph documents for every call; look at its message.")
            case .permissionNotGranted: (.askAgain, error.sentence)
            case .appNotInstalled, .userCheckpointed, .passwordChanged, .sessionExpired, .userNotConfirmed,
                .sessionInvalidated, .sessionEnded:
                (.logInAgain, error.sentence)
            default: (error.isTransient || error.isThrottling ? .retry : .mendApp, error.sentence)
            }
    }
}
