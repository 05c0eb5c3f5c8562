internal import HTTP1
package import Sockets

/// The state machine of HTTP/1.1 connections, without any I/O: events in, bytes and a state out. One engine serves
/// one worker, on its thread alone. What to do next is said in one place, ``next(_:now:)``.
///
/// A value, so that an event has it to itself from its first byte to its answer: what stands in a class is proven to be
/// nobody else's at every touch.
package struct ConnectionEngine: ~Copyable {
    /// What the worker does once the output of an event is sent, or waits for space.
    package enum Step: Equatable, Sendable {
        /// Wait for the connection's ``Connection/interest``.
        case wait
        /// Let others have their turn, then call ``ConnectionEngine/resume(_:now:)``.
        case resume
        /// End the sending direction, then wait for input and drop it.
        case shutdownWrite
        /// Close at once.
        case close(ConnectionCloseCause)
    }

    /// The limits kept.
    package let limits: HTTPServerLimits
    let worker: WorkerIndex
    let handler: any HTTPRequestHandler
    /// Where a worker receives bytes, before ``received(_:now:)``.
    let receiveBuffer: RequestBuffer
    /// Response bytes of the event just handled, to be sent on its connection; the worker empties it.
    package var output: [UInt8] = []
    /// A shared body that follows ``output``; the worker takes it. Nothing further is answered before it is sent.
    package var sharedOutput: [UInt8]?
    /// What all connections take in memory, by ``account(_:)``.
    package private(set) var heldBytes = 0
    /// The wall clock for `Date`, in seconds since 1970.
    package var unixSeconds: Int64 = 0
    /// True once stopping has begun: each response ends its connection.
    package var isDraining = false
    /// Requests handled now may have waited since this moment; ``HTTPServerLimits/queueDelay`` is measured from it.
    package var waitingSince = MonotonicInstant.never
    /// Since when some request of every turn came late; nil while none does.
    var lateSince: MonotonicInstant?
    var sawLateRequest = false
    /// Responses encoded.
    package var requestCount: UInt64 = 0
    /// Requests refused for overload.
    package var overloadedCount: UInt64 = 0

    var response = HTTPResponse()
    var encoder = ResponseEncoder()
    private var spareBuffers: [RequestBuffer] = []
    let queueDelayNanoseconds: UInt64
    let idleNanoseconds: UInt64

    package init(limits: HTTPServerLimits, worker: WorkerIndex, handler: any HTTPRequestHandler) {
        self.limits = limits
        self.worker = worker
        self.handler = handler
        receiveBuffer = RequestBuffer(limits: limits.http, capacity: max(limits.receiveBytes, 1))
        queueDelayNanoseconds = limits.queueDelay.wholeNanoseconds
        idleNanoseconds = limits.idleTimeout.wholeNanoseconds
    }

    /// A new connection, waiting for its first request.
    package func open(id: UInt64, descriptor: Int32, isOverLimit: Bool, now: MonotonicInstant) -> Connection {
        Connection(
            id: id,
            descriptor: descriptor,
            now: now,
            isOverLimit: isOverLimit,
            endsAt: now + limits.connectionAge,
            idleDeadline: now.adding(nanoseconds: idleNanoseconds)
        )
    }

    func context(_ connection: Connection, _ now: MonotonicInstant) -> RequestContext {
        RequestContext(
            firstByteAt: connection.requestStart,
            now: now,
            worker: worker,
            connectionID: connection.id,
            requestsBefore: connection.requestsServed,
            isDraining: isDraining,
            descriptor: connection.descriptor,
            slot: connection.slot
        )
    }

    /// The worker has handled all events it was told of. Lateness is over once a whole turn had none.
    package mutating func endTurn() {
        if !sawLateRequest { lateSince = nil }
        sawLateRequest = false
    }

    /// True where requests have been waiting too long for some time, and this one is among them. A single pause (of
    /// the machine, say) sheds nothing; a queue that stays long does.
    mutating func isOverdue(_ connection: Connection, arrivedAfter earliest: MonotonicInstant, _ now: MonotonicInstant)
        -> Bool
    {
        guard now.nanoseconds(since: max(waitingSince, earliest)) > queueDelayNanoseconds else { return false }
        sawLateRequest = true
        guard let since = lateSince else {
            lateSince = now
            return false
        }
        return now.nanoseconds(since: since) > queueDelayNanoseconds
    }

    /// Lets the connection keep what `buffer` holds, when its bytes must outlive this event.
    mutating func keep(_ buffer: RequestBuffer, for connection: Connection) {
        guard connection.input !== buffer else { return }
        let own = spareBuffers.popLast() ?? RequestBuffer(limits: limits.http, capacity: 0)
        // A declared body is received behind its head without growing again.
        let declared = connection.phase == .body ? buffer.requestEnd : 0
        buffer.move(to: own, reserving: declared)
        connection.input = own
        account(connection)
    }

    /// Counts anew what the connection takes. Called where that changes, so that a request which comes and goes in one
    /// piece costs nothing for it.
    mutating func account(_ connection: Connection) {
        let held = connection.slot >= 0 ? connection.heldBytes : 0
        heldBytes += held - connection.accountedBytes
        connection.accountedBytes = held
    }

    /// How many bytes may be received for a connection now: 0 where it holds as much as it may.
    package func room(for connection: Connection) -> Int {
        guard let own = connection.input else { return limits.receiveBytes }
        return max(0, min(limits.receiveBytes, limits.requestBytes - own.count))
    }

    /// Takes the connection's own buffer away: nothing of it is needed any more.
    mutating func releaseBuffer(of connection: Connection) {
        guard let own = connection.input else { return }
        connection.input = nil
        // A few are kept for the next request that comes in pieces; large ones are given back to the system.
        if spareBuffers.count < 4, own.bytes.capacity <= 8_192 {
            own.clear()
            spareBuffers.append(own)
        }
        account(connection)
    }
}
