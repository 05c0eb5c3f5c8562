/// The state of one connection, without any I/O. ``ConnectionEngine`` changes it, and a worker acts on it.
package final class Connection {
    package enum Phase: Equatable, Sendable {
        case idle
        case head
        /// Within a body that a handler asked for.
        case body
        /// Within a body that is dropped; its response is already made.
        case discarding
        /// A whole request waits for its handler's answer.
        case parked
        /// The last response is made. It is sent, then the sending direction ends.
        case closing
        /// The sending direction has ended. Further input is dropped until the peer ends its direction.
        case lingering
        /// Nothing more can be sent: the connection is to be closed at once.
        case ended

        // Before the first request, if the listeners speak TLS:
        /// No byte of a handshake has come.
        case silent
        /// The first byte has come, and the handshake waits until earlier ones are done.
        case waiting
        case handshaking
    }

    package enum Interest: Equatable, Sendable {
        case input
        case outputSpace
        case hangUp
        case nothing
    }

    /// The connection's number; no other connection of the process has had it.
    package let id: UInt64
    /// After this moment the next response ends the connection.
    var endsAt = MonotonicInstant.never
    /// The moment at which the connection last ceased to be wholly idle. A client that begins each request before the
    /// previous one has ended cannot make itself look new.
    var busySince: MonotonicInstant
    /// True for a connection beyond the limit: it gets one answer.
    let isOverLimit: Bool
    let descriptor: Int32

    // The properties that every request changes are private: the compiler then sees each access and omits the checks at
    // run time.
    private var currentPhase = Phase.idle
    private var servedCount = 0
    private var writeIsBlocked = false

    package internal(set) var phase: Phase {
        get { currentPhase }
        set { currentPhase = newValue }
    }
    var phaseDeadline = MonotonicInstant.never
    var writeDeadline = MonotonicInstant.never
    var requestStart: MonotonicInstant
    package internal(set) var requestsServed: Int {
        get { servedCount }
        set { servedCount = newValue }
    }
    /// The peer ended its direction while a request was parked. Bytes sent before that may still be unread, so this
    /// flag only stops further reports; reading finds the end itself.
    var hangUpSeen = false
    /// The socket did not take all response bytes yet.
    package internal(set) var isWriting: Bool {
        get { writeIsBlocked }
        set { writeIsBlocked = newValue }
    }
    var closeCause = ConnectionCloseCause.finished
    var lingerBytesLeft = 0
    var writeProgress = 0
    /// An incomplete or parked request, or pipelined requests that wait; nil while idle.
    var input: OwnedBuffer?

    /// True until the TLS handshake is over: no request can have come.
    var isHandshaking: Bool { phase == .silent || phase == .waiting || phase == .handshaking }

    // The worker's own bookkeeping.
    var tls: TLSConnection?
    /// The event that TLS waits for, if it is not the one that the connection waits for.
    var tlsInterest: Interest?
    /// TLS can send nothing more.
    var tlsHasFailed = false
    var slot = -1
    var pendingOutput: [UInt8] = []
    var pendingOffset = 0
    /// A body that is sent without a copy, after ``pendingOutput``, and the number of its bytes that are sent.
    var pendingShared: [UInt8]?
    var sharedOffset = 0
    /// The bytes that ``ConnectionEngine/account(_:)`` last counted for this connection.
    package internal(set) var accountedBytes = 0
    var registeredEvents: UInt32 = 0
    var isQueuedToResume = false

    init(id: UInt64, descriptor: Int32, isOverLimit: Bool, now: MonotonicInstant) {
        self.id = id
        self.descriptor = descriptor
        self.isOverLimit = isOverLimit
        busySince = now
        requestStart = now
    }

    /// The moment at which ``ConnectionEngine/deadlinePassed(_:now:)`` is due. While a write is blocked, only the
    /// write's deadline and a parked request's own count: no input is read then.
    package var deadline: MonotonicInstant {
        guard isWriting else { return phaseDeadline }
        return phase == .parked ? min(phaseDeadline, writeDeadline) : writeDeadline
    }

    package var interest: Interest {
        if isWriting { return .outputSpace }
        switch phase {
        case .parked: return hangUpSeen ? .nothing : .hangUp
        case .closing, .ended, .waiting: return .nothing
        case .idle, .head, .body, .discarding, .lingering, .silent, .handshaking: return .input
        }
    }

    var request: ParkedRequest { ParkedRequest(connectionID: id, requestsBefore: requestsServed, slot: slot) }

    package var hasBufferedInput: Bool { input != nil }

    /// True if a part of a request has come, or if whole requests wait.
    var hasPartialInput: Bool { hasBufferedInput || tls?.holdsPartialInput == true }

    /// The memory that the connection holds: itself, its buffers, and OpenSSL's part.
    package var heldBytes: Int {
        var held = Self.ownBytes + pendingOutput.capacity
        held += input?.buffer.heldBytes ?? 0
        guard let tls else { return held }
        if isHandshaking { return held + Self.handshakeBytes }
        held += Self.sessionBytes
        if tls.holdsPartialInput { held += Self.recordBytes }
        // The answer to a key update (RFC 8446 section 4.6.3) also needs a record if the socket does not take it.
        if isWriting || tlsInterest == .outputSpace { held += Self.recordBytes }
        return held
    }

    /// The connection itself, with its entries in the worker's tables: 1 KiB.
    static let ownBytes = 1_024
    /// OpenSSL's memory within a handshake: 46 KiB, and after it 11 KiB; measured with OpenSSL 3.0. A client cannot
    /// make its handshake larger: ``TLSContext`` bounds its messages.
    static let handshakeBytes = 46 * 1_024
    private static let sessionBytes = 11 * 1_024
    /// An incomplete record, in either direction: 16 KiB and its framing (RFC 8446 section 5.1).
    private static let recordBytes = 17 * 1_024
}
