package import HTTPClient
internal import OpenSSL
internal import Sockets

/// A JWK Set at an `https` URL (or `http` of a loopback host), fetched over verified TLS.
///
/// TLS 1.2 or newer, certificate and host name verified; redirects only within the same host; `HTTPS_PROXY` and
/// `NO_PROXY` are honoured; 3 s to connect, 10 s for the whole fetch, 64 KiB of body.
public final class HTTPSJWKSetSource: JWKSetSource {
    /// The URL.
    public let name: String
    private let url: HTTPURL
    private let client: HTTPSClient
    private let limits: HTTPSClientLimits

    /// A source that asks this URL.
    ///
    /// - Parameters:
    ///   - url: `https`; `http` for `localhost`, 127.0.0.0/8 and ::1 alone.
    ///   - authoritiesFile: PEM file of the only authorities to trust; nil for the system's trust store.
    /// - Throws: ``JWKSetSourceError`` when the URL is none of these, when the file cannot be used, or when
    ///   `HTTPS_PROXY` is malformed: what no retry would heal is found before the first fetch.
    public convenience init(url: String, authoritiesFile: String? = nil) throws(JWKSetSourceError) {
        let proxy: ProxySettings
        do {
            proxy = try .ofProcess()
        } catch {
            throw JWKSetSourceError(error.description)
        }
        try self.init(url: url, authoritiesFile: authoritiesFile, proxy: proxy, limits: .init())
    }

    /// The same with proxy and limits given.
    package init(
        url: String,
        authoritiesFile: String?,
        proxy: ProxySettings,
        limits: HTTPSClientLimits
    ) throws(JWKSetSourceError) {
        do {
            self.url = try HTTPURL(parsing: url)
        } catch {
            throw JWKSetSourceError("the URL cannot be used: \(error.sentence)")
        }
        let trust = authoritiesFile.map { TLSContext.Trust.authorities(file: $0) } ?? .system
        do {
            if authoritiesFile != nil { _ = try TLSContext(clientTrusting: trust) }
        } catch {
            throw JWKSetSourceError(error.description)
        }
        name = self.url.description
        client = HTTPSClient(trust: trust, proxy: proxy)
        self.limits = limits
    }

    /// Fetches the set; a 304 to the validator is `notModified`.
    public func fetch(validator: String?) throws(JWKSetSourceError) -> JWKSetAnswer {
        var headers: [HTTPSResponse.Field] = []
        // RFC 9110, 13.1.2.
        if let validator { headers.append(.init(name: "if-none-match", value: validator)) }
        let response: HTTPSResponse
        do {
            response = try client.get(url, headers: headers, limits: limits)
        } catch {
            throw JWKSetSourceError(error.description)
        }
        let freshness = JWKSetFreshness(of: response)
        switch response.status {
        case 200:
            let tag = response.value(of: "etag").flatMap(EntityTag.validated)
            return .fetched(JWKSetDocument(bytes: response.body, freshness: freshness, validator: tag))
        case 304 where validator != nil:
            return .notModified(freshness)
        default:
            throw JWKSetSourceError(
                "the source answered \(response.status)",
                retryAfterSeconds: response.value(of: "retry-after").flatMap(DeltaSeconds.parse)
            )
        }
    }

    /// Ends the fetch under way and every later one at once.
    public func cancel() { client.cancel() }
}

extension HTTPURL.ParsingError {
    /// What is wrong with the URL, in words that follow "cannot be used:".
    package var sentence: String {
        switch self {
        case .unsupportedScheme: "it does not begin with https://"
        case .userInformation: "it holds user information"
        case .invalidHost: "its host is not valid"
        case .invalidPort: "its port is not 1 to 65535"
        case .invalidPath: "its path holds a byte that no URL holds"
        case .plainHTTPBeyondLoopback: "plain http is for loopback addresses alone"
        }
    }
}
