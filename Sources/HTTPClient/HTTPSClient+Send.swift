package import Sockets

extension HTTPSClient {
    /// Sends one request, over a connection kept from an earlier one where there is one, and reads the body of whatever
    /// status comes. No redirect is followed.
    /// - Parameter deadline: When the call ends at the latest; ``HTTPSClientLimits/fetchTimeout`` bounds it too.
    package func send(
        _ request: HTTPSRequest,
        limits: HTTPSClientLimits = .init(),
        until deadline: MonotonicInstant = .never
    ) throws(HTTPSClientError) -> HTTPSResponse {
        let now = MonotonicClock.now()
        let exchange = HTTPSExchange(client: self, limits: limits, deadline: min(deadline, now + limits.fetchTimeout))
        let bytes = try request.encoded(keepingOpen: limits.keptConnectionCount > 0)
        if let stream = kept.take(for: request.url, now: now) {
            stream.begin(until: exchange.deadline)
            do throws(HTTPSClientError) {
                return try answer(to: bytes, request, over: stream, exchange)
            } catch {
                // The peer may have closed while the request was on its way: once more, on a new connection, where that
                // cannot do anything twice (RFC 9110, 9.2.2; RFC 9112, 9.3.1).
                guard error.isLossOfConnection, stream.receivedCount == 0,
                    request.method.isIdempotent || stream.sentCount == 0
                else { throw error }
            }
        }
        return try answer(to: bytes, request, over: try exchange.open(to: request.url), exchange)
    }

    /// Waits, unless the client is cancelled, which ends it at once.
    package func pause(until moment: MonotonicInstant) throws(HTTPSClientError) {
        let waiter = try DeadlineWaiter(signal: signal)
        _ = try waiter.wait(until: moment)
    }

    /// Closes the connections that were kept longer than they may.
    package func closeIdleConnections(now: MonotonicInstant = MonotonicClock.now()) {
        kept.close(until: now)
    }

    /// Connections kept open now.
    package var keptConnectionCount: Int { kept.count }

    /// Whether a connection is kept for this place that its peer has neither closed nor written to.
    package func hasQuietConnection(to url: HTTPURL) -> Bool {
        kept.hasQuiet(for: url)
    }

    private func answer(
        to bytes: [UInt8],
        _ request: HTTPSRequest,
        over stream: ClientStream,
        _ exchange: HTTPSExchange
    ) throws(HTTPSClientError) -> HTTPSResponse {
        try stream.write(bytes, phase: .sending)
        let reader = HTTPSResponseReader(limits: exchange.limits)
        let (response, isWhole) = try reader.readWhole(from: stream)
        if isWhole, exchange.limits.keptConnectionCount > 0, !signal.isCancelled {
            kept.put(stream, for: request.url, limits: exchange.limits, now: MonotonicClock.now())
        } else {
            stream.close()
        }
        return response
    }
}

extension HTTPSClientError {
    /// Whether the connection ended or broke, as against everything a peer says over one.
    fileprivate var isLossOfConnection: Bool {
        switch self {
        case .connectionClosed, .connectionFailed, .tls: true
        default: false
        }
    }
}
