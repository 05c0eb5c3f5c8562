internal import Sockets

/// What a token is that was judged; the label of the metrics.
enum Credential: String {
    case idToken = "id_token"
    case accessToken = "access_token"
}

/// What became of a request; the handler counts and logs it.
enum Outcome {
    /// A token was judged and is good; the response says so.
    case accepted(Credential)
    /// A token was judged and is refused, or could not be judged; the problem is the response.
    case refused(Credential, Problem)
    /// An id token was judged and is refused for this code; the response says so in its own way.
    case inactive(ProblemCode)
    /// What was asked for, no verdict, is done; the response says so.
    case done
    /// Nothing yet: ask again when the request is woken, and at this moment at the latest.
    case wait(until: MonotonicInstant)
}

/// What a request that is visited again finds where it may have waited.
enum Revisit<Value> {
    /// It did not wait here.
    case none
    /// What it waits for is not over.
    case wait(until: MonotonicInstant)
    /// What it waited for.
    case done(Value)
}
