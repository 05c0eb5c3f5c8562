/// The name of one request while it is parked: no other request of this server has or had the same.
package struct ParkedRequest: Hashable, Sendable {
    /// The connection it came on.
    package let connectionID: UInt64
    /// How many requests came before it on that connection.
    package let requestsBefore: Int
    /// Where the worker finds the connection without a search; another may stand there later, hence the two above.
    let slot: Int

    package static func == (left: ParkedRequest, right: ParkedRequest) -> Bool {
        left.connectionID == right.connectionID && left.requestsBefore == right.requestsBefore
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(connectionID)
        hasher.combine(requestsBefore)
    }
}

/// Wakes single parked requests of one worker, from any thread.
///
/// Requests nobody parks cost nothing for it. A wake of a request that was answered meanwhile, or whose client left, does
/// nothing; one that comes before the request has been parked (its handler has not returned yet) is kept until it is.
package struct RequestWaker: Sendable {
    private let handle: WorkerHandle

    init(_ handle: WorkerHandle) { self.handle = handle }

    /// Has the worker call the handler again with ``RequestVisit/woken`` for this request and no other.
    package func wake(_ request: ParkedRequest) { handle.wake(request) }
}
