package import OpenSSL
package import Sockets

/// A minimal HTTPS client: each request blocks its thread, has a connection of its own, and is bounded in time and size
/// whatever the other side does. Connections under way at once share the trust store, which takes some 10 ms to read. It
/// is read anew once all of them have ended, and each minute: so a renewed authority is seen, and no memory is held in
/// between.
package final class HTTPSClient: Sendable {
    private let trust: TLSContext.Trust
    private let shared = Locked(SharedContext())
    let proxy: ProxySettings
    let names: NameResolver
    let cancellation = WakeSignal()

    /// - Parameters:
    ///   - trust: The authorities to trust; verification itself cannot be turned off.
    ///   - proxy: Where to send CONNECT; plain `http` to loopback never goes through a proxy.
    package init(
        trust: TLSContext.Trust = .system,
        proxy: ProxySettings = .none,
        names: NameResolver = NameResolver()
    ) {
        self.trust = trust
        self.proxy = proxy
        self.names = names
    }

    /// Fetches a URL; follows redirects within the same host. Only the body of a 2xx is read.
    package func get(
        _ url: HTTPURL,
        headers: [HTTPSResponse.Field] = [],
        limits: HTTPSClientLimits = .init()
    ) throws(HTTPSClientError) -> HTTPSResponse {
        let deadline = MonotonicClock.now() + limits.fetchTimeout
        var url = url
        for _ in 0...max(limits.redirectCount, 0) {
            let request = HTTPSRequest(.get, url, headers: headers)
            let response = try perform(request, limits, deadline) { (200..<300).contains($0) }
            // RFC 9110, 15.4: of the redirects only these name another place to get the same from.
            guard [301, 302, 303, 307, 308].contains(response.status) else { return response }
            guard let location = response.value(of: "location") else {
                throw .redirectRefused(reason: "it names no place")
            }
            url = try url.redirected(to: location)
        }
        throw .redirectRefused(reason: "there are more than \(limits.redirectCount) in a row")
    }

    /// Sends one request, once, and reads the body of whatever status comes. No redirect is followed.
    /// - Parameters:
    ///   - deadline: When the call ends at the latest; ``HTTPSClientLimits/fetchTimeout`` bounds it too.
    ///   - needsBody: False where the status is enough: a fault of the body is ``HTTPSResponse/bodyFault`` then.
    ///   - sent: Called once the whole request is on its way: after an error beyond that the server may have acted on it.
    package func send(
        _ request: HTTPSRequest,
        limits: HTTPSClientLimits = .init(),
        until deadline: MonotonicInstant = .never,
        needsBody: Bool = true,
        sent: () -> Void = {}
    ) throws(HTTPSClientError) -> HTTPSResponse {
        let deadline = min(deadline, MonotonicClock.now() + limits.fetchTimeout)
        return try perform(request, limits, deadline, needsBody: needsBody, sent: sent) { _ in true }
    }

    /// - Parameter wanted: Whether to read the body of an answer of this status.
    private func perform(
        _ request: HTTPSRequest,
        _ limits: HTTPSClientLimits,
        _ deadline: MonotonicInstant,
        needsBody: Bool = true,
        sent: () -> Void = {},
        bodyOf wanted: (_ status: Int) -> Bool
    ) throws(HTTPSClientError) -> HTTPSResponse {
        let bytes = try request.encoded()
        let exchange = try HTTPSExchange(with: request.url, client: self, limits: limits, deadline: deadline)
        try exchange.write(bytes, .sending)
        sent()
        let response = try exchange.readResponse(bodyOf: wanted, needsBody: needsBody)
        exchange.stream.close()
        return response
    }

    /// What connections share for as long as one of them is under way.
    private struct SharedContext {
        weak var context: TLSContext?
        var isOldAt = MonotonicInstant(nanoseconds: 0)
    }

    /// The TLS settings of a new connection.
    func context() throws(StreamError) -> TLSContext {
        do throws(TLSError) {
            // The others wait meanwhile: they need it too.
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

    /// Waits, unless the client is cancelled, which ends it at once.
    package func pause(until moment: MonotonicInstant) throws(HTTPSClientError) {
        if BlockingWait.wait(for: [], or: cancellation, until: moment) == .signal { throw .stream(.cancelled) }
    }

    /// Ends the request under way and every later one at once, from any thread.
    package func cancel() { cancellation.give() }
}

/// Every limit of the HTTPS client, with its default and reason.
package struct HTTPSClientLimits: Sendable, Equatable {
    /// What bounds the connecting.
    package var race = ClientStream.RaceLimits()
    /// The whole fetch, names, redirects and body included, however slowly bytes come. 10 s.
    package var fetchTimeout: Duration = .seconds(10)
    /// Bytes of a decoded body. 64 KiB: Facebook's two keys take 1 KiB.
    package var bodyBytes = 64 * 1024
    /// Bytes of a status line and header section. 32 KiB, as the server's own.
    package var headBytes = 32 * 1024
    /// Fields in a header section. 100, as the server's own.
    package var fieldCount = 100
    /// Redirects followed, all within the same host. 3.
    package var redirectCount = 3

    package init() {}
}

/// Why a fetch yielded no response. `description` is one sentence fit for a log line; it quotes nothing the peer sent.
package enum HTTPSClientError: Error, Equatable, Sendable, CustomStringConvertible {
    /// No connection, or it broke.
    case stream(StreamError)
    case proxyFailed(reason: String)
    case malformedRequest
    case malformedResponse(reason: String)
    case headTooLarge(limit: Int)
    case bodyTooLarge(limit: Int)
    case redirectRefused(reason: String)

    package var description: String {
        switch self {
        case .stream(let error): error.description
        case .proxyFailed(let reason): "the proxy did not open a tunnel: \(reason)"
        case .malformedRequest: "a header field holds a byte that is not allowed"
        case .malformedResponse(let reason): "the answer is not HTTP: \(reason)"
        case .headTooLarge(let limit): "the answer's head is larger than \(limit) bytes"
        case .bodyTooLarge(let limit): "the answer's body is larger than \(limit) bytes"
        case .redirectRefused(let reason): "the redirect was not followed: \(reason)"
        }
    }
}
