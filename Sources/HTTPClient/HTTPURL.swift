/// An absolute `https` URL, or an `http` URL of a loopback host: the only ones a key set is fetched from.
///
/// Strict (RFC 3986 with the limits of RFC 9110, 4.2): no user information (4.2.4), no fragment, no white space, no
/// control or non-ASCII bytes, no empty host, a port of 1 … 65535.
package struct HTTPURL: Sendable, Equatable, CustomStringConvertible {
    /// `https` or, to a loopback host alone, `http`.
    package enum Scheme: String, Sendable { case https, http }

    /// Why a text is not such a URL.
    package enum ParsingError: Error, Equatable, Sendable {
        case unsupportedScheme
        case userInformation
        case invalidHost
        case invalidPort
        case invalidPath
        case plainHTTPBeyondLoopback
    }

    package let scheme: Scheme
    /// Lower case; an IPv6 address without its brackets.
    package let host: String
    package let port: UInt16
    /// Path and query as they go into the request line; never empty.
    package let target: String

    /// The host and, unless it is the scheme's default, the port: the value of `Host` (RFC 9110, 7.2).
    package var authority: String {
        let bracketed = isIPv6 ? "[\(host)]" : host
        return port == scheme.defaultPort ? bracketed : "\(bracketed):\(port)"
    }

    package var isIPv6: Bool { host.utf8.contains(0x3A) }

    package var description: String { "\(scheme.rawValue)://\(authority)\(target)" }
}

extension HTTPURL.Scheme {
    package var defaultPort: UInt16 {
        switch self {
        case .https: 443
        case .http: 80
        }
    }
}

extension String {
    /// The text as an error may quote it where a URL is expected: what stands before an `@` may be a password, whatever
    /// else is wrong with the URL.
    package var withoutUserInformation: String {
        lastIndex(of: "@").map { "…" + self[$0...] } ?? self
    }
}
