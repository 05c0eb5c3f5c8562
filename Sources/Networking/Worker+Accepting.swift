internal import CPlatform
internal import Synchronization

extension Worker {
    /// Puts listeners and the wake descriptor of a worker into its epoll set.
    /// - Returns: The error number where one could not be.
    static func register(_ poll: Int32, wake: Int32, listeners: [Int32], _ system: SystemCalls) -> Int32? {
        let readable = UInt32(PLATFORM_READABLE)
        let result = system.add(poll, wake, readable, tag: wakeTag)
        if result < 0 { return -result }
        for (position, listener) in listeners.enumerated() {
            let result = system.add(poll, listener, readable, tag: firstListenerTag + UInt64(position))
            if result < 0 { return -result }
        }
        return nil
    }

    /// Takes connections off a listener's queue.
    /// - Returns: False where the queue is empty or accepting must pause.
    @discardableResult
    func acceptConnections(_ listener: Int32, atMost most: Int) -> Bool {
        for _ in 0..<most {
            guard makeRoomForHandshake() else {
                pauseAccepting()
                return false
            }
            let result = system.accept(listener)
            if result >= 0 {
                admit(result)
                continue
            }
            switch -result {
            case ErrorNumber.again: return false
            // The client left before it was accepted, or a signal came: the next one may be there.
            case ErrorNumber.connectionAborted, ErrorNumber.protocolError, ErrorNumber.interrupted: continue
            case ErrorNumber.processFileLimit, ErrorNumber.systemFileLimit:
                shedWithSpareDescriptor(listener)
                pauseAccepting()
                return false
            default:
                pauseAccepting()
                return false
            }
        }
        return true
    }

    /// Keeps to the limit: the oldest idle connection goes, else one too slow with its request, else the new one is
    /// kept on reserve for one answer (503, or a health check's), and beyond the reserve told 503 and closed.
    private func admit(_ descriptor: Int32) {
        now = MonotonicClock.now()
        counters.accepted += 1
        let open = shared.openConnections.wrappingAdd(1, ordering: .relaxed).newValue
        if open <= limits.connections || evictOne() {
            add(descriptor, isOverLimit: false)
        } else if open <= limits.connections + limits.reservedConnections {
            add(descriptor, isOverLimit: true)
        } else {
            // There is no room to wait for anything, so its request is not read, nor a TLS handshake made: what the
            // socket takes at once is sent.
            if tls.currentContext() == nil { _ = system.send(descriptor, Self.fullAnswer) }
            system.close(descriptor)
            shared.openConnections.wrappingSubtract(1, ordering: .relaxed)
            handle.counters.didClose(.limit)
        }
    }

    /// RFC 9110 §15.6.4.
    private static let fullAnswer = Array(
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".utf8
    )

    private func evictOne() -> Bool {
        for list in [ConnectionTable.List.idle, .reading, .handshaking] {
            if let oldest = table.oldest(in: list), engine.isEvictable(oldest, now: now) {
                close(oldest, .limit)
                return true
            }
        }
        return false
    }

    /// Without descriptors a queued connection could neither be served nor refused, and would keep the listener
    /// readable: the spare one is given up to take it and close it.
    private func shedWithSpareDescriptor(_ listener: Int32) {
        guard spareDescriptor >= 0 else { return }
        system.close(spareDescriptor)
        let result = system.accept(listener)
        if result >= 0 {
            system.close(result)
            handle.counters.didClose(.limit)
        }
        spareDescriptor = system.makeSpareDescriptor()
    }

    private func pauseAccepting() {
        if acceptPausedUntil != nil { return }
        acceptPausedUntil = now + limits.acceptPause
        setListeners(UInt32(0))
    }

    /// Listens again after a pause.
    func resumeAccepting() {
        acceptPausedUntil = nil
        if spareDescriptor < 0 { spareDescriptor = system.makeSpareDescriptor() }
        setListeners(UInt32(PLATFORM_READABLE))
    }

    private func setListeners(_ events: UInt32) {
        for (position, listener) in listeners.enumerated() {
            let tag = Self.firstListenerTag + UInt64(position)
            // Where this fails the pause is tried again at the next turn, or the listener stays as it is.
            if system.modify(poll, listener, events, tag: tag) < 0, events != 0 {
                acceptPausedUntil = now + limits.acceptPause
            }
        }
    }
}
