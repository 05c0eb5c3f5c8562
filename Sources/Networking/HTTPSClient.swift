package import OpenSSL

/// A minimal HTTPS client: one GET at a time, each bounded in time and size whatever the other side does.
package final class HTTPSClient: Sendable {
    package let trust: TLSContext.Trust

    package init(trust: TLSContext.Trust = .system) {
        self.trust = trust
    }

    /// Fetches a URL. Blocks the calling thread, at most for the limits' whole-fetch time.
    package func get(
        _ url: HTTPURL,
        headers: [HTTPSResponse.Field] = [],
        limits: HTTPSClientLimits = .init()
    ) throws(HTTPSClientError) -> HTTPSResponse {
        throw .cancelled
    }

    /// Ends the fetch under way and every later one at once, from any thread.
    package func cancel() {}
}
