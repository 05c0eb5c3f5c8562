internal import Bytes
internal import Sockets

extension ProxySettings.Server {
    /// Reads `http://[user[:password]@]host[:port][/]`, or the same without the scheme; the port is 80 when not given.
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

    /// Nil for a malformed escape, or where a control character would come out.
    private static func percentDecoded(_ text: Substring) -> [UInt8]? {
        let bytes = Array(text.utf8)
        guard let decoded = PercentEncoding.decode(bytes.span, bytes.indices),
            decoded.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
        else { return nil }
        return decoded
    }
}
