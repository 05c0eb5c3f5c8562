internal import HTTP1

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
            authorization = "Basic \(Self.base64(decoded))"
            rest = rest[rest.index(after: at)...]
        }
        // The host and port of an https URL, whose default port stands for a proxy's 80.
        guard let url = try? HTTPURL(parsing: "https://\(rest)"), url.target == "/" else {
            throw .init(description: "HTTPS_PROXY is no URL of a proxy")
        }
        let namesPort = rest.hasSuffix(":\(url.port)")
        self.init(host: url.host, port: namesPort ? url.port : 80, authorization: authorization)
    }

    /// RFC 3986, 2.1; nil where an escape is cut short or no escape, or where a control character would come out.
    private static func percentDecoded(_ text: Substring) -> [UInt8]? {
        var bytes: [UInt8] = []
        var iterator = text.utf8.makeIterator()
        while let byte = iterator.next() {
            var decoded = byte
            if byte == UInt8(ascii: "%") {
                guard let high = iterator.next().flatMap(ASCII.hexadecimalDigit),
                    let low = iterator.next().flatMap(ASCII.hexadecimalDigit)
                else { return nil }
                decoded = UInt8(truncatingIfNeeded: high << 4 | low)
            }
            guard decoded >= 0x20, decoded != 0x7F else { return nil }
            bytes.append(decoded)
        }
        return bytes
    }

    /// RFC 4648, 4.
    private static func base64(_ bytes: [UInt8]) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            var bits = 0
            for offset in 0..<3 { bits = bits << 8 | (offset < group.count ? Int(group[start + offset]) : 0) }
            for offset in 0..<4 {
                // Six bits: an index of the alphabet's 64 letters.
                let letter = alphabet[bits >> (18 - 6 * offset) & 63]
                text.append(offset <= group.count ? letter : UInt8(ascii: "="))
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
