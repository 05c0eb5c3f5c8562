internal import LLBytes

#if canImport(Musl)
internal import Musl
#else
internal import Glibc
#endif

/// The proxy and the hosts it serves (`HTTPS_PROXY`, `NO_PROXY`).
package struct ProxySettings: Sendable, Equatable {
    struct Server: Sendable, Equatable {
        let host: String
        let port: UInt16
        /// The value of `Proxy-Authorization`, made from the user information in the proxy's URL. A secret.
        let authorization: String?
    }

    /// Why the settings cannot be used. The value is not quoted, because it may hold a password.
    package struct ParsingError: Error, Equatable, Sendable, CustomStringConvertible {
        package let description: String
    }

    let server: Server?
    let exceptions: [ProxyException]

    package static let none = ProxySettings(server: nil, exceptions: [])

    /// The proxy for a URL. Loopback hosts and plain `http` URLs never use a proxy.
    func server(for url: HTTPURL) -> Server? {
        guard let server, url.scheme == .https, !url.isLoopbackHost else { return nil }
        return exceptions.contains { $0.matches(url.host) } ? nil : server
    }
}

extension ProxySettings {
    /// The settings from environment variables. Each name is tried in lower case first, as most programs do.
    package init(environment: (_ name: String) -> String?) throws(ParsingError) {
        func value(_ name: String) -> String? {
            [name.lowercased(), name].lazy.compactMap(environment).first { !$0.isEmpty }
        }
        guard let proxy = value("HTTPS_PROXY") else {
            self = .none
            return
        }
        let exceptions = (value("NO_PROXY") ?? "").split(separator: ",").compactMap { ProxyException(String($0)) }
        self.init(server: try Server(parsing: proxy), exceptions: exceptions)
    }

    package static func ofProcess() throws(ParsingError) -> ProxySettings {
        // The text of the environment is copied at once.
        try ProxySettings { name in unsafe getenv(name).map { unsafe String(cString: $0) } }
    }
}

extension ProxySettings.Server {
    /// Reads `http://[user[:password]@]host[:port][/]`, or the same without the scheme. The default port is 80.
    init(parsing text: String) throws(ProxySettings.ParsingError) {
        var rest = Substring(text)
        if let separator = text.firstRange(of: "://") {
            guard text[..<separator.lowerBound].lowercased() == "http" else {
                throw .init(description: "HTTPS_PROXY names a proxy that is not plain http")
            }
            rest = text[separator.upperBound...]
        }
        if rest.hasSuffix("/") { rest = rest.dropLast() }
        var authorization: String?
        if let at = rest.lastIndex(of: "@") {
            guard let decoded = Self.percentDecoded(rest[..<at]) else {
                throw .init(description: "HTTPS_PROXY has malformed user information")
            }
            // RFC 7617: `user:password` in base64.
            authorization = "Basic \(Base64.encode(decoded))"
            rest = rest[rest.index(after: at)...]
        }
        guard let place = try? HostAndPort(parsing: Array(rest.utf8)[...]) else {
            throw .init(description: "HTTPS_PROXY is no URL of a proxy")
        }
        self.init(host: place.host, port: place.port ?? 80, authorization: authorization)
    }

    /// The decoded bytes; nil if an escape is malformed or the result holds a control character.
    private static func percentDecoded(_ text: Substring) -> [UInt8]? {
        let bytes = Array(text.utf8)
        guard let decoded = PercentEncoding.decode(bytes.span, bytes.indices),
            decoded.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
        else { return nil }
        return decoded
    }
}

/// One element of `NO_PROXY`: `*`, a domain, an address or a CIDR block. A domain includes its subdomains, and a
/// leading dot changes nothing.
enum ProxyException: Sendable, Equatable {
    case everything
    case domain(String)
    case block(AddressPrefix)

    init?(_ text: String) {
        let text = text.lowercased().filter { $0 != " " && $0 != "\t" }
        let domain = text.hasPrefix(".") ? String(text.dropFirst()) : text
        if text == "*" {
            self = .everything
        } else if let block = AddressPrefix(text, isStrict: false) {
            self = .block(block)
        } else if !domain.isEmpty {
            self = .domain(domain)
        } else {
            return nil
        }
    }

    func matches(_ host: String) -> Bool {
        switch self {
        case .everything: return true
        case .domain(let domain):
            let name = host.hasSuffix(".") ? String(host.dropLast()) : host
            return name == domain || name.hasSuffix("." + domain)
        case .block(let block): return SocketAddress(host: host).map(block.contains) ?? false
        }
    }
}
