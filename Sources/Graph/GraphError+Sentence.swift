extension GraphError {
    /// What went wrong and what to do about it: one or two sentences, the same for every occurrence.
    package var sentence: String {
        switch self {
        case .accessTokenRefused:
            "Graph refuses the app's own access token; check that the app secret in app_secrets_file is the one in "
                + "the App Dashboard, and send SIGHUP."
        case .appNotInstalled:
            "The person has not, or no longer, logged in to this app; there is nothing left to revoke, and a new login "
                + "brings the permissions back."
        case .userCheckpointed:
            "Facebook holds the person's account at a checkpoint; they must log in at www.facebook.com first."
        case .passwordChanged: "The person changed their password; have them log in to the app again."
        case .sessionExpired: "The person's session has expired; have them log in to the app again."
        case .userNotConfirmed: "The person's account is not confirmed; they must log in at www.facebook.com first."
        case .sessionInvalidated: "The person's session was ended at Facebook; have them log in to the app again."
        case .roleMissing: "The person lacks the role that Graph asks for; give it to them, or leave them out."
        case .sessionEnded: "The session is over, or the person logged out; have them log in to the app again."
        case .capabilityMissing: "The app may not call this; look in the App Dashboard for the capability it lacks."
        case .permissionDenied: "Graph denies the app this; look in the App Dashboard for what it was granted."
        case .permissionNotGranted:
            "The permission is not granted, or was taken back; have the app ask the person for it."
        case .policyBlocked: "Facebook blocks this for a breach of its policies; wait, and look in the App Dashboard."
        case .invalidParameter:
            "Graph refuses a parameter; check graph_version, and that the app secret in app_secrets_file is the app's."
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
            "The answer is none that Graph documents; check graph_url, graph_version and uninstall_url, and what stands "
                + "between."
        case .unreachable: "Graph could not be reached, or the connection broke; look at the network and try again."
        case .timedOut: "Graph did not answer in time; try again. What was to be revoked may have been."
        case .tlsFailed:
            "The connection to Graph could not be secured; check ca_file, the clock, and what stands between."
        }
    }
}
