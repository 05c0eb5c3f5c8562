internal import CLLSystem
@_exported public import LLThreads

/// The system calls of the event loop, in one place. Tests can make each of them fail.
package struct SystemCalls: Sendable {
    /// Nil outside tests.
    private let faults: FaultPlan?

    package init(faults: FaultPlan? = nil) {
        self.faults = faults
    }

    /// Every function below returns a value that is not negative, or the negated error number. `peer` is set if the
    /// accepted connection has a peer address; clients of a Unix socket have none.
    package func accept(_ listener: Int32, peer: inout SocketAddress?) -> Int32 {
        if let fault = fault(.accept) { return fault }
        var address = platform_address()
        let result = unsafe opened(platform_accept(listener, &address))
        peer = result >= 0 && address.port != 0 ? SocketAddress(address) : nil
        return result
    }

    package func receive(_ descriptor: Int32, into buffer: inout [UInt8], atMost most: Int = .max) -> Int {
        if let fault = fault(.receive) { return Int(fault) }
        // The system writes at most this number of bytes from the base address on, all within the array.
        return unsafe buffer.withUnsafeMutableBytes { bytes in
            unsafe platform_recv(descriptor, bytes.baseAddress, min(bytes.count, most))
        }
    }

    /// Sends `bytes` from `offset` on; `offset` must not exceed their number.
    package func send(_ descriptor: Int32, _ bytes: [UInt8], from offset: Int = 0) -> Int {
        if let fault = fault(.send) { return Int(fault) }
        guard offset >= 0, offset < bytes.count else { return 0 }
        let most = faults?.greatestTransfer ?? .max
        // 0 <= offset < count, so the call reads only the rest of the array.
        return unsafe bytes.withUnsafeBytes { all in
            unsafe platform_send(descriptor, all.baseAddress.map { unsafe $0 + offset }, min(all.count - offset, most))
        }
    }

    package func shutdownWrite(_ descriptor: Int32) -> Int32 {
        fault(.shutdown) ?? platform_shutdown_write(descriptor)
    }

    /// The negated error number of a call that a test makes fail.
    private func fault(_ call: FaultPlan.Call) -> Int32? { faults?.next(call).map { -$0 } }

    /// Closing always frees the number; a reported error needs no further action.
    package func close(_ descriptor: Int32) {
        _ = platform_close(descriptor)
        faults?.changeOpenDescriptors(by: -1)
    }

    /// Counts a descriptor, which another function may have opened; does nothing for an error number.
    @discardableResult
    package func opened(_ result: Int32) -> Int32 {
        if result >= 0 { faults?.changeOpenDescriptors(by: 1) }
        return result
    }

    package func createPoll() -> Int32 {
        fault(.createPoll) ?? opened(platform_epoll_create())
    }

    package func add(_ poll: Int32, _ descriptor: Int32, _ events: UInt32, tag: UInt64) -> Int32 {
        fault(.control) ?? platform_epoll_add(poll, descriptor, events, tag)
    }

    package func modify(_ poll: Int32, _ descriptor: Int32, _ events: UInt32, tag: UInt64) -> Int32 {
        fault(.control) ?? platform_epoll_modify(poll, descriptor, events, tag)
    }

    package func remove(_ poll: Int32, _ descriptor: Int32) -> Int32 {
        platform_epoll_remove(poll, descriptor)
    }

    package func wait(_ poll: Int32, _ events: inout ReadyEvents, timeoutMilliseconds: Int32) -> Int32 {
        if let fault = fault(.wait) { return fault }
        // At most `count` events are written from the base address on.
        return unsafe events.events.withUnsafeMutableBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return 0 }
            return unsafe platform_epoll_wait(poll, base, Int32(clamping: buffer.count), timeoutMilliseconds)
        }
    }

    package func makeEventDescriptor() -> Int32 {
        fault(.createEventDescriptor) ?? opened(platform_event_descriptor())
    }

    package func makeSpareDescriptor() -> Int32 {
        fault(.createSpareDescriptor) ?? opened(platform_spare_descriptor())
    }
}

extension SystemCalls {
    /// Drops packets that open connections to a listener. Without permission for the filter, only the few connections
    /// made between the last accept and the close are lost. A Unix socket refuses by itself; its file is removed first,
    /// so that no other process takes it for a stale one.
    package func refuseNewConnections(_ listener: Int32, file: UnixSocketFile?) {
        if let file {
            file.remove()
            _ = platform_shutdown_read(listener)
        } else {
            _ = platform_refuse_new_connections(listener)
        }
    }

    /// Returns memory that is free in this process to the system.
    package func releaseMemory() { platform_release_memory() }
}

/// The events of an epoll set's last report, in memory that is reused.
package struct ReadyEvents {
    /// The events to report about a descriptor, and the reported ones: the bits of epoll_ctl(2).
    package enum Bits {
        package static let readable = UInt32(PLATFORM_READABLE)
        package static let writable = UInt32(PLATFORM_WRITABLE)
        package static let error = UInt32(PLATFORM_ERROR)
        package static let hangUp = UInt32(PLATFORM_HANG_UP)
        package static let readHangUp = UInt32(PLATFORM_READ_HANG_UP)
        /// Only one is woken of several sets that wait for the same descriptor.
        package static let exclusive = UInt32(PLATFORM_EXCLUSIVE)
    }

    var events: [platform_event]

    package init(capacity: Int) {
        events = Array(repeating: platform_event(), count: capacity)
    }

    package var capacity: Int { events.count }

    /// The report at `position`, which must be below ``capacity``.
    package subscript(position: Int) -> (tag: UInt64, bits: UInt32) {
        (events[position].tag, events[position].events)
    }
}

/// Makes chosen system calls of a server fail, for tests of its error handling.
package final class FaultPlan: Sendable {
    package enum Call: Int, CaseIterable, Sendable {
        case accept, receive, send, shutdown, createPoll, control, wait, createEventDescriptor, createSpareDescriptor
    }

    private struct State {
        var failing: Range<Int>
        var counts = [Int](repeating: 0, count: Call.allCases.count)
        var openDescriptors = 0
    }

    private let call: Call
    private let errorNumber: Int32
    private let state: Locked<State>
    /// The greatest number of bytes that one send takes; `Int.max` for sends that are not cut short.
    let greatestTransfer: Int

    /// The calls of kind `call` numbered `numbers` (from 1) fail with `errorNumber`.
    package init(_ call: Call, _ numbers: Range<Int>, errorNumber: Int32, greatestTransfer: Int = .max) {
        self.call = call
        state = Locked(State(failing: numbers))
        self.errorNumber = errorNumber
        self.greatestTransfer = greatestTransfer
    }

    /// From now on no call fails.
    package func end() { state.withLock { $0.failing = 0..<0 } }

    package func count(_ call: Call) -> Int {
        state.withLock { $0.counts[call.rawValue] }
    }

    /// Descriptors the server has opened and not closed.
    package var openDescriptors: Int {
        state.withLock { $0.openDescriptors }
    }

    /// The server has opened (or taken over) a descriptor, or closed one.
    func changeOpenDescriptors(by change: Int) {
        state.withLock { $0.openDescriptors += change }
    }

    /// The error to report instead of calling; nil to call.
    func next(_ made: Call) -> Int32? {
        state.withLock { state in
            state.counts[made.rawValue] += 1
            return made == call && state.failing.contains(state.counts[made.rawValue]) ? errorNumber : nil
        }
    }
}
