internal import LLBytes

/// An absolute `https` URL, or an `http` URL of a loopback host. Key sets are fetched from no other URLs.
///
/// Strict (RFC 3986 with the limits of RFC 9110, 4.2): no user information (4.2.4), no fragment, no white space, no
/// control or non-ASCII bytes, no empty host, a port of 1 … 65535.
package struct HTTPURL: Sendable, Equatable, CustomStringConvertible {
    package enum Scheme: String, Sendable {
        case https, http

        package var defaultPort: UInt16 { self == .https ? 443 : 80 }
    }

    /// The reason why a text is no such URL, as a clause that follows "cannot be used:".
    package enum ParsingError: String, Error, CustomStringConvertible {
        case unsupportedScheme = "it does not begin with https://"
        case userInformation = "it holds user information"
        case invalidHost = "its host is not valid"
        case invalidPort = "its port is not 1 to 65535"
        case invalidPath = "its path holds a byte that no URL holds"
        case plainHTTPBeyondLoopback = "plain http is for loopback addresses alone"

        package var description: String { rawValue }
    }

    package let scheme: Scheme
    /// The host in lower case; an IPv6 address has no brackets.
    package let host: String
    package let port: UInt16
    /// Path and query as they appear in the request line; never empty.
    package let target: String

    /// The value of `Host` (RFC 9110, 7.2): the host, and the port unless it is the scheme's default.
    package var authority: String { port == scheme.defaultPort ? bracketedHost : "\(bracketedHost):\(port)" }

    var bracketedHost: String { host.utf8.contains(0x3A) ? "[\(host)]" : host }

    package var description: String { "\(scheme.rawValue)://\(authority)\(target)" }

    /// - Parameter allowsPlain: Whether `http` may name a host beyond loopback, as between the containers of a test.
    package init(parsing text: String, allowsPlain: Bool = false) throws(ParsingError) {
        let bytes = Array(text.utf8)
        // RFC 3986, 3.1: a scheme's case does not matter.
        let start = bytes.prefix(8).map(ASCII.lowercased)
        guard let scheme = [.https, Scheme.http].first(where: { start.starts(with: "\($0.rawValue)://".utf8) }),
            case var rest = bytes.dropFirst("\(scheme.rawValue)://".utf8.count), !rest.isEmpty
        else { throw .unsupportedScheme }
        let authorityEnd = rest.firstIndex { $0 == 0x2F || $0 == 0x3F || $0 == 0x23 } ?? rest.endIndex
        let authority = rest[..<authorityEnd]
        rest = rest[authorityEnd...]
        // RFC 9110, 4.2.4: user information in a URL mainly serves deception.
        guard !authority.contains(UInt8(ascii: "@")) else { throw .userInformation }
        let place = try HostAndPort(parsing: authority)
        self.scheme = scheme
        host = place.host
        port = place.port ?? scheme.defaultPort
        guard rest.allSatisfy(URIGrammar.isTargetByte) else { throw .invalidPath }
        target = (rest.first == UInt8(ascii: "/") ? "" : "/") + String(decoding: rest, as: UTF8.self)
        guard scheme == .https || allowsPlain || isLoopbackHost else { throw .plainHTTPBeyondLoopback }
    }

    /// True if the host is `localhost` or a loopback address. No resolver is asked.
    package var isLoopbackHost: Bool { SocketAddress(host: host)?.isLoopback == true }

    /// Resolves a `Location` value against this URL (RFC 9110, 10.2.2): an absolute URL or a path from the root. Other
    /// relative references are refused, because no key server needs one.
    func redirected(to location: String) throws(ClientError) -> HTTPURL {
        // RFC 9110, 10.2.2: the value may have a fragment, which is never sent.
        let reference = String(location.prefix { $0 != "#" })
        let text: String
        if reference.hasPrefix("//") {
            text = "\(scheme.rawValue):\(reference)"
        } else if reference.hasPrefix("/") {
            text = "\(scheme.rawValue)://\(authority)\(reference)"
        } else {
            text = reference
        }
        guard let url = try? HTTPURL(parsing: text) else { throw .redirectRefused(reason: "it leads to no https URL") }
        guard url.scheme == scheme else {
            throw .redirectRefused(reason: "it leads from \(scheme.rawValue) to \(url.scheme.rawValue)")
        }
        guard url.host == host, url.port == port else { throw .redirectRefused(reason: "it leads to another host") }
        return url
    }
}

extension String {
    /// The text in the form that an error about a URL may quote. The text before an `@` is replaced, because it may be
    /// a password.
    package var withoutUserInformation: String {
        lastIndex(of: "@").map { "…" + self[$0...] } ?? self
    }
}
