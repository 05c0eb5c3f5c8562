package import LLSockets

/// The state of one connection, without any I/O: ``ConnectionEngine`` changes it, a worker acts on it.
package final class Connection {
    package enum Phase: Equatable, Sendable {
        /// Between requests; no byte of the next one is there.
        case idle
        /// Within a request head.
        case head
        /// Within a body that a handler asked for.
        case body
        /// Within a body nobody asked for, its response already made.
        case discarding
        /// A whole request waits for its handler's answer.
        case parked
        /// The last response is made; it is sent, then the sending direction ends.
        case closing
        /// Our direction has ended; what still comes is dropped until the peer ends its own.
        case lingering
        /// Nothing more can be said: the connection is to be closed at once.
        case ended

        // Before the first request, where the listeners speak TLS:
        /// No byte of a handshake has come.
        case silent
        /// The first byte has come, and other handshakes are before this one.
        case waiting
        /// Within the handshake.
        case handshaking
    }

    package enum Interest: Equatable, Sendable {
        case input
        case outputSpace
        case hangUp
        case nothing
    }

    /// A number no other connection of the process has had.
    package let id: UInt64
    /// From here on the next response ends the connection.
    var endsAt = MonotonicInstant.never
    /// When the connection last ceased to be wholly idle. A client that begins each request before the one before it has
    /// ended cannot make itself look new.
    var busySince: MonotonicInstant
    /// True for a connection beyond the limit: it gets one answer.
    let isOverLimit: Bool
    /// The socket, or -1 where there is none.
    let descriptor: Int32

    // The properties that every request changes are private: the compiler then sees each access, and checks none at run
    // time.
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
    /// While a request was parked, the peer ended its direction. What it sent before may still lie unread, so this
    /// stops further reports of the same and nothing else; the end itself is met when reading.
    var hangUpSeen = false
    /// Response bytes the socket did not take yet.
    package internal(set) var isWriting: Bool {
        get { writeIsBlocked }
        set { writeIsBlocked = newValue }
    }
    var closeCause = ConnectionCloseCause.finished
    var lingerBytesLeft = 0
    var writeProgress = 0
    /// An incomplete or parked request, or pipelined ones whose turn has not come; nil while idle.
    var input: KeptBuffer?

    /// The TLS handshake is not over: no request can have come.
    var isHandshaking: Bool { phase == .silent || phase == .waiting || phase == .handshaking }

    // The worker's own bookkeeping.
    /// Nil where the connection is plain.
    var tls: TLSConnection?
    /// What TLS waits for where that is not what the connection waits for.
    var tlsInterest: Interest?
    /// Nothing more can be said by TLS.
    var tlsHasFailed = false
    var slot = -1
    var pendingOutput: [UInt8] = []
    var pendingOffset = 0
    /// A body that is sent from where it lies, once ``pendingOutput`` is sent: a reference and how far it came.
    var pendingShared: [UInt8]?
    var sharedOffset = 0
    /// What ``ConnectionEngine/account(_:)`` last counted for this connection.
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

    /// When ``ConnectionEngine/deadlinePassed(_:now:)`` is due. While a write is blocked only a parked request's own
    /// deadline counts besides the write's: no input is read then.
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

    /// The name of the request under way.
    var request: ParkedRequest { ParkedRequest(connectionID: id, requestsBefore: requestsServed, slot: slot) }

    /// True where bytes wait in memory for their turn.
    package var hasBufferedInput: Bool { input != nil }

    /// True where a part of a request has come, or whole ones wait for their turn.
    var hasPartialInput: Bool { hasBufferedInput || tls?.holdsPartialInput == true }

    /// What the connection takes in memory: itself, what is buffered, and what OpenSSL keeps for it.
    package var heldBytes: Int {
        var held = Self.ownBytes + pendingOutput.capacity
        held += input?.buffer.heldBytes ?? 0
        guard let tls else { return held }
        if isHandshaking { return held + Self.handshakeBytes }
        held += Self.sessionBytes
        if tls.holdsPartialInput { held += Self.recordBytes }
        // Also of a key update's answer (RFC 8446 section 4.6.3) that the socket does not take.
        if isWriting || tlsInterest == .outputSpace { held += Self.recordBytes }
        return held
    }

    /// Of the connection itself, with its places in the worker's tables: 1 KiB.
    private static let ownBytes = 1_024
    /// Of OpenSSL within a handshake: 46 KiB, and after it 11 KiB; measured with OpenSSL 3.0. A client cannot make its
    /// handshake greater: ``TLSContext`` bounds its messages.
    static let handshakeBytes = 46 * 1_024
    private static let sessionBytes = 11 * 1_024
    /// Of a record that is not whole yet, in either direction: 16 KiB and what stands around it (RFC 8446 section 5.1).
    private static let recordBytes = 17 * 1_024
}

/// The connections of one worker: a slab, and the lists of those that wait for the same thing, each in the order of
/// entering it.
struct ConnectionTable: ~Copyable {
    /// The lists; a connection is in one at most.
    enum List: Int, CaseIterable {
        /// `busy` have a request or an answer under way, `silent` have not begun their TLS handshake, and `waiting` have,
        /// but wait for their turn. Handshakes of a peer with more connections than its share are in lists of their own.
        case none, idle, busy, parked, silent, waiting, crowdWaiting, handshaking, crowdHandshaking
    }

    private var connections: [Connection?] = []
    private var free: [Int] = []
    private var lists = NumberLists(listCount: List.allCases.count)

    private(set) var count = 0

    func count(of list: List) -> Int { lists.count(of: list.rawValue) }

    /// Puts a connection into a slot of its own.
    mutating func insert(_ connection: Connection) {
        connection.slot = free.popLast() ?? connections.count
        if connection.slot == connections.count {
            connections.append(connection)
        } else {
            connections[connection.slot] = connection
        }
        count += 1
    }

    /// Takes a connection out; tags made for it find nothing from now on.
    mutating func remove(_ connection: Connection) {
        let slot = connection.slot
        guard slot >= 0, slot < connections.count, connections[slot] === connection else { return }
        lists.remove(slot)
        connections[slot] = nil
        free.append(slot)
        connection.slot = -1
        count -= 1
    }

    /// What the event queue keeps for a connection: its slot, and as much of its number as finds room beside it.
    func tag(of connection: Connection) -> UInt64 {
        connection.id << 32 | UInt64(UInt32(truncatingIfNeeded: connection.slot))
    }

    /// The connection a tag was made for; nil where it is gone.
    func find(tag: UInt64) -> Connection? {
        guard let connection = connection(at: Int(tag & 0xFFFF_FFFF)), connection.id & 0xFFFF_FFFF == tag >> 32 else {
            return nil
        }
        return connection
    }

    func connection(at slot: Int) -> Connection? {
        slot >= 0 && slot < connections.count ? connections[slot] : nil
    }

    /// The one that has been in a list longest.
    func oldest(in list: List) -> Connection? { lists.first(of: list.rawValue).flatMap { connections[$0] } }

    /// Every connection of a list, for a walk during which lists change.
    func all(in list: List) -> [Connection] { lists.numbers(of: list.rawValue).compactMap { connections[$0] } }

    func all() -> [Connection] { connections.compactMap { $0 } }

    /// Puts the connection at the end of a list.
    mutating func move(_ connection: Connection, to list: List) { lists.append(connection.slot, to: list.rawValue) }

    /// The list that a connection belongs to now.
    func list(for connection: Connection) -> List {
        if connection.isWriting { return .busy }
        switch connection.phase {
        case .idle: return connection.hasPartialInput ? .busy : .idle
        // A lingering connection may be closed at any time.
        case .lingering: return .idle
        case .head, .body, .discarding: return .busy
        case .parked: return .parked
        case .closing, .ended: return .none
        case .silent: return .silent
        case .waiting, .handshaking: return list(of: connection)
        }
    }

    /// The list that it is in.
    func list(of connection: Connection) -> List {
        lists.list(of: connection.slot).flatMap(List.init(rawValue:)) ?? .none
    }
}
