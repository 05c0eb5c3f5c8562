internal import Networking
internal import OpenSSL

/// A JWK Set at an `https` URL (or `http` of a loopback host), fetched over verified TLS.
public final class HTTPSJWKSetSource: JWKSetSource {
    /// The URL.
    public let name: String
    private let url: HTTPURL
    private let client: HTTPSClient

    /// A source that asks this URL.
    ///
    /// - Parameters:
    ///   - url: `https`; `http` for `localhost`, 127.0.0.0/8 and ::1 alone.
    ///   - authoritiesFile: PEM file of the only authorities to trust; nil for the system's trust store.
    /// - Throws: ``JWKSetSourceError`` when the URL is none of these.
    public init(url: String, authoritiesFile: String? = nil) throws(JWKSetSourceError) {
        throw JWKSetSourceError("")
    }

    /// Fetches the set; a 304 to the validator is `notModified`.
    public func fetch(validator: String?) throws(JWKSetSourceError) -> JWKSetAnswer {
        throw JWKSetSourceError("")
    }

    /// Ends the fetch under way and every later one at once.
    public func cancel() { client.cancel() }
}
