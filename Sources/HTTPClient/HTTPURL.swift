internal import Bytes
internal import Sockets

/// An absolute `https` URL, or an `http` URL of a loopback host: the only ones a key set is fetched from.
///
/// Strict (RFC 3986 with the limits of RFC 9110, 4.2): no user information (4.2.4), no fragment, no white space, no
/// control or non-ASCII bytes, no empty host, a port of 1 … 65535.
package struct HTTPURL: Sendable, Equatable, CustomStringConvertible {
    /// `https` or, to a loopback host alone, `http`.
    package enum Scheme: String, Sendable {
        case https, http

        package var defaultPort: UInt16 { self == .https ? 443 : 80 }
    }

    /// Why a text is not such a URL, in words that follow "cannot be used:".
    package enum ParsingError: String, Error {
        case unsupportedScheme = "it does not begin with https://"
        case userInformation = "it holds user information"
        case invalidHost = "its host is not valid"
        case invalidPort = "its port is not 1 to 65535"
        case invalidPath = "its path holds a byte that no URL holds"
        case plainHTTPBeyondLoopback = "plain http is for loopback addresses alone"
    }

    package let scheme: Scheme
    /// Lower case; an IPv6 address without its brackets.
    package let host: String
    package let port: UInt16
    /// Path and query as they go into the request line; never empty.
    package let target: String

    /// The host and, unless it is the scheme's default, the port: the value of `Host` (RFC 9110, 7.2).
    package var authority: String { port == scheme.defaultPort ? bracketedHost : "\(bracketedHost):\(port)" }

    var bracketedHost: String { host.utf8.contains(0x3A) ? "[\(host)]" : host }

    package var description: String { "\(scheme.rawValue)://\(authority)\(target)" }
}

extension String {
    /// The text as an error may quote it where a URL is expected: what stands before an `@` may be a password, whatever
    /// else is wrong with the URL.
    package var withoutUserInformation: String {
        lastIndex(of: "@").map { "…" + self[$0...] } ?? self
    }
}

extension HTTPURL {
    package init(parsing text: String) throws(ParsingError) {
        let bytes = Array(text.utf8)
        // RFC 3986, 3.1: a scheme's case does not matter.
        let start = bytes.prefix(8).map(ASCII.lowercased)
        guard let scheme = [.https, Scheme.http].first(where: { start.starts(with: "\($0.rawValue)://".utf8) }),
            case var rest = bytes.dropFirst("\(scheme.rawValue)://".utf8.count), !rest.isEmpty
        else { throw .unsupportedScheme }
        let authorityEnd = rest.firstIndex { $0 == 0x2F || $0 == 0x3F || $0 == 0x23 } ?? rest.endIndex
        let authority = rest[..<authorityEnd]
        rest = rest[authorityEnd...]
        // RFC 9110, 4.2.4: user information in a URL only serves deceit.
        guard !authority.contains(UInt8(ascii: "@")) else { throw .userInformation }
        let place: HostAndPort
        do throws(HostAndPort.ParsingError) {
            place = try HostAndPort(parsing: authority)
        } catch {
            throw error == .invalidHost ? .invalidHost : .invalidPort
        }
        self.scheme = scheme
        host = place.host
        port = place.port ?? scheme.defaultPort
        target = try Self.target(rest)
        guard scheme == .https || isLoopbackHost else { throw .plainHTTPBeyondLoopback }
    }

    /// Whether the host is `localhost` or a loopback address: known without asking a resolver.
    package var isLoopbackHost: Bool { SocketAddress(host: host)?.isLoopback == true }

    /// Path and query: visible ASCII without the fragment, which never travels (RFC 9110, 4.2.5), and without the bytes
    /// that no URL holds (RFC 3986, 2).
    private static func target(_ rest: ArraySlice<UInt8>) throws(ParsingError) -> String {
        let forbidden = Array("\"<>\\^`{|}#".utf8)
        for byte in rest {
            guard byte > 0x20, byte < 0x7F, !forbidden.contains(byte) else { throw .invalidPath }
        }
        let text = String(decoding: rest, as: UTF8.self)
        return rest.first == UInt8(ascii: "/") ? text : "/" + text
    }
}

extension HTTPURL {
    /// The URL that a `Location` value names, seen from this one (RFC 9110, 10.2.2): an absolute URL, or a path from the
    /// root. Any other relative reference is refused: no key server needs one.
    func redirected(to location: String) throws(HTTPSClientError) -> HTTPURL {
        // RFC 9110, 10.2.2: a fragment may stand there; it never travels.
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
        guard url.scheme == scheme else { throw .redirectRefused(reason: "it leads from https to http") }
        guard url.host == host, url.port == port else { throw .redirectRefused(reason: "it leads to another host") }
        return url
    }
}
