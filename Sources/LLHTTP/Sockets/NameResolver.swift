internal import CLLSystem
internal import Dispatch
internal import Synchronization

/// Finds the addresses of hosts and never blocks its caller beyond a deadline. The system's resolver has none, so it runs
/// on a queue of its own, and a look-up that takes too long is left to end by itself.
package final class NameResolver: Sendable {
    /// Finds a host's addresses, or fails with `nameNotResolved`; it may block for any time.
    package typealias Lookup = @Sendable (_ host: String) -> Result<[SocketAddress], ClientError>

    /// The limit of look-ups that have not ended and that their callers have left: 8, so that a resolver without an
    /// answer gathers no threads. Look-ups with a waiting caller do not count: each caller has a thread of its own
    /// already.
    private static let leftLimit = 8

    private let lookup: Lookup
    private let left = Atomic<Int>(0)

    package init(_ lookup: @escaping Lookup = NameResolver.system) { self.lookup = lookup }

    /// The addresses of a host, in the order to try them. An IP literal is returned without a look-up.
    package func addresses(
        of host: String,
        port: UInt16,
        cancelledBy cancellation: WakeSignal?,
        until deadline: MonotonicInstant
    ) throws(ClientError) -> [SocketAddress] {
        if let address = SocketAddress(host: host, port: port) { return [address] }
        guard left.load(ordering: .relaxed) < Self.leftLimit else {
            throw .nameNotResolved(host: host, reason: "the resolver does not answer")
        }
        let done = WakeSignal()
        if let error = done.error {
            throw .nameNotResolved(host: host, reason: SystemReason.sentence(for: error.errorNumber))
        }
        // The outcome of the look-up, and a flag for a caller that has left.
        let progress = Locked<(result: Result<[SocketAddress], ClientError>?, isLeft: Bool)>((nil, false))
        DispatchQueue(label: "name-resolution").async { [self] in
            let result = lookup(host)
            progress.withLock { progress in
                if progress.isLeft { left.subtract(1, ordering: .relaxed) }
                progress.result = result
            }
            done.set()
        }
        let isDone = (descriptor: done.descriptor, wantsInput: true, wantsSpace: false)
        let event = BlockingWait.wait(for: [isDone], or: cancellation, until: deadline)
        let outcome = progress.withLock { progress in
            progress.isLeft = progress.result == nil
            if progress.isLeft { left.add(1, ordering: .relaxed) }
            return progress.result
        }
        switch (event, outcome) {
        case (.signal, _): throw .cancelled
        case (.deadline, _): throw .timedOut(phase: .resolving)
        case (.ready, .success(let addresses)) where !addresses.isEmpty: return addresses.map { $0.with(port: port) }
        case (.ready, .failure(let failure)): throw failure
        case (.ready, _): throw .nameNotResolved(host: host, reason: "it has no address")
        }
    }

    package static let system: Lookup = { host in
        var hints = unsafe addrinfo()
        unsafe hints.ai_family = AF_UNSPEC
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = unsafe getaddrinfo(host, nil, &hints, &list)
        guard code == 0 else { return .failure(.nameNotResolved(host: host, reason: sentence(for: code))) }
        defer { unsafe freeaddrinfo(list) }
        var addresses: [SocketAddress] = []
        var next = unsafe list
        while let entry = unsafe next {
            // `ai_addr` holds a whole address of its own family; it is copied at once.
            var system = platform_address()
            if unsafe platform_read_address(entry.pointee.ai_addr, &system) >= 0 {
                let address = SocketAddress(system)
                if !addresses.contains(address) { addresses.append(address) }
            }
            unsafe next = entry.pointee.ai_next
        }
        return .success(interleaved(addresses))
    }

    /// RFC 8305, 4: the families alternate, beginning with that of the resolver's first address, so that a dead family
    /// costs one attempt.
    private static func interleaved(_ addresses: [SocketAddress]) -> [SocketAddress] {
        let families = [true, false].map { isFirst in
            addresses.filter { ($0.isIPv6 == addresses[0].isIPv6) == isFirst }
        }
        return addresses.indices.flatMap { index in families.compactMap { $0.dropFirst(index).first } }
    }

    private static func sentence(for code: Int32) -> String {
        guard let text = unsafe gai_strerror(code) else { return "error \(code)" }
        return unsafe String(cString: text).lowercased()
    }
}
