internal import Synchronization

extension Worker {
    /// The time for which a listener that refuses new connections stays open for TCP handshakes already begun.
    private static let handshakeWaitNanoseconds: UInt64 = 50_000_000

    /// Performs the tasks from other threads, and advances the stop.
    /// - Returns: False once the worker is done.
    mutating func takeCommands() -> Bool {
        let tasks = handle.takeTasks()
        for task in tasks {
            switch task {
            case .wakeParked:
                // All lists are searched: a parked request behind unsent output counts as busy.
                for connection in table.all() where connection.slot >= 0 && connection.phase == .parked {
                    wake(connection)
                }
            case .wake(let request):
                let connection = table.connection(at: request.slot)
                if let connection, connection.request == request { wake(connection) }
            case .serve(let descriptor): admit(descriptor, from: nil)
            case .makeRoom(let peer): makeRoomElsewhere(for: peer)
            }
        }
        // The next wait may be long.
        if !tasks.isEmpty { publish() }
        if !isDraining {
            guard shared.isDraining.load(ordering: .acquiring) else { return true }
            isDraining = true
            engine.isDraining = true
            listenersCloseAt = MonotonicInstant(nanoseconds: shared.listenersCloseAt.load(ordering: .relaxed))
        }
        cutOffAt = MonotonicInstant(nanoseconds: shared.cutOffAt.load(ordering: .relaxed))
        now = MonotonicClock.now()
        if now >= listenersCloseAt {
            if listenersAreRefusing { closeListeners() } else { refuseNewConnections() }
        }
        if now >= cutOffAt { return false }
        return listenersCloseAt != .never || table.count > 0 || !handle.endTasks()
    }

    private mutating func wake(_ connection: Connection) {
        now = MonotonicClock.now()
        engine.wake(connection, now: now)
        flush(connection)
        keepToShare()
    }

    /// The drain delay is over: no new connection from now on, and idle ones close after a last moment.
    private mutating func refuseNewConnections() {
        listenersAreRefusing = true
        for listener in listeners {
            system.refuseNewConnections(listener.descriptor, file: listener.file)
            guard listener.file != nil else { continue }
            // The listener refuses new connections; those already queued are served.
            acceptQueue(of: listener)
            _ = system.remove(poll, listener.descriptor)
        }
        let haveHandshakes = listeners.contains { $0.file == nil }
        listenersCloseAt = haveHandshakes ? now.adding(nanoseconds: Self.handshakeWaitNanoseconds) : now
        for connection in table.all() {
            engine.beginDrain(connection, now: now)
            deadlines.schedule(connection.slot, at: connection.deadline)
        }
    }

    /// The system has completed the connections in the accept queue, so their clients expect an answer and get one.
    private mutating func closeListeners() {
        for listener in listeners {
            acceptQueue(of: listener)
            _ = system.remove(poll, listener.descriptor)
            listener.close(system)
        }
        listeners.removeAll()
        listenersCloseAt = .never
        acceptPausedUntil = .never
    }

    private mutating func acceptQueue(of listener: Listener) {
        while acceptConnections(listener, atMost: limits.acceptsPerWake) {}
    }

    /// The end of the worker: remaining connections are cut off.
    mutating func closeEverything() {
        var cutOff = 0
        for connection in table.all() {
            if ![.idle, .lingering].contains(connection.phase), !connection.isHandshaking { cutOff += 1 }
            close(connection, .stopped)
        }
        shared.cutOffRequests.wrappingAdd(cutOff, ordering: .relaxed)
        while !handle.endTasks() {
            for case .serve(let descriptor) in handle.takeTasks() { system.close(descriptor) }
        }
        for listener in listeners { listener.close(system) }
        listeners.removeAll()
        if spareDescriptor >= 0 { system.close(spareDescriptor) }
        system.close(poll)
        publish()
    }
}
