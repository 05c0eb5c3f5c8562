internal import Bytes
internal import Sockets

/// One element of `NO_PROXY`: `*`, a domain (which stands for its subdomains too, a leading dot changes nothing), an
/// address or a CIDR block; a domain or address may carry a port.
enum ProxyException: Sendable, Equatable {
    case everything
    case domain(String, port: UInt16?)
    case block([UInt8], prefix: Int, port: UInt16?)

    init?(_ text: String) {
        let text = text.lowercased().filter { $0 != " " && $0 != "\t" }
        if text == "*" {
            self = .everything
            return
        }
        if let slash = text.firstIndex(of: "/") {
            let digits = Array(text[text.index(after: slash)...].utf8)
            guard let bytes = SocketAddress.addressBytes(String(text[..<slash])),
                let prefix = DecimalNumber.parse(digits.span, 0..<digits.count), prefix <= bytes.count * 8
            else { return nil }
            self = .block(bytes, prefix: prefix, port: nil)
            return
        }
        let (host, port) = Self.split(text)
        if let bytes = SocketAddress.addressBytes(host) {
            self = .block(bytes, prefix: bytes.count * 8, port: port)
            return
        }
        let domain = host.hasPrefix(".") ? String(host.dropFirst()) : host
        guard !domain.isEmpty else { return nil }
        self = .domain(domain, port: port)
    }

    func matches(host: String, port: UInt16) -> Bool {
        switch self {
        case .everything:
            return true
        case .domain(let domain, let only):
            let name = host.hasSuffix(".") ? String(host.dropLast()) : host
            return (only == nil || only == port) && (name == domain || name.hasSuffix("." + domain))
        case .block(let block, let prefix, let only):
            guard only == nil || only == port, let bytes = SocketAddress.addressBytes(host), bytes.count == block.count
            else { return false }
            for index in 0..<bytes.count {
                let bits = min(max(prefix - index * 8, 0), 8)
                let mask = UInt8(truncatingIfNeeded: 0xFF00 >> bits)
                if bytes[index] & mask != block[index] & mask { return false }
            }
            return true
        }
    }

    /// Separates a port; an IPv6 address has one only behind brackets.
    private static func split(_ text: String) -> (host: String, port: UInt16?) {
        var host = Substring(text)
        var port: UInt16?
        if let colon = text.lastIndex(of: ":"), text.hasPrefix("[") || text.filter({ $0 == ":" }).count == 1 {
            let digits = Array(text[text.index(after: colon)...].utf8)
            if let number = DecimalNumber.parse(digits.span, 0..<digits.count), let value = UInt16(exactly: number) {
                port = value
                host = text[..<colon]
            }
        }
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        return (String(host), port)
    }
}
