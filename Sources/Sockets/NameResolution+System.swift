internal import Glibc

extension NameResolution {
    /// The system's resolver (`getaddrinfo`): hosts file, DNS, in the order of RFC 6724.
    package static let system: Resolver = { host in
        var hints = unsafe addrinfo()
        unsafe hints.ai_family = AF_UNSPEC
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = unsafe getaddrinfo(host, nil, &hints, &list)
        guard code == 0 else { return .failure(Failure(reason: sentence(for: code))) }
        defer { unsafe freeaddrinfo(list) }
        var addresses: [SocketAddress] = []
        var next = unsafe list
        while let entry = unsafe next {
            if let address = unsafe address(of: entry.pointee), !addresses.contains(address) {
                addresses.append(address)
            }
            unsafe next = entry.pointee.ai_next
        }
        return .success(interleaved(addresses))
    }

    /// RFC 8305, 4: the families take turns, beginning with the resolver's favourite, so that one dead family costs one
    /// attempt.
    package static func interleaved(_ addresses: [SocketAddress]) -> [SocketAddress] {
        guard let first = addresses.first else { return [] }
        let favoured = addresses.filter { $0.isIPv6 == first.isIPv6 }
        let others = addresses.filter { $0.isIPv6 != first.isIPv6 }
        var result: [SocketAddress] = []
        for index in 0..<max(favoured.count, others.count) {
            if index < favoured.count { result.append(favoured[index]) }
            if index < others.count { result.append(others[index]) }
        }
        return result
    }

    private static func sentence(for code: Int32) -> String {
        guard let text = unsafe gai_strerror(code) else { return "error \(code)" }
        return unsafe String(cString: text).lowercased()
    }

    /// Copies the address out of the system's list.
    private static func address(of entry: addrinfo) -> SocketAddress? {
        guard let pointer = unsafe entry.ai_addr else { return nil }
        let bytes = unsafe UnsafeRawBufferPointer(start: pointer, count: Int(entry.ai_addrlen))
        // `ai_addrlen` bytes are there; each structure is read only where it fits wholly.
        switch unsafe entry.ai_family {
        case AF_INET where bytes.count >= MemoryLayout<sockaddr_in>.size:
            let system = unsafe bytes.loadUnaligned(as: sockaddr_in.self)
            // The number lies in memory as it travels: most significant byte first.
            return unsafe withUnsafeBytes(of: system.sin_addr) { unsafe SocketAddress(bytes: Array($0), port: 0) }
        case AF_INET6 where bytes.count >= MemoryLayout<sockaddr_in6>.size:
            let system = unsafe bytes.loadUnaligned(as: sockaddr_in6.self)
            let scope = system.sin6_scope_id
            return unsafe withUnsafeBytes(of: system.sin6_addr) {
                unsafe SocketAddress(bytes: Array($0), port: 0, scope: scope)
            }
        default:
            return nil
        }
    }
}
