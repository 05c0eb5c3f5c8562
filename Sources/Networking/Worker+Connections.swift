internal import CPlatform
internal import Synchronization

extension Worker {
    private static let gone = UInt32(PLATFORM_ERROR) | UInt32(PLATFORM_HANG_UP)
    private static let readable = UInt32(PLATFORM_READABLE) | UInt32(PLATFORM_READ_HANG_UP)
    private static let writable = UInt32(PLATFORM_WRITABLE)
    private static let hangUp = UInt32(PLATFORM_READ_HANG_UP)

    /// Something happened on a connection.
    mutating func handle(_ connection: Connection, _ events: UInt32) {
        if connection.tls != nil, handleTLS(connection) { return }
        if connection.isWriting {
            if events & Self.gone != 0 {
                close(connection, .disconnected)
            } else if events & Self.writable != 0 {
                sendPending(connection)
            }
            return
        }
        switch connection.interest {
        case .hangUp, .nothing:
            if events & Self.gone != 0 {
                close(connection, .disconnected)
            } else if events & Self.hangUp != 0 {
                // The client may only have ended its own direction: its answer is still owed.
                settle(connection, engine.inputEnded(connection, now: now))
            }
        case .input, .outputSpace:
            // Bytes in memory have their turn first; the socket reports again.
            if connection.isQueuedToResume, events & Self.gone == 0 { return }
            receive(connection)
        }
    }

    mutating func receive(_ connection: Connection) {
        var result = 0
        engine.receiveBuffer.receive { storage in
            result =
                connection.tls == nil
                ? system.receive(connection.descriptor, into: &storage) : receiveTLS(connection, into: &storage)
            return result
        }
        if result > 0 {
            settle(connection, engine.received(connection, now: now))
        } else if result == 0 {
            settle(connection, engine.inputEnded(connection, now: now))
        } else if result != -Int(ErrorNumber.again), result != -Int(ErrorNumber.interrupted) {
            if connection.phase == .lingering {
                // A reset now changes nothing about why the connection ends.
                close(connection, connection.closeCause)
                return
            }
            close(connection, Self.isDisconnect(Int32(truncatingIfNeeded: -result)) ? .disconnected : .failed)
        }
    }

    /// Sends what an event produced and makes the worker wait for what the connection needs next.
    mutating func settle(_ connection: Connection, _ first: ConnectionEngine.Step) {
        var step = first
        if case .close(let cause) = step {
            engine.output.removeAll(keepingCapacity: true)
            close(connection, cause)
            return
        }
        if !engine.output.isEmpty {
            guard let next = sendOutput(connection) else { return }
            if next != .wait || step != .resume { step = next }
        }
        act(connection, step)
    }

    /// - Returns: Nil where the connection was closed.
    private mutating func sendOutput(_ connection: Connection) -> ConnectionEngine.Step? {
        if connection.isWriting {
            connection.pendingOutput.append(contentsOf: engine.output)
            engine.output.removeAll(keepingCapacity: true)
            return .wait
        }
        let count =
            connection.tls == nil
            ? system.send(connection.descriptor, engine.output) : sendTLS(connection, engine.output)
        if count == engine.output.count {
            trimOutput()
            return engine.outputSent(connection, now: now)
        }
        guard count >= 0 || Self.isTemporary(count) else {
            trimOutput()
            close(connection, Self.isDisconnect(Int32(truncatingIfNeeded: -count)) ? .disconnected : .failed)
            return nil
        }
        let sent = max(count, 0)
        connection.pendingOutput = Array(engine.output[sent...])
        connection.pendingOffset = 0
        trimOutput()
        engine.outputBlocked(connection, sent: sent, now: now)
        return .wait
    }

    /// The socket has space for output that waits.
    mutating func sendPending(_ connection: Connection) {
        let count =
            connection.tls == nil
            ? system.send(connection.descriptor, connection.pendingOutput, from: connection.pendingOffset)
            : sendTLS(connection, connection.pendingOutput, from: connection.pendingOffset)
        guard count >= 0 || Self.isTemporary(count) else {
            close(connection, Self.isDisconnect(Int32(truncatingIfNeeded: -count)) ? .disconnected : .failed)
            return
        }
        connection.pendingOffset += max(count, 0)
        if connection.pendingOffset == connection.pendingOutput.count {
            connection.pendingOutput = []
            connection.pendingOffset = 0
            act(connection, engine.outputSent(connection, now: now))
        } else {
            engine.outputBlocked(connection, sent: max(count, 0), now: now)
            act(connection, .wait)
        }
    }

    private mutating func act(_ connection: Connection, _ step: ConnectionEngine.Step) {
        switch step {
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
            if !connection.isQueuedToResume, !connection.isWriting {
                connection.isQueuedToResume = true
                resumeQueue.append(connection)
            }
        case .wait: break
        }
        table.move(connection, to: list(for: connection))
        wheel.schedule(connection.slot, at: connection.deadline)
        updateInterest(connection)
        if connection.tls != nil { resumeForPendingTLS(connection) }
    }

    private func list(for connection: Connection) -> ConnectionTable.List {
        if connection.isWriting { return .none }
        if connection.isHandshaking { return .handshaking }
        switch connection.phase {
        // One that lingers has nothing left to lose.
        case .idle, .lingering: return .idle
        case .head, .body, .discarding: return .reading
        case .parked: return .parked
        case .closing: return .none
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
    mutating func add(_ descriptor: Int32, isOverLimit: Bool) {
        let id = shared.nextConnectionID.wrappingAdd(1, ordering: .relaxed).oldValue
        let connection = engine.open(id: id, descriptor: descriptor, isOverLimit: isOverLimit, now: now)
        table.insert(connection)
        let result = system.add(poll, descriptor, Self.readable, tag: table.tag(of: connection))
        guard result >= 0 else {
            close(connection, .failed)
            return
        }
        connection.registeredEvents = Self.readable
        guard beginTLS(connection) else {
            close(connection, .failed)
            return
        }
        if isDraining { engine.beginDrain(connection, now: now) }
        act(connection, .wait)
    }

    /// Closes the socket (which takes it out of the epoll set) and forgets the connection.
    mutating func close(_ connection: Connection, _ cause: ConnectionCloseCause) {
        guard connection.slot >= 0 else { return }
        if connection.phase == .parked { engine.abandonParked(connection) }
        wheel.remove(connection.slot)
        engine.releaseBuffer(of: connection)
        table.remove(connection)
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
