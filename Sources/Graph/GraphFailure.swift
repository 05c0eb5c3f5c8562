/// A failed call, with what its answer told besides the error.
package struct GraphFailure: Error, Equatable, Sendable {
    package let error: GraphError
    /// Whether Graph may have done what it was asked, now or before: its answer was lost or is no clear no, or says that
    /// nothing is left to do.
    package var mayBeDone = false
    /// When another try makes sense, in seconds; nil where the answer did not say and no default holds.
    package var retryAfterSeconds: Int?
    /// Facebook's own name of the call (`fbtrace_id`), for its support: at most ``GraphLimits/traceIDBytes`` of visible
    /// ASCII without quotes.
    package var traceID: String?
    /// Graph's own number, for the log.
    package var code: Int64?
    /// Its subcode, for the log.
    package var subcode: Int64?
    /// What to do about it, where more is known than the error says; the same for every occurrence.
    package var advice: String?
    /// What a failed connection said, for the log; nothing of it was sent by the peer.
    package var reason: String?

    /// One or two sentences for the caller.
    package var sentence: String { advice ?? error.sentence }

    package init(
        _ error: GraphError,
        retryAfterSeconds: Int? = nil,
        traceID: String? = nil,
        code: Int64? = nil,
        subcode: Int64? = nil,
        advice: String? = nil,
        reason: String? = nil
    ) {
        self.error = error
        self.retryAfterSeconds = retryAfterSeconds
        self.traceID = traceID
        self.code = code
        self.subcode = subcode
        self.advice = advice
        self.reason = reason
    }
}
