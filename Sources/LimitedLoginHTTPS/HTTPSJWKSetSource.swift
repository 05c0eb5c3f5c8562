package import LLHTTP
public import LimitedLoginKeys

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

    /// A source that fetches from this URL.
    ///
    /// - Parameters:
    ///   - url: `https`; `http` only for `localhost`, 127.0.0.0/8 and ::1.
    ///   - authoritiesFile: PEM file of the only authorities to trust; nil for the system's trust store.
    /// - Throws: `JWKSetSourceError` if the URL is none of these, if the file cannot be used, or if `HTTPS_PROXY` is
    ///   malformed. Errors that no retry would cure are thus found before the first fetch.
    public convenience init(url: String, authoritiesFile: String? = nil) throws(JWKSetSourceError) {
        let proxy = try Self.part { try ProxySettings.ofProcess() }
        var limits = HTTPSClientLimits()
        limits.fetchTimeout = JWKSetCacheLimits.fetchTimeout
        try self.init(url: url, authoritiesFile: authoritiesFile, proxy: proxy, limits: limits)
    }

    /// Does the same with the given proxy and limits.
    package init(
        url: String,
        authoritiesFile: String?,
        proxy: ProxySettings,
        limits: HTTPSClientLimits
    ) throws(JWKSetSourceError) {
        do {
            self.url = try HTTPURL(parsing: url)
        } catch {
            throw JWKSetSourceError("the URL cannot be used: \(error.rawValue)")
        }
        let trust = authoritiesFile.map { TLSContext.Trust.authorities(file: $0) } ?? .system
        if authoritiesFile != nil { _ = try Self.part { try TLSContext(clientTrusting: trust) } }
        name = self.url.description
        client = HTTPSClient(trust: trust, proxy: proxy)
        self.limits = limits
    }

    /// Makes a part of a source; an error becomes a sentence.
    private static func part<Part>(_ make: () throws -> Part) throws(JWKSetSourceError) -> Part {
        do {
            return try make()
        } catch { throw JWKSetSourceError("\(error)") }
    }

    /// Fetches the set; a 304 to the validator is `notModified`.
    public func fetch(validator: String?) throws(JWKSetSourceError) -> JWKSetAnswer {
        // RFC 9110, 13.1.2.
        let headers: [HTTPSResponse.Field] = validator.map { [(name: "if-none-match", value: $0)] } ?? []
        let response = try Self.part { try client.get(url, headers: headers, limits: limits) }
        let freshness = JWKSetFreshness(of: response)
        switch response.status {
        case 200:
            let tag = response.value(of: "etag").flatMap(Self.entityTag)
            return .fetched(JWKSetDocument(bytes: response.body, freshness: freshness, validator: tag))
        case 304 where validator != nil:
            return .notModified(freshness)
        default:
            throw JWKSetSourceError(
                "the source answered \(response.status)",
                retryAfter: response.value(of: "retry-after").flatMap(JWKSetFreshness.seconds).map { .seconds($0) }
            )
        }
    }

    /// RFC 9110, 8.8.3: returns the text if it is an entity tag, weak or strong, and short enough to be sent with every
    /// request. A source that sends any other text is asked without one: `*` would be answered 304 for ever.
    private static func entityTag(_ text: String) -> String? {
        let opaque = text.hasPrefix("W/") ? text.dropFirst(2) : text[...]
        let isQuoted = (2...256).contains(opaque.utf8.count) && opaque.hasPrefix("\"") && opaque.hasSuffix("\"")
        return isQuoted && !opaque.dropFirst().dropLast().contains("\"") ? text : nil
    }

    /// Ends the running fetch and every later one at once.
    public func cancel() { client.cancel() }
}

extension JWKSetFreshness {
    /// The freshness from `Cache-Control` and `Age` (RFC 9111, 4.2.1 and 4.2.3); `Expires` is not read.
    init(of response: HTTPSResponse) {
        let life = response.value(of: "cache-control").flatMap(Self.lifetime)
        let age = response.value(of: "age").flatMap(Self.seconds) ?? 0
        // Both are at least 0, so the difference cannot overflow.
        self.init(remaining: life.map { .seconds($0 - age) })
    }

    /// The least `max-age`; 0 for `no-store` and `no-cache`, and for a `max-age` that is no number: an answer with
    /// unreadable freshness counts as stale (RFC 9111, 4.2.1). A comma in a quoted string ends the directive too: the rest
    /// of the string counts, within the cache's limits.
    private static func lifetime(in text: String) -> Int? {
        var life: Int?
        // RFC 9111, 5.2: the argument may come as a token or as a quoted string.
        for directive in text.lowercased().filter({ !" \t\"".contains($0) }).split(separator: ",") {
            let parts = directive.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts[0] == "no-store" || parts[0] == "no-cache" { life = 0 }
            guard parts[0] == "max-age" else { continue }
            life = min(life ?? .max, seconds(parts.count == 2 ? String(parts[1]) : "") ?? 0)
        }
        return life
    }

    /// RFC 9111, 1.2.2: seconds in decimal digits; a number that is too large counts as very large, never as an error.
    fileprivate static func seconds(_ text: String) -> Int? {
        guard !text.isEmpty, text.utf8.allSatisfy({ $0 &- 0x30 < 10 }) else { return nil }
        return Int(text) ?? .max
    }
}
