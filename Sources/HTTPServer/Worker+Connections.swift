internal import Sockets
internal import Synchronization

extension Worker {
    private static let gone = ReadyEvents.Bits.error | ReadyEvents.Bits.hangUp
    private static let readable = ReadyEvents.Bits.readable | ReadyEvents.Bits.readHangUp
    private static let writable = ReadyEvents.Bits.writable
    private static let hangUp = ReadyEvents.Bits.readHangUp

    /// Something happened on a connection.
    mutating func handle(_ connection: Connection, _ events: UInt32) {
        if connection.tls != nil || connection.isHandshaking, handleTLS(connection) { return }
        if connection.isWriting {
            if events & Self.gone != 0 {
                close(connection, .disconnected)
            } else if events & Self.writable != 0 {
                resumeSending(connection)
            }
            return
        }
        switch connection.interest {
        case .hangUp, .nothing:
            if events & Self.gone != 0 {
                close(connection, .disconnected)
            } else if events & Self.hangUp != 0 {
                // The client may only have ended its own direction: its answer is still owed.
                engine.inputEnded(connection)
                settle(connection)
            }
        case .input, .outputSpace:
            // Buffered bytes go first; epoll is level-triggered and will report again.
            if connection.isQueuedToResume, events & Self.gone == 0 { return }
            receive(connection)
        }
    }

    mutating func receive(_ connection: Connection) {
        let room = engine.room(for: connection)
        if room == 0 {
            close(connection, .memory)
            return
        }
        var storage = receiveBuffer.takeStorage()
        let result =
            connection.tls == nil
            ? system.receive(connection.descriptor, into: &storage, atMost: room)
            : receiveTLS(connection, into: &storage, atMost: room)
        receiveBuffer.putBack(storage, count: result)
        if result > 0 {
            engine.received(connection, &receiveBuffer, now: now)
            settle(connection)
        } else if result == 0 {
            engine.inputEnded(connection)
            settle(connection)
        } else if result == -Int(ErrorNumber.again) || result == -Int(ErrorNumber.interrupted) {
            // What came may be a part of a record, for which OpenSSL keeps a buffer.
            if connection.tls != nil { engine.account(connection) }
        } else {
            if connection.phase == .lingering {
                // A reset now changes nothing about why the connection ends.
                close(connection, connection.closeCause)
                return
            }
            close(connection, Self.isDisconnect(Int32(truncatingIfNeeded: -result)) ? .disconnected : .failed)
        }
    }

    /// Sends what an event produced, then does what the engine says is next.
    mutating func settle(_ connection: Connection) {
        if connection.phase == .ended {
            engine.output.removeAll(keepingCapacity: true)
            engine.sharedOutput = nil
        } else if !engine.output.isEmpty {
            guard sendOutput(connection) else { return }
        }
        act(connection)
    }

    /// - Returns: False where the connection was closed.
    private mutating func sendOutput(_ connection: Connection) -> Bool {
        if connection.isWriting {
            connection.pendingOutput.append(contentsOf: engine.output)
            engine.output.removeAll(keepingCapacity: true)
            return waitForReader(connection)
        }
        let count =
            connection.tls == nil
            ? system.send(connection.descriptor, engine.output) : sendTLS(connection, engine.output)
        if count == engine.output.count {
            trimOutput()
            guard let shared = engine.sharedOutput else { return true }
            connection.pendingShared = shared
            connection.sharedOffset = 0
            engine.sharedOutput = nil
            engine.outputBlocked(connection, sent: count, now: now)
            return sendPending(connection)
        }
        guard count >= 0 || Self.isTemporary(count) else {
            trimOutput()
            engine.sharedOutput = nil
            close(connection, Self.isDisconnect(Int32(truncatingIfNeeded: -count)) ? .disconnected : .failed)
            return false
        }
        let sent = max(count, 0)
        connection.pendingOutput = Array(engine.output[sent...])
        connection.pendingOffset = 0
        trimOutput()
        engine.outputBlocked(connection, sent: sent, now: now)
        return waitForReader(connection)
    }

    /// Keeps what the socket did not take, within the bound of one connection.
    /// - Returns: False where the connection was closed.
    private mutating func waitForReader(_ connection: Connection) -> Bool {
        // Nothing is answered behind a shared body, so none waits already.
        if let shared = engine.sharedOutput {
            connection.pendingShared = shared
            connection.sharedOffset = 0
            engine.sharedOutput = nil
        }
        guard connection.pendingOutput.count - connection.pendingOffset <= limits.waitingAnswerBytes else {
            close(connection, .memory)
            return false
        }
        engine.account(connection)
        return true
    }

    /// Sends what the socket takes of the output that waits.
    /// - Returns: False where the connection was closed.
    private mutating func sendPending(_ connection: Connection) -> Bool {
        var taken = 0
        if connection.pendingOffset < connection.pendingOutput.count {
            guard let count = send(connection, connection.pendingOutput, from: connection.pendingOffset) else {
                return false
            }
            taken = count
            connection.pendingOffset += count
            if connection.pendingOffset == connection.pendingOutput.count {
                connection.pendingOutput = []
                connection.pendingOffset = 0
                engine.account(connection)
            }
        }
        if connection.pendingOutput.isEmpty, let shared = connection.pendingShared {
            guard let count = send(connection, shared, from: connection.sharedOffset) else { return false }
            taken += count
            connection.sharedOffset += count
            if connection.sharedOffset == shared.count { connection.pendingShared = nil }
        }
        if connection.pendingOutput.isEmpty, connection.pendingShared == nil {
            engine.outputSent(connection, now: now)
        } else {
            engine.outputBlocked(connection, sent: taken, now: now)
        }
        return true
    }

    /// The socket has space for output that waits.
    mutating func resumeSending(_ connection: Connection) {
        if sendPending(connection) { act(connection) }
    }

    /// - Returns: How many bytes the socket took, 0 where it has no space; nil where the connection was closed.
    private mutating func send(_ connection: Connection, _ bytes: [UInt8], from offset: Int) -> Int? {
        let count =
            connection.tls == nil
            ? system.send(connection.descriptor, bytes, from: offset) : sendTLS(connection, bytes, from: offset)
        guard count >= 0 || Self.isTemporary(count) else {
            close(connection, Self.isDisconnect(Int32(truncatingIfNeeded: -count)) ? .disconnected : .failed)
            return nil
        }
        return max(count, 0)
    }

    private mutating func act(_ connection: Connection) {
        switch engine.next(connection, now: now) {
        case .close(let cause):
            close(connection, cause)
            return
        case .shutdownWrite:
            endTLS(connection)
            let result = system.shutdownWrite(connection.descriptor)
            if result < 0 {
                close(connection, connection.closeCause)
                return
            }
        case .resume:
            if !connection.isQueuedToResume {
                connection.isQueuedToResume = true
                resumeQueue.append(connection)
            }
        case .wait: break
        }
        let list = list(for: connection)
        // The order is that of beginning to be busy, however often something happens meanwhile.
        if !(list == .busy || connection.isHandshaking) || table.list(of: connection) != list {
            table.move(connection, to: list)
        }
        wheel.schedule(connection.slot, at: connection.deadline)
        updateInterest(connection)
        if connection.tls != nil {
            engine.account(connection)
            resumeForPendingTLS(connection)
        }
    }

    private func list(for connection: Connection) -> ConnectionTable.List {
        if connection.isWriting { return .busy }
        switch connection.phase {
        // A lingering connection may be closed at any time.
        case .idle, .lingering: return .idle
        case .head, .body, .discarding: return .busy
        case .parked: return .parked
        case .closing, .ended: return .none
        case .silent: return .silent
        case .waiting, .handshaking: return table.list(of: connection)
        }
    }

    mutating func updateInterest(_ connection: Connection) {
        let events: UInt32 =
            switch connection.tlsInterest ?? connection.interest {
            case .input: Self.readable
            case .outputSpace: Self.writable
            case .hangUp: Self.hangUp
            case .nothing: 0
            }
        if events == connection.registeredEvents { return }
        let result = system.modify(poll, connection.descriptor, events, tag: table.tag(of: connection))
        if result < 0 {
            close(connection, .failed)
        } else {
            connection.registeredEvents = events
        }
    }

    /// Registers a new connection.
    mutating func add(_ descriptor: Int32, from peer: PeerTable.Peer?, isOverLimit: Bool) {
        let id = WorkerShared.nextConnectionID.wrappingAdd(1, ordering: .relaxed).oldValue
        let connection = engine.open(id: id, descriptor: descriptor, isOverLimit: isOverLimit, now: now)
        table.insert(connection)
        if let peer { peers.add(connection.slot, from: peer) }
        let result = system.add(poll, descriptor, Self.readable, tag: table.tag(of: connection))
        guard result >= 0 else {
            close(connection, .failed)
            return
        }
        connection.registeredEvents = Self.readable
        awaitHandshake(connection)
        if isDraining { engine.beginDrain(connection, now: now) }
        engine.account(connection)
        act(connection)
    }

    /// Closes the socket (which takes it out of the epoll set) and forgets the connection.
    mutating func close(_ connection: Connection, _ cause: ConnectionCloseCause) {
        guard connection.slot >= 0 else { return }
        if connection.phase == .parked { engine.abandonParked(connection) }
        wheel.remove(connection.slot)
        peers.remove(connection.slot)
        engine.releaseBuffer(of: connection)
        table.remove(connection)
        engine.account(connection)
        endTLS(connection)
        connection.tls = nil
        system.close(connection.descriptor)
        shared.openConnections.wrappingSubtract(1, ordering: .relaxed)
        handle.counters.didClose(cause)
    }

    /// Gives memory back after an unusually long output.
    private mutating func trimOutput() {
        if engine.output.capacity > 4 * limits.outputBytes {
            engine.output = []
        } else {
            engine.output.removeAll(keepingCapacity: true)
        }
    }

    static func isTemporary(_ result: Int) -> Bool {
        result == -Int(ErrorNumber.again) || result == -Int(ErrorNumber.interrupted)
            || result == -Int(ErrorNumber.noBufferSpace)
    }

    static func isDisconnect(_ errorNumber: Int32) -> Bool {
        errorNumber == ErrorNumber.connectionReset || errorNumber == ErrorNumber.brokenPipe
            || errorNumber == ErrorNumber.timedOut
    }
}
