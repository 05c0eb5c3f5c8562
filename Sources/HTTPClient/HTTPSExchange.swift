internal import OpenSSL
internal import Sockets

/// One request and its response, all within one deadline.
struct HTTPSExchange {
    let client: HTTPSClient
    let limits: HTTPSClientLimits
    let deadline: MonotonicInstant

    /// Exchanges both over a connection of their own.
    func perform(_ request: HTTPSRequest) throws(HTTPSClientError) -> HTTPSResponse {
        let bytes = try request.encoded(keepingOpen: false)
        let stream = try open(to: request.url)
        try stream.write(bytes, phase: .sending)
        let response = try HTTPSResponseReader(limits: limits).read(from: stream)
        stream.close()
        return response
    }

    /// A new connection to where the URL leads, its peer verified.
    func open(to url: HTTPURL) throws(HTTPSClientError) -> ClientStream {
        let stream = try connect(to: url)
        if url.scheme == .https { try stream.startTLS(trusting: client.trust, hostName: url.host) }
        return stream
    }

    /// A stream to the host, through the proxy where one is set for it.
    private func connect(to url: HTTPURL) throws(HTTPSClientError) -> ClientStream {
        guard let server = client.proxy.server(for: url) else {
            return try open(url.host, port: url.port)
        }
        let stream: ClientStream
        do {
            stream = try open(server.host, port: server.port)
        } catch .connectFailed(let reason) {
            throw .proxyFailed(reason: reason)
        }
        try openTunnel(over: stream, to: url, authorization: server.authorization)
        return stream
    }

    private func open(_ host: String, port: UInt16) throws(HTTPSClientError) -> ClientStream {
        let addresses: [SocketAddress]
        if let bytes = SocketAddress.addressBytes(host), let address = SocketAddress(bytes: bytes, port: port) {
            addresses = [address]
        } else {
            addresses = try NameResolution.addresses(
                of: host,
                resolver: client.resolver,
                counter: client.lookups,
                signal: client.signal,
                until: deadline
            ).map { $0.with(port: port) }
        }
        let connectDeadline = min(deadline, MonotonicClock.now() + limits.connectTimeout)
        let race = try ConnectionRace(
            addresses,
            addressCount: limits.addressCount,
            headStart: limits.connectionAttemptDelay,
            signal: client.signal
        )
        let socket = try race.run(until: connectDeadline)
        return try ClientStream(socket, signal: client.signal, deadline: deadline)
    }

    /// RFC 9110, 9.3.6: asks the proxy for a tunnel. TLS runs within it, so the proxy sees the host's name and no more.
    private func openTunnel(
        over stream: ClientStream,
        to url: HTTPURL,
        authorization: String?
    ) throws(HTTPSClientError) {
        // Unlike in `Host`, the port always stands in the target of CONNECT.
        let name = url.isIPv6 ? "[\(url.host)]" : url.host
        var lines = ["CONNECT \(name):\(url.port) HTTP/1.1", "Host: \(name):\(url.port)"]
        if let authorization { lines.append("Proxy-Authorization: \(authorization)") }
        try stream.write(Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8), phase: .connecting)
        let status = try HTTPSResponseReader(limits: limits).readTunnelAnswer(from: stream)
        guard (200..<300).contains(status) else { throw .proxyFailed(reason: "it answered \(status)") }
    }
}
