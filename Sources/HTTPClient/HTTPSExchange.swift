internal import Sockets

/// One request and its response over a connection of their own, all within one deadline.
struct HTTPSExchange {
    let client: HTTPSClient
    let limits: HTTPSClientLimits
    let deadline: MonotonicInstant

    /// - Parameters:
    ///   - wanted: Whether to read the body of an answer of this status.
    ///   - needsBody: False where a fault of the body is told in the response and not thrown.
    ///   - sent: Called once the whole request is on its way.
    func perform(
        _ request: HTTPSRequest,
        bodyOf wanted: (_ status: Int) -> Bool,
        needsBody: Bool = true,
        sent: () -> Void = {}
    ) throws(HTTPSClientError) -> HTTPSResponse {
        let bytes = try request.encoded()
        let stream = try connect(to: request.url)
        if request.url.scheme == .https { try stream.secure(hostName: request.url.host) }
        try stream.write(bytes, .sending)
        sent()
        let response = try stream.readResponse(bodyOf: wanted, needsBody: needsBody)
        stream.stream.close()
        return response
    }

    /// A stream to the host, through the proxy where one is set for it.
    private func connect(to url: HTTPURL) throws(HTTPSClientError) -> BlockingStream {
        guard let server = client.proxy.server(for: url) else { return try open(url.host, port: url.port) }
        let stream: BlockingStream
        do throws(HTTPSClientError) {
            stream = try open(server.host, port: server.port)
        } catch {
            if case .stream(.connectFailed(let reason)) = error { throw .proxyFailed(reason: reason) }
            throw error
        }
        try openTunnel(over: stream, to: url, authorization: server.authorization)
        return stream
    }

    private func open(_ host: String, port: UInt16) throws(HTTPSClientError) -> BlockingStream {
        do throws(StreamError) {
            let stream = try ClientStream.open(
                host,
                port: port,
                names: client.names,
                limits: limits.race,
                cancelledBy: client.cancellation,
                until: deadline
            )
            return BlockingStream(stream: stream, client: client, limits: limits, deadline: deadline)
        } catch {
            throw .stream(error)
        }
    }

    /// RFC 9110, 9.3.6: asks the proxy for a tunnel. TLS runs within it, so the proxy sees the host's name and no more.
    private func openTunnel(
        over stream: BlockingStream,
        to url: HTTPURL,
        authorization: String?
    ) throws(HTTPSClientError) {
        // Unlike in `Host`, the port always stands in the target of CONNECT.
        let name = url.isIPv6 ? "[\(url.host)]" : url.host
        var lines = ["CONNECT \(name):\(url.port) HTTP/1.1", "Host: \(name):\(url.port)"]
        if let authorization { lines.append("Proxy-Authorization: \(authorization)") }
        try stream.write(Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8), .connecting)
        let status = try stream.readTunnelAnswer()
        guard (200..<300).contains(status) else { throw .proxyFailed(reason: "it answered \(status)") }
    }
}

/// A stream on which nothing waits beyond the deadline or a cancellation.
struct BlockingStream {
    let stream: ClientStream
    let client: HTTPSClient
    let limits: HTTPSClientLimits
    let deadline: MonotonicInstant

    func secure(hostName: String) throws(HTTPSClientError) {
        do throws(StreamError) {
            let context = try client.context()
            try stream.secure(context, hostName: hostName, cancelledBy: client.cancellation, until: deadline)
        } catch {
            throw .stream(error)
        }
    }

    func write(_ bytes: [UInt8], _ phase: StreamError.Phase) throws(HTTPSClientError) {
        do throws(StreamError) {
            var sent = 0
            while sent < bytes.count {
                switch try stream.send(bytes, from: sent) {
                case .bytes(let count): sent += count
                case .wouldBlock: try wait(phase)
                case .endOfStream: throw .closed
                }
            }
        } catch {
            throw .stream(error)
        }
    }

    /// Reads what comes next, at least one byte; 0 at the end of the stream, which under TLS was announced.
    func read(into buffer: inout [UInt8]) throws(HTTPSClientError) -> Int {
        do throws(StreamError) {
            while true {
                // A peer that always has a byte ready would never let a wait notice the time.
                guard MonotonicClock.now() < deadline else { throw .timedOut(phase: .receiving) }
                switch try stream.receive(into: &buffer) {
                case .bytes(let count): return count
                case .wouldBlock: try wait(.receiving)
                case .endOfStream: return 0
                }
            }
        } catch {
            throw .stream(error)
        }
    }

    private func wait(_ phase: StreamError.Phase) throws(StreamError) {
        switch stream.wait(or: client.cancellation, until: deadline, hearsPeer: false) {
        // However often a peer makes the stream ready, the deadline holds.
        case .ready: if MonotonicClock.now() >= deadline { throw .timedOut(phase: phase) }
        case .signal: throw .cancelled
        case .deadline: throw .timedOut(phase: phase)
        }
    }
}
