internal import CLLSystem
internal import Synchronization

extension Worker {
    private static let gone = ReadyEvents.error | ReadyEvents.hangUp
    private static let readable = ReadyEvents.readable | ReadyEvents.readHangUp

    mutating func handle(_ connection: Connection, _ events: UInt32) {
        if connection.tls != nil || connection.isHandshaking, handleTLS(connection) { return }
        let isGone = events & Self.gone != 0
        switch connection.interest {
        case .input:
            // Buffered bytes go first; epoll is level-triggered and will report again.
            if !connection.isQueued || isGone { receive(connection) }
        case _ where isGone: close(connection, .disconnected)
        case .outputSpace: if events & ReadyEvents.writable != 0 { resumeSending(connection) }
        case .hangUp, .nothing:
            if events & ReadyEvents.readHangUp == 0 { return }
            // The client may have ended only its own direction: it still gets its answer.
            connection.inputEnded()
            if connection.phase == .parked, host.handler.didHangUp(connection.request) {
                connection.visit(.expired, &host)
            }
            flush(connection)
        }
    }

    mutating func wake(_ connection: Connection) {
        now = MonotonicClock.now()
        connection.wake(&host)
        flush(connection)
        keepToShare()
    }

    mutating func receive(_ connection: Connection) {
        let room = connection.room(limits)
        if room == 0 {
            close(connection, .memory)
            return
        }
        var storage: [UInt8] = []
        swap(&storage, &receiveBuffer)
        defer { swap(&storage, &receiveBuffer) }
        let result =
            connection.tls == nil
            ? SystemCalls.receive(connection.descriptor, into: &storage, atMost: room)
            : receiveTLS(connection, into: &storage, atMost: room)
        if result > 0 {
            connection.received(storage.span.extracting(0..<result), by: &host)
            flush(connection)
        } else if result == 0 {
            connection.inputEnded()
            flush(connection)
        } else if result == -Int(EAGAIN) || result == -Int(EINTR) {
            guard connection.tls != nil else { return }
            receivedPartOfRecord(connection)
            updateInterest(connection)
        } else {
            // A reset of a lingering connection does not change its close cause.
            close(connection, connection.phase == .lingering ? connection.closeCause : Self.closeCause(of: result))
        }
    }

    /// Sends the output of an event, then does the connection's next step.
    mutating func flush(_ connection: Connection) {
        if connection.phase == .ended {
            host.output.removeAll(keepingCapacity: true)
            host.sharedOutput = nil
        } else if !host.output.isEmpty {
            guard sendOutput(connection) else { return }
        }
        perform(connection)
    }

    /// - Returns: False if the connection was closed.
    private mutating func sendOutput(_ connection: Connection) -> Bool {
        defer { trimOutput() }
        if connection.isWriting {
            connection.pendingOutput.append(contentsOf: host.output)
        } else {
            guard let sent = taken(send(connection, host.output), by: connection) else {
                host.sharedOutput = nil
                return false
            }
            if sent == host.output.count, host.sharedOutput == nil { return true }
            connection.pendingOutput = Array(host.output[sent...])
            connection.pendingOffset = 0
            connection.outputBlocked(sent: sent, host)
        }
        // No request is answered behind a shared body, so no other one waits already.
        if let shared = host.sharedOutput.take() {
            connection.pendingShared = shared
            connection.sharedOffset = 0
        }
        if connection.pendingOutput.isEmpty { return sendPending(connection) }
        // Bytes that the socket did not take are kept, within the bound of one connection.
        guard connection.pendingOutput.count - connection.pendingOffset <= limits.waitingAnswerBytes else {
            close(connection, .memory)
            return false
        }
        host.account(connection)
        return true
    }

    /// Sends as much of the waiting output as the socket takes.
    /// - Returns: False if the connection was closed.
    private mutating func sendPending(_ connection: Connection) -> Bool {
        var sent = 0
        if connection.pendingOffset < connection.pendingOutput.count {
            let result = send(connection, connection.pendingOutput, from: connection.pendingOffset)
            guard let count = taken(result, by: connection) else { return false }
            sent = count
            connection.pendingOffset += count
            if connection.pendingOffset == connection.pendingOutput.count {
                connection.pendingOutput = []
                connection.pendingOffset = 0
                host.account(connection)
            }
        }
        if connection.pendingOutput.isEmpty, let shared = connection.pendingShared {
            let result = send(connection, shared, from: connection.sharedOffset)
            guard let count = taken(result, by: connection) else { return false }
            sent += count
            connection.sharedOffset += count
            if connection.sharedOffset == shared.count { connection.pendingShared = nil }
        }
        if connection.pendingOutput.isEmpty, connection.pendingShared == nil {
            connection.outputSent(host)
        } else {
            connection.outputBlocked(sent: sent, host)
        }
        return true
    }

    mutating func resumeSending(_ connection: Connection) {
        if sendPending(connection) { perform(connection) }
    }

    /// Does the same as ``SystemCalls/send(_:_:from:)``, encrypted if the connection is.
    private func send(_ connection: Connection, _ bytes: [UInt8], from offset: Int = 0) -> Int {
        connection.tls == nil
            ? SystemCalls.send(connection.descriptor, bytes, from: offset) : sendTLS(connection, bytes, from: offset)
    }

    /// - Returns: The number of bytes that the socket took; nil if the connection was closed because of an error.
    private mutating func taken(_ result: Int, by connection: Connection) -> Int? {
        if result >= 0 { return result }
        switch Int32(truncatingIfNeeded: -result) {
        case EAGAIN, EINTR, ENOBUFS: return 0
        default:
            close(connection, Self.closeCause(of: result))
            return nil
        }
    }

    private mutating func perform(_ connection: Connection) {
        switch connection.next(&host) {
        case .close(let cause):
            close(connection, cause)
            return
        case .shutdownWrite:
            endTLS(connection)
            // Later input is dropped, which needs no decryption.
            connection.tls = nil
            connection.tlsInterest = nil
            host.account(connection)
            let result = platform_shutdown_write(connection.descriptor)
            if result < 0 {
                close(connection, connection.closeCause)
                return
            }
        case .resume: queue(connection)
        case .wait: break
        }
        let list = table.list(for: connection)
        // A busy connection keeps its place from the moment it became busy, whatever events follow.
        if !(list == .busy || connection.isHandshaking) || table.list(of: connection) != list {
            table.move(connection, to: list)
        }
        table.schedule(connection)
        updateInterest(connection)
        if connection.tls != nil {
            host.account(connection)
            // Decrypted bytes in memory do not make the socket readable.
            if Self.hasReadableTLS(connection) { queue(connection) }
        }
    }

    mutating func queue(_ connection: Connection) {
        if connection.isQueued { return }
        connection.isQueued = true
        continuing.append(connection)
    }

    mutating func updateInterest(_ connection: Connection) {
        let events: UInt32 =
            switch connection.tlsInterest ?? connection.interest {
            case .input: Self.readable
            case .outputSpace: ReadyEvents.writable
            case .hangUp: ReadyEvents.readHangUp
            case .nothing: 0
            }
        if events == connection.registeredEvents { return }
        let result = platform_epoll_modify(handle.poll, connection.descriptor, events, table.tag(of: connection))
        if result < 0 {
            close(connection, .failed)
        } else {
            connection.registeredEvents = events
        }
    }

    mutating func add(_ descriptor: Int32, from peer: Peer?, isOverLimit: Bool) {
        let id = HTTPServer.nextConnectionID.wrappingAdd(1, ordering: .relaxed).oldValue
        let connection = Connection(id: id, descriptor: descriptor, isOverLimit: isOverLimit, host)
        table.insert(connection, from: peer)
        if isOverShare(table.countOfPeer(connection)) { handle.hasPeerOverShare.store(true, ordering: .relaxed) }
        let result = platform_epoll_add(handle.poll, descriptor, Self.readable, table.tag(of: connection))
        guard result >= 0 else {
            close(connection, .failed)
            return
        }
        connection.registeredEvents = Self.readable
        if tls != nil {
            // It uses no TLS memory before the first byte of its handshake, and no handshake waits for it.
            connection.phase = .silent
            connection.phaseDeadline = now + limits.handshakeDeadline
        }
        connection.beginDrain(host)
        host.account(connection)
        perform(connection)
    }

    /// Closes the socket (which removes it from the epoll set) and drops the connection.
    mutating func close(_ connection: Connection, _ cause: ConnectionCloseCause) {
        guard connection.slot >= 0 else { return }
        if connection.phase == .parked { host.handler.didAbandon(connection.request) }
        connection.releaseBuffer(&host)
        table.remove(connection)
        host.account(connection)
        endTLS(connection)
        connection.tls = nil
        platform_close(connection.descriptor)
        didClose(cause)
    }

    private mutating func trimOutput() {
        if host.output.capacity > 4 * limits.outputBytes {
            host.output = []
        } else {
            host.output.removeAll(keepingCapacity: true)
        }
    }

    /// The close cause for a socket that reported this negated error number.
    private static func closeCause(of result: Int) -> ConnectionCloseCause {
        switch Int32(truncatingIfNeeded: -result) {
        case ECONNRESET, EPIPE, ETIMEDOUT: .disconnected
        default: .failed
        }
    }
}
