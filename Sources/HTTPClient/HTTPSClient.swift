package import OpenSSL
package import Sockets

/// A minimal HTTPS client: each request blocks its thread and is bounded in time and size whatever the other side does.
///
/// ``get(_:headers:limits:)`` opens a connection of its own, for fetches that lie an hour apart;
/// ``send(_:limits:until:)`` keeps a few open. The trust store is read anew for each connection, so that a renewed
/// authority is seen and no memory is held in between.
package final class HTTPSClient: Sendable {
    let trust: TLSContext.Trust
    let proxy: ProxySettings
    let resolver: NameResolution.Resolver
    let signal = CancellationSignal()
    let lookups = NameResolution.Counter()
    let kept = KeptConnections()

    /// - Parameters:
    ///   - trust: Whom to trust; verification itself cannot be turned off.
    ///   - proxy: Where to send CONNECT; plain `http` to loopback never goes through a proxy.
    package convenience init(trust: TLSContext.Trust = .system, proxy: ProxySettings = .none) {
        self.init(trust: trust, proxy: proxy, resolver: NameResolution.system)
    }

    package init(trust: TLSContext.Trust, proxy: ProxySettings, resolver: @escaping NameResolution.Resolver) {
        self.trust = trust
        self.proxy = proxy
        self.resolver = resolver
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
            let exchange = HTTPSExchange(client: self, limits: limits, deadline: deadline)
            let response = try exchange.perform(HTTPSRequest(.get, url, headers: headers))
            // RFC 9110, 15.4: of the redirects only these name another place to get the same from.
            guard [301, 302, 303, 307, 308].contains(response.status) else { return response }
            guard let location = response.value(of: "location") else {
                throw .redirectRefused(reason: "it names no place")
            }
            url = try url.redirected(to: location)
        }
        throw .redirectRefused(reason: "there are more than \(limits.redirectCount) in a row")
    }

    /// Ends the fetch under way and every later one at once, from any thread.
    package func cancel() {
        signal.cancel()
        kept.close()
    }
}
