package import Graph
internal import Logging

extension Problem {
    /// The problem of a call that failed at Graph, or on the way there.
    package init(_ failure: GraphFailure) {
        self.init(
            .graph(failure.error),
            failure.sentence,
            retryAfter: failure.retryAfterSeconds,
            graph: failure
        )
    }
}

extension GraphError {
    /// The status code of the answer: 403 and 404 where the person or the app is at fault, 429 where Graph is asked too
    /// often, 503 where it is down, 504 where it cannot be reached or is too slow, 502 where its answer or our
    /// configuration is no good (RFC 9110 section 15).
    var status: Int { row.status }

    /// What went wrong, the same for every occurrence (RFC 9457 section 3.1.3).
    var title: String { row.title }

    /// When another try makes sense, where Graph did not say.
    var retryAfterSeconds: Int? {
        if isThrottling { return GraphLimits.defaultRetryAfterSeconds }
        return isTransient ? 5 : nil
    }

    private var row: (status: Int, title: String) {
        switch self {
        case .accessTokenRefused: (502, "Graph refuses the app's access token")
        case .appNotInstalled: (404, "The person is not logged in to the app")
        case .userCheckpointed: (403, "The person's account is at a checkpoint")
        case .passwordChanged: (403, "The person changed their password")
        case .sessionExpired: (403, "The person's session has expired")
        case .userNotConfirmed: (403, "The person's account is not confirmed")
        case .sessionInvalidated: (403, "The person's session was ended")
        case .roleMissing: (403, "The person lacks a role")
        case .sessionEnded: (403, "The session is over")
        case .capabilityMissing: (403, "The app lacks a capability")
        case .permissionDenied: (403, "Graph denies the app this")
        case .permissionNotGranted: (403, "The permission is not granted")
        case .policyBlocked: (403, "Facebook blocks this by its policies")
        case .invalidParameter: (502, "Graph refuses a parameter")
        case .unknownUser: (404, "Graph knows no such person")
        case .duplicateRequest: (409, "Graph was asked the same before")
        case .appThrottled: (429, "The app asks Graph too often")
        case .userThrottled: (429, "Graph was asked about the person too often")
        case .pageThrottled: (429, "Graph was asked about a page too often")
        case .appLimitReached: (429, "The app has reached its limit at Graph")
        case .rateLimited: (429, "Graph's rate limit is reached")
        case .unknownFault: (503, "Graph failed")
        case .unavailable: (503, "Graph is out of service")
        case .other: (502, "Graph answered an error")
        case .refused: (502, "Graph did not do it")
        case .unreadableAnswer: (502, "Graph's answer cannot be read")
        case .unreachable: (504, "Graph cannot be reached")
        case .timedOut: (504, "Graph did not answer in time")
        case .tlsFailed: (502, "The connection to Graph cannot be secured")
        }
    }
}

extension GraphFailure {
    /// Adds what an operator can do something with: Graph's numbers and Facebook's name of the call. Its own message may
    /// name people, so it is left out.
    func describe(in facts: inout Logger.Metadata) {
        if let code { facts["graph_code"] = "\(code)" }
        if let subcode { facts["graph_subcode"] = "\(subcode)" }
        if let traceID { facts["fbtrace_id"] = "\(traceID)" }
        if let reason { facts["reason"] = "\(reason)" }
    }
}
