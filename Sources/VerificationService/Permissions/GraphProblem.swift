package import Graph
internal import Logging

/// What Graph told about a failed call, carried by the problem it became; a class, so that problems stay small.
package final class GraphReport: Sendable, Equatable {
    package let failure: GraphFailure

    package init(_ failure: GraphFailure) { self.failure = failure }

    package static func == (left: GraphReport, right: GraphReport) -> Bool { left.failure == right.failure }
}

extension Problem {
    /// The problem of a call that failed at Graph, or on the way there.
    package init(_ failure: GraphFailure) {
        self.init(
            .graph(failure.error),
            failure.sentence,
            retryAfter: failure.retryAfterSeconds,
            graph: GraphReport(failure)
        )
    }
}

extension GraphError {
    /// The status code of the answer: 403 and 404 where the person or the app is at fault, 429 where Graph is asked too
    /// often, 503 where it is down, 504 where it cannot be reached or is too slow, 502 where its answer or our
    /// configuration is no good (RFC 9110 section 15).
    var status: Int {
        switch self {
        case .appNotInstalled, .unknownUser: 404
        case .userCheckpointed, .passwordChanged, .sessionExpired, .userNotConfirmed, .sessionInvalidated,
            .roleMissing, .sessionEnded, .capabilityMissing, .permissionDenied, .permissionNotGranted, .policyBlocked:
            403
        case .duplicateRequest: 409
        case .appThrottled, .userThrottled, .pageThrottled, .appLimitReached, .rateLimited: 429
        case .unknownFault, .unavailable: 503
        case .unreachable, .timedOut: 504
        case .accessTokenRefused, .invalidParameter, .other, .refused, .unreadableAnswer, .tlsFailed: 502
        }
    }

    /// When another try makes sense, where Graph did not say.
    var retryAfterSeconds: Int? {
        if isThrottling { return GraphLimits().defaultRetryAfterSeconds }
        return isTransient ? 5 : nil
    }

    /// What went wrong, the same for every occurrence (RFC 9457 section 3.1.3).
    var title: String {
        switch self {
        case .accessTokenRefused: "Graph refuses the app's access token"
        case .appNotInstalled: "The person is not logged in to the app"
        case .userCheckpointed: "The person's account is at a checkpoint"
        case .passwordChanged: "The person changed their password"
        case .sessionExpired: "The person's session has expired"
        case .userNotConfirmed: "The person's account is not confirmed"
        case .sessionInvalidated: "The person's session was ended"
        case .roleMissing: "The person lacks a role"
        case .sessionEnded: "The session is over"
        case .capabilityMissing: "The app lacks a capability"
        case .permissionDenied: "Graph denies the app this"
        case .permissionNotGranted: "The permission is not granted"
        case .policyBlocked: "Facebook blocks this by its policies"
        case .invalidParameter: "Graph refuses a parameter"
        case .unknownUser: "Graph knows no such person"
        case .duplicateRequest: "Graph was asked the same before"
        case .appThrottled: "The app asks Graph too often"
        case .userThrottled: "Graph was asked about the person too often"
        case .pageThrottled: "Graph was asked about a page too often"
        case .appLimitReached: "The app has reached its limit at Graph"
        case .rateLimited: "Graph's rate limit is reached"
        case .unknownFault: "Graph failed"
        case .unavailable: "Graph is out of service"
        case .other: "Graph answered an error"
        case .refused: "Graph did not do it"
        case .unreadableAnswer: "Graph's answer cannot be read"
        case .unreachable: "Graph cannot be reached"
        case .timedOut: "Graph did not answer in time"
        case .tlsFailed: "The connection to Graph cannot be secured"
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
