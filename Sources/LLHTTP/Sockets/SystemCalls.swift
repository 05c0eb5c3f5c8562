internal import CLLSystem
@_exported public import LLBytes

package enum SystemCalls {
    /// Every function below returns a value that is not negative, or the negated error number. `peer` is set if the
    /// accepted connection has a peer address; clients of a Unix socket have none.
    package static func accept(_ listener: Int32, peer: inout SocketAddress?) -> Int32 {
        var address = platform_address()
        let result = unsafe platform_accept(listener, &address)
        peer = result >= 0 && address.port != 0 ? SocketAddress(address) : nil
        return result
    }

    /// Makes an empty file in memory (memfd_create(2)).
    package static func memoryFile() -> Int32 { platform_memory_file() }

    package static func receive(_ descriptor: Int32, into buffer: inout [UInt8], atMost most: Int = .max) -> Int {
        // The system writes at most this number of bytes from the base address on, all within the array.
        return unsafe buffer.withUnsafeMutableBytes { bytes in
            unsafe platform_recv(descriptor, bytes.baseAddress, min(bytes.count, most))
        }
    }

    /// Sends `bytes` from `offset` on; `offset` must not exceed their number.
    package static func send(_ descriptor: Int32, _ bytes: [UInt8], from offset: Int = 0) -> Int {
        guard offset >= 0, offset < bytes.count else { return 0 }
        // 0 <= offset < count, so the call reads only the rest of the array.
        return unsafe bytes.withUnsafeBytes { all in
            unsafe platform_send(descriptor, all.baseAddress.map { unsafe $0 + offset }, all.count - offset)
        }
    }

    static func wait(_ poll: Int32, _ events: inout [platform_event], timeoutMilliseconds: Int32) -> Int32 {
        // At most `count` events are written from the base address on.
        return unsafe events.withUnsafeMutableBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return 0 }
            return unsafe platform_epoll_wait(poll, base, Int32(clamping: buffer.count), timeoutMilliseconds)
        }
    }

    /// Drops packets that open connections to a listener. Without permission for the filter, only the few connections
    /// made between the last accept and the close are lost. A Unix socket refuses by itself; its file is removed first,
    /// so that no other process takes it for a stale one.
    package static func refuseNewConnections(_ listener: Int32, file: UnixSocketFile?) {
        if let file {
            file.remove()
            _ = platform_shutdown_read(listener)
        } else {
            _ = platform_refuse_new_connections(listener)
        }
    }
}

/// The events to report about a descriptor, and the reported ones: the bits of epoll_ctl(2).
enum ReadyEvents {
    static let readable = UInt32(PLATFORM_READABLE)
    static let writable = UInt32(PLATFORM_WRITABLE)
    static let error = UInt32(PLATFORM_ERROR)
    static let hangUp = UInt32(PLATFORM_HANG_UP)
    static let readHangUp = UInt32(PLATFORM_READ_HANG_UP)
}

package struct SocketError: Error, Equatable, CustomStringConvertible {
    package enum Operation: String, Sendable {
        case createSocket = "create a socket"
        case setOption = "set a socket option"
        case bind = "bind to"
        case listen = "listen on"
        case connect = "connect to"
        case receive = "receive from"
        case send = "send to"
        case createPoll = "create an epoll set"
        case controlPoll = "change an epoll set"
        case createEventDescriptor = "create an event descriptor"
        case readAddress = "read the address of"
        case setMode = "set the permissions of"
        case replace
    }

    package let operation: Operation
    package let errorNumber: Int32
    package let address: ListenAddress?

    package init(_ operation: Operation, errorNumber: Int32, address: ListenAddress? = nil) {
        self.operation = operation
        self.errorNumber = errorNumber
        self.address = address
    }

    /// One sentence, for instance `cannot bind to 127.0.0.1:8080: Address already in use`.
    package var description: String {
        let place = address.map { " \($0)" } ?? ""
        // errno's text would mislead here.
        let isOther = operation == .replace && errorNumber == ENOTSOCK
        let reason =
            isOther ? "the file there is no socket, so it is left alone" : SystemReason.sentence(for: errorNumber)
        return "cannot \(operation.rawValue)\(place): \(reason)"
    }
}
