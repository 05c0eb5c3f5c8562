internal import CLLSystem
internal import Synchronization

extension Worker {
    /// Performs the tasks from other threads, and advances the stop.
    /// - Returns: False once the worker is done.
    mutating func takeCommands() -> Bool {
        let tasks = handle.takeTasks()
        for task in tasks {
            switch task {
            case .wakeParked:
                // All lists are searched: a parked request behind unsent output counts as busy.
                for connection in table.all() where connection.phase == .parked { queue(connection) }
            case .wake(let request):
                let connection = table.connection(at: request.slot)
                if let connection, connection.request == request { wake(connection) }
            case .serve(let descriptor): admit(descriptor, from: nil)
            case .makeRoom(let peer): makeRoomElsewhere(for: peer)
            case .stop(let closeAt, let cutOffAt):
                if !isDraining { listenerClosesAt = closeAt }
                self.cutOffAt = cutOffAt
                host.isDraining = true
            }
        }
        // The next wait may be long.
        if !tasks.isEmpty { publish() }
        if !isDraining { return true }
        now = MonotonicClock.now()
        if now >= listenerClosesAt {
            if listenerIsRefusing { closeListener() } else { refuseNewConnections() }
        }
        if now >= cutOffAt { return false }
        return listenerClosesAt != .never || table.count > 0 || !handle.endTasks()
    }

    /// The drain delay is over: no new connection from now on, and idle ones close after a last moment.
    private mutating func refuseNewConnections() {
        listenerIsRefusing = true
        listenerClosesAt = now
        if let listener, let file = listener.file {
            // The file goes first, so that no other process takes it for a stale one.
            file.remove()
            _ = platform_shutdown_read(listener.descriptor)
            // The connections that are already queued are served.
            while acceptConnections() {}
            _ = platform_epoll_remove(handle.poll, listener.descriptor)
        } else if let listener {
            // Without permission for the filter, only the few connections made between the last accept and the close are
            // lost.
            _ = platform_refuse_new_connections(listener.descriptor)
            listenerClosesAt = now + limits.drainHandshakeWait
        }
        for connection in table.all() {
            connection.beginDrain(host)
            table.schedule(connection)
        }
    }

    /// The system has completed the connections in the accept queue, so their clients expect an answer and get one.
    private mutating func closeListener() {
        while acceptConnections() {}
        if let listener = listener.take() {
            _ = platform_epoll_remove(handle.poll, listener.descriptor)
            listener.close()
        }
        listenerClosesAt = .never
        acceptPausedUntil = .never
    }

    mutating func closeEverything() {
        var cutOff = 0
        for connection in table.all() {
            if ![.idle, .lingering].contains(connection.phase), !connection.isHandshaking { cutOff += 1 }
            close(connection, .stopped)
        }
        server.cutOff.wrappingAdd(cutOff, ordering: .relaxed)
        while !handle.endTasks() {
            for case .serve(let descriptor) in handle.takeTasks() { platform_close(descriptor) }
        }
        listener.take()?.close()
        platform_close(handle.poll)
        publish()
    }
}

enum WorkerTask {
    case wakeParked
    /// Visit this request, if it is still parked.
    case wake(ParkedRequest)
    /// Serve a connection that the first worker has accepted.
    case serve(Int32)
    /// Close a connection of the largest peer for one that another worker has admitted from this peer.
    case makeRoom(Peer?)
    case stop(listenerClosesAt: MonotonicInstant, cutOffAt: MonotonicInstant)
}

final class WorkerHandle: Sendable {
    let wake: WakeSignal
    /// The worker's own resources, made before its loop begins: an epoll set, and a bound socket that is in it.
    let poll: Int32
    let listener: Listener?
    /// The time of the check that the worker has not answered yet, in nanoseconds of the monotonic clock; 0 for none.
    private let checkedAt = Atomic<UInt64>(0)
    /// The tasks that the worker has not taken yet; nil once it ends.
    private let tasks = Locked<[WorkerTask]?>([])
    /// The worker's connections, with those that it has not taken yet.
    let load = Atomic<Int>(0)
    let hasPeerOverShare = Atomic<Bool>(false)
    let counters = Locked(HTTPServerCounters())

    init(_ listener: Listener?) throws(SocketError) {
        self.listener = listener
        poll = platform_epoll_create()
        guard poll >= 0 else { throw SocketError(.createPoll, errorNumber: -poll) }
        wake = WakeSignal()
        var result = platform_epoll_add(poll, wake.descriptor, PLATFORM_READABLE, Worker.wakeTag)
        if result >= 0, let listener {
            result = platform_epoll_add(poll, listener.descriptor, PLATFORM_READABLE, Worker.listenerTag)
        }
        if result >= 0 { return }
        platform_close(poll)
        throw wake.error ?? SocketError(.controlPoll, errorNumber: -result)
    }

    /// False if the worker has not answered a check for longer than `limit`. Each check wakes the worker, and a later
    /// check sees the answer.
    func isRunning(at now: MonotonicInstant, within limit: Duration) -> Bool {
        let checked = checkedAt.load(ordering: .acquiring)
        guard checked == 0 else { return now <= MonotonicInstant(nanoseconds: checked) + limit }
        checkedAt.store(max(now.nanoseconds, 1), ordering: .releasing)
        wake.set()
        return true
    }

    func answerCheck() { checkedAt.store(0, ordering: .releasing) }

    /// - Returns: False if the worker takes no more tasks, or if `most` wait already.
    @discardableResult
    func send(_ task: WorkerTask, unless most: Int = .max) -> Bool {
        let isTaken = tasks.withLock { tasks in
            guard let count = tasks?.count, count < most else { return false }
            tasks?.append(task)
            return true
        }
        if isTaken { wake.set() }
        return isTaken
    }

    func takeTasks() -> [WorkerTask] {
        tasks.withLock { tasks in
            guard let taken = tasks else { return [] }
            tasks = []
            return taken
        }
    }

    /// Takes no more tasks.
    /// - Returns: False if one waits.
    func endTasks() -> Bool {
        tasks.withLock { tasks in
            if tasks?.isEmpty == true { tasks = nil }
            return tasks == nil
        }
    }
}
