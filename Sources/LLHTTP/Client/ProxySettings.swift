internal import CLLSystem
internal import LLBytes

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
    /// The elements of `NO_PROXY`, in lower case.
    let exceptions: [String]

    package static let none = ProxySettings(server: nil, exceptions: [])

    /// The proxy for a URL. Loopback hosts and plain `http` URLs never use a proxy.
    func server(for url: HTTPURL) -> Server? {
        guard let server, url.scheme == .https, !url.isLoopbackHost else { return nil }
        return exceptions.contains { Self.excepts($0, url.host) } ? nil : server
    }

    /// True if an element of `NO_PROXY` names the host: `*`, a domain with its subdomains (a leading dot changes nothing),
    /// an address or a CIDR block.
    private static func excepts(_ element: String, _ host: String) -> Bool {
        if element == "*" { return true }
        if let block = AddressPrefix(element, isStrict: false) {
            return SocketAddress(host: host).map(block.contains) ?? false
        }
        let domain = element.hasPrefix(".") ? element : "." + element
        return domain.count > 1 && ".\(host.hasSuffix(".") ? String(host.dropLast()) : host)".hasSuffix(domain)
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
        let exceptions = (value("NO_PROXY") ?? "").lowercased().filter { $0 != " " && $0 != "\t" }.split(separator: ",")
        self.init(server: try Server(parsing: proxy), exceptions: exceptions.map(String.init))
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
            let bytes = Array(rest[..<at].utf8)
            guard let decoded = PercentEncoding.decode(bytes.span, bytes.indices),
                decoded.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
            else { throw .init(description: "HTTPS_PROXY has malformed user information") }
            // RFC 7617: `user:password` in base64.
            authorization = "Basic \(Base64.encode(decoded))"
            rest = rest[rest.index(after: at)...]
        }
        guard let place = try? HostAndPort(parsing: Array(rest.utf8)[...]) else {
            throw .init(description: "HTTPS_PROXY is no URL of a proxy")
        }
        self.init(host: place.host, port: place.port ?? 80, authorization: authorization)
    }
}
