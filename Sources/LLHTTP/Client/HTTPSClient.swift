internal import LLBytes

/// An HTTPS client. Each request blocks its thread, has a connection of its own, and is bounded in time and size against
/// any peer. Concurrent connections share the trust store, which takes about 10 ms to read. It is read again after 60 s,
/// so that a renewed authority is noticed, and freed with the last of them.
package final class HTTPSClient: Sendable {
    private let trust: TLSContext.Trust
    private let shared = Locked(SharedContext())
    let proxy: ProxySettings
    let names: NameResolver
    let cancellation = WakeSignal()

    /// Verification itself cannot be turned off. Plain `http` to loopback never goes through a proxy.
    package init(
        trust: TLSContext.Trust = .system,
        proxy: ProxySettings = .none,
        names: NameResolver = NameResolver()
    ) {
        self.trust = trust
        self.proxy = proxy
        self.names = names
    }

    /// Fetches a URL and follows redirects within the same host. Only the body of a 2xx response is read.
    package func get(
        _ url: HTTPURL,
        headers: [HTTPSResponse.Field] = [],
        limits: HTTPSClientLimits = .init()
    ) throws(ClientError) -> HTTPSResponse {
        let deadline = MonotonicClock.now() + limits.fetchTimeout
        var url = url
        for _ in 0...HTTPSClientLimits.redirectCount {
            let request = HTTPSRequest(.get, url, headers: headers)
            let response = try send(request, limits: limits, until: deadline, bodyOf: { (200..<300).contains($0) })
            // RFC 9110, 15.4: only these redirects name another location of the same resource.
            guard [301, 302, 303, 307, 308].contains(response.status) else { return response }
            guard let location = response.value(of: "location") else {
                throw .redirectRefused(reason: "it names no place")
            }
            url = try url.redirected(to: location)
        }
        throw .redirectRefused(reason: "there are more than \(HTTPSClientLimits.redirectCount) in a row")
    }

    /// Sends one request once. Redirects are not followed.
    /// - Parameters:
    ///   - deadline: The latest end of the call; ``HTTPSClientLimits/fetchTimeout`` bounds it too.
    ///   - needsBody: False if the status is enough: a fault of the body is then reported in
    ///     ``HTTPSResponse/bodyFault``.
    ///   - sent: Called once the whole request is sent. After a later error the server may have acted on the request.
    ///   - wanted: Whether to read the body of a response with this status.
    package func send(
        _ request: HTTPSRequest,
        limits: HTTPSClientLimits = .init(),
        until deadline: MonotonicInstant = .never,
        needsBody: Bool = true,
        sent: () -> Void = {},
        bodyOf wanted: (_ status: Int) -> Bool = { _ in true }
    ) throws(ClientError) -> HTTPSResponse {
        let deadline = min(deadline, MonotonicClock.now() + limits.fetchTimeout)
        let bytes = try request.encoded()
        let exchange = try HTTPSExchange(with: request.url, client: self, limits, deadline: deadline)
        try exchange.write(bytes, .sending)
        sent()
        let response = try exchange.readResponse(bodyOf: wanted, needsBody: needsBody)
        exchange.stream.close()
        return response
    }

    private struct SharedContext {
        weak var context: TLSContext?
        var isOldAt = MonotonicInstant(nanoseconds: 0)
    }

    func context() throws(ClientError) -> TLSContext {
        do throws(TLSError) {
            // Other connections wait meanwhile, because they need the context too.
            return try shared.withLock { shared throws(TLSError) in
                let now = MonotonicClock.now()
                if let context = shared.context, now < shared.isOldAt { return context }
                let context = try TLSContext(clientTrusting: trust)
                shared = SharedContext(context: context, isOldAt: now + .seconds(60))
                return context
            }
        } catch {
            throw .tls(reason: error.description)
        }
    }

    /// Waits until the moment. Cancelling the client ends the wait at once.
    package func pause(until moment: MonotonicInstant) throws(ClientError) {
        if BlockingWait.wait(for: [], or: cancellation, until: moment) == .signal { throw .cancelled }
    }

    /// Ends the running request and every later one at once, from any thread.
    package func cancel() { cancellation.set() }
}

/// Every limit of the HTTPS client, with its default and reason.
package struct HTTPSClientLimits: Sendable, Equatable {
    package var connectTime = ClientStream.connectTime
    /// The duration of the whole fetch, including name look-ups, redirects and body. 10 s.
    package var fetchTimeout: Duration = .seconds(10)
    /// Bytes of a decoded body. 64 KiB: Facebook's two keys take 1 KiB.
    package var bodyBytes = 65_536
    /// Bytes of a status line and header section, and its fields: the same as the server's own limits.
    static let (headBytes, fieldCount) = (32_768, 100)
    /// Redirects followed, all within the same host. 3.
    static let redirectCount = 3

    package init() {}
}
