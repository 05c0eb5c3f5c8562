/// The four forms of a request target (RFC 9112 §3.2).
enum RequestTarget {
    /// Checks the form of a target and notes its parts.
    /// - Parameters:
    ///   - target: The target in `bytes`, at least one byte, every one of them allowed by ``URIGrammar``.
    ///   - needsCheck: True where it holds `%`, `[` or `]`.
    static func split(
        _ bytes: Span<UInt8>,
        _ target: Range<Int>,
        needsCheck: Bool,
        into head: inout RequestHead
    ) throws(RequestRefusal) {
        if head.method == .connect {
            // RFC 9112 §3.2.3 and RFC 9110 §9.3.6: authority-form with a port belongs to CONNECT, and CONNECT to it.
            guard Authority.isValid(bytes, target, port: .required) else { throw .malformedTarget }
            // RFC 9110 §15.6.2: this server makes tunnels for no resource.
            throw .connectUnsupported
        }
        if bytes[target.lowerBound] == UInt8(ascii: "/") {
            try splitPath(bytes, target, needsCheck: needsCheck, into: &head)
        } else if target.count == 1, bytes[target.lowerBound] == UInt8(ascii: "*") {
            // RFC 9112 §3.2.4: asterisk-form is for OPTIONS alone.
            guard head.method == .options else { throw .malformedTarget }
            head.path = target
        } else {
            try splitAbsolute(bytes, target, needsCheck: needsCheck, into: &head)
        }
    }

    /// RFC 9112 §3.2.1: an absolute path and a query.
    private static func splitPath(
        _ bytes: Span<UInt8>,
        _ range: Range<Int>,
        needsCheck: Bool,
        into head: inout RequestHead
    ) throws(RequestRefusal) {
        if needsCheck { try checkPercentEncoding(bytes, range) }
        var pathEnd = range.lowerBound
        while pathEnd < range.upperBound, bytes[pathEnd] != UInt8(ascii: "?") {
            pathEnd += 1
        }
        head.path = range.lowerBound..<pathEnd
        head.query = pathEnd < range.upperBound ? pathEnd + 1..<range.upperBound : nil
    }

    /// RFC 9112 §3.2.2: absolute-form must be accepted by every server.
    private static func splitAbsolute(
        _ bytes: Span<UInt8>,
        _ target: Range<Int>,
        needsCheck: Bool,
        into head: inout RequestHead
    ) throws(RequestRefusal) {
        var start = target.lowerBound
        if target.count > 7, bytes.equalIgnoringCase(start..<start + 7, "http://") {
            start += 7
        } else if target.count > 8, bytes.equalIgnoringCase(start..<start + 8, "https://") {
            start += 8
        } else {
            throw .malformedTarget
        }
        var end = start
        while end < target.upperBound, bytes[end] != UInt8(ascii: "/"), bytes[end] != UInt8(ascii: "?") {
            end += 1
        }
        // RFC 9110 §4.2.1: an empty host is invalid; §4.2.4: user information is an error. Both fail this check.
        guard Authority.isValid(bytes, start..<end, port: .optional) else { throw .malformedTarget }
        head.authority = start..<end
        if end < target.upperBound, bytes[end] == UInt8(ascii: "?") {
            head.path = end..<end
            head.query = end + 1..<target.upperBound
            if needsCheck { try checkPercentEncoding(bytes, end..<target.upperBound) }
        } else {
            try splitPath(bytes, end..<target.upperBound, needsCheck: needsCheck, into: &head)
        }
    }

    /// RFC 3986 §2.1: `%` is followed by two hexadecimal digits. A NUL, CR or LF hidden in an encoding is refused: no
    /// path of this server has one, and what decodes it later would be fooled. Brackets belong to IP literals alone.
    private static func checkPercentEncoding(_ bytes: Span<UInt8>, _ range: Range<Int>) throws(RequestRefusal) {
        var index = range.lowerBound
        while index < range.upperBound {
            let byte = bytes[index]
            if byte == UInt8(ascii: "[") || byte == UInt8(ascii: "]") { throw .malformedTarget }
            if byte == UInt8(ascii: "%") {
                guard range.upperBound - index > 2, let high = ASCII.hexadecimalDigit(bytes[index + 1]),
                    let low = ASCII.hexadecimalDigit(bytes[index + 2])
                else { throw .malformedTarget }
                let value = high << 4 | low
                if value == 0 || value == 0x0A || value == 0x0D { throw .malformedTarget }
                index += 3
            } else {
                index += 1
            }
        }
    }
}
