internal import Sockets

/// Connections that are kept open between requests: few, for a short time, each used by one thread at a time.
final class KeptConnections: Sendable {
    /// Where a connection leads; only a request to the same place may use it.
    struct Origin: Hashable, Sendable {
        let scheme: HTTPURL.Scheme
        let host: String
        let port: UInt16

        init(_ url: HTTPURL) {
            scheme = url.scheme
            host = url.host
            port = url.port
        }
    }

    private struct Kept: Sendable {
        let origin: Origin
        let stream: ClientStream
        let until: MonotonicInstant
    }

    // In the order in which they were put here.
    private let kept = Locked<[Kept]>([])

    /// How many there are.
    var count: Int { kept.withLock { $0.count } }

    /// Whether one leads there whose peer has neither closed nor written to it unasked.
    func hasQuiet(for url: HTTPURL) -> Bool {
        let origin = Origin(url)
        return kept.withLock { all in all.contains { $0.origin == origin && $0.stream.isQuiet } }
    }

    /// The connection used last that leads there and that its peer has neither closed nor written to unasked.
    func take(for url: HTTPURL, now: MonotonicInstant) -> ClientStream? {
        let origin = Origin(url)
        while true {
            let found: Kept? = kept.withLock { all in
                guard let index = all.lastIndex(where: { $0.origin == origin }) else { return nil }
                return all.remove(at: index)
            }
            guard let found else { return nil }
            // RFC 9112, 9.5: a peer may close an idle connection at any time.
            if found.until > now, found.stream.isQuiet { return found.stream }
            found.stream.close()
        }
    }

    /// Keeps a connection; the one kept longest gives way where there are more than `limits` allow.
    func put(_ stream: ClientStream, for url: HTTPURL, limits: HTTPSClientLimits, now: MonotonicInstant) {
        let origin = Origin(url)
        let one = Kept(origin: origin, stream: stream, until: now + limits.keptConnectionTime)
        let tooMany: ClientStream? = kept.withLock { all in
            all.append(one)
            guard all.count(where: { $0.origin == origin }) > limits.keptConnectionCount,
                let index = all.firstIndex(where: { $0.origin == origin })
            else { return nil }
            return all.remove(at: index).stream
        }
        tooMany?.close()
    }

    /// Closes those whose time is over, or all.
    func close(until now: MonotonicInstant = .never) {
        let over: [Kept] = kept.withLock { all in
            let over = all.filter { $0.until <= now }
            all.removeAll { $0.until <= now }
            return over
        }
        for one in over { one.stream.close() }
    }
}
