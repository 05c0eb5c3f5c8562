internal import LLBytes

/// The four forms of a request target (RFC 9112 §3.2).
enum RequestTarget {
    /// Checks the form of a target and records its parts.
    /// - Parameters:
    ///   - target: The range of the target in `bytes`: at least one byte, each allowed by ``URIGrammar``.
    ///   - needsCheck: True if the target holds `%`, `[` or `]`.
    static func split(
        _ bytes: Span<UInt8>,
        _ target: Range<Int>,
        needsCheck: Bool,
        into head: inout RequestHead
    ) throws(HTTPRefusal) {
        if head.method == .connect {
            // RFC 9112 §3.2.3 and RFC 9110 §9.3.6: CONNECT requires authority-form with a port, and no other method
            // allows it.
            guard Authority.isValid(bytes, target, needsPort: true) else { throw .malformedTarget }
            // RFC 9110 §15.6.2: this server does not support tunnels.
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

    /// RFC 9112 §3.2.1: an absolute path and a query. The path may be empty after an authority.
    private static func splitPath(
        _ bytes: Span<UInt8>,
        _ range: Range<Int>,
        needsCheck: Bool,
        into head: inout RequestHead
    ) throws(HTTPRefusal) {
        if needsCheck { try checkPercentEncoding(bytes, range) }
        var pathEnd = range.lowerBound
        while pathEnd < range.upperBound, bytes[pathEnd] != UInt8(ascii: "?") { pathEnd += 1 }
        head.path = range.lowerBound..<pathEnd
        head.query = pathEnd < range.upperBound ? pathEnd + 1..<range.upperBound : nil
    }

    /// RFC 9112 §3.2.2: absolute-form must be accepted by every server.
    private static func splitAbsolute(
        _ bytes: Span<UInt8>,
        _ target: Range<Int>,
        needsCheck: Bool,
        into head: inout RequestHead
    ) throws(HTTPRefusal) {
        var start = target.lowerBound
        if target.count > 7, bytes.equalIgnoringCase(start..<start + 7, "http://") {
            start += 7
        } else if target.count > 8, bytes.equalIgnoringCase(start..<start + 8, "https://") {
            start += 8
        } else {
            throw .malformedTarget
        }
        let rest = start..<target.upperBound
        let end = rest.first { bytes[$0] == UInt8(ascii: "/") || bytes[$0] == UInt8(ascii: "?") } ?? rest.upperBound
        // RFC 9110 §4.2.1: an empty host is invalid. §4.2.4: user information is an error. Both fail this check.
        guard Authority.isValid(bytes, start..<end) else { throw .malformedTarget }
        head.authority = start..<end
        try splitPath(bytes, end..<target.upperBound, needsCheck: needsCheck, into: &head)
    }

    /// RFC 3986 §2.1: two hexadecimal digits follow `%`. An encoded NUL, CR or LF is refused: no path of this server
    /// has one, and it could deceive code that decodes it later. Only IP literals have brackets.
    private static func checkPercentEncoding(_ bytes: Span<UInt8>, _ range: Range<Int>) throws(HTTPRefusal) {
        var index = range.lowerBound
        while index < range.upperBound {
            let byte = bytes[index]
            if byte == UInt8(ascii: "[") || byte == UInt8(ascii: "]") { throw .malformedTarget }
            if byte == UInt8(ascii: "%") {
                guard let value = PercentEncoding.byte(bytes, at: index, before: range.upperBound),
                    value != 0, value != ASCII.lineFeed, value != ASCII.carriageReturn
                else { throw .malformedTarget }
                index += 3
            } else {
                index += 1
            }
        }
    }
}

/// `uri-host [ ":" port ]` (RFC 9110 §4.2, §7.2; RFC 3986 §3.2), without user information.
enum Authority {
    /// True if `range` of `bytes` is a host that is not empty, optionally with a port of at most 65,535.
    /// - Parameter needsPort: whether a port other than 0 is required.
    static func isValid(_ bytes: Span<UInt8>, _ range: Range<Int>, needsPort: Bool = false) -> Bool {
        guard !range.isEmpty else { return false }
        var index = range.lowerBound
        if bytes[index] == UInt8(ascii: "[") {
            guard let end = range.first(where: { bytes[$0] == UInt8(ascii: "]") }),
                IPAddress.bytes(bytes, index + 1..<end)?.count == 16
            else { return false }
            index = end + 1
        } else {
            while index < range.upperBound, bytes[index] != UInt8(ascii: ":") {
                guard let next = afterNameByte(bytes, index, range.upperBound) else { return false }
                index = next
            }
            if index == range.lowerBound { return false }
        }
        if index == range.upperBound { return !needsPort }
        guard bytes[index] == UInt8(ascii: ":") else { return false }
        let port = index + 1..<range.upperBound
        // RFC 3986 §3.2.3: the digits may be missing. RFC 9112 §3.2.3: CONNECT requires them.
        if port.isEmpty { return !needsPort }
        guard port.count <= 5 else { return false }
        var value = 0
        for index in port {
            guard let digit = ASCII.digit(bytes[index]) else { return false }
            value = value * 10 + digit
        }
        return value <= 65_535 && (value > 0 || !needsPort)
    }

    /// The index after one byte or percent-encoding of a `reg-name`; nil if there is none. RFC 3986 allows a comma, but
    /// it indicates a list of hosts and is refused.
    private static func afterNameByte(_ bytes: Span<UInt8>, _ index: Int, _ end: Int) -> Int? {
        let byte = bytes[index]
        if byte == UInt8(ascii: "%") {
            guard let decoded = PercentEncoding.byte(bytes, at: index, before: end), decoded >= 0x20 else { return nil }
            return index + 3
        }
        return URIGrammar.isNameByte(byte) && byte != UInt8(ascii: ",") ? index + 1 : nil
    }
}

/// The bytes of request targets (RFC 3986, as used by RFC 9112 §3.2).
package enum URIGrammar {
    package enum Kind {
        /// Allowed at every position.
        case plain
        /// Allowed at some positions only: `%`, `[`, `]`.
        case needsCheck
        /// Never allowed: controls, space, `"`, `#`, `<`, `>`, `\`, `^`, a grave accent, `{`, `|`, `}` and bytes from 0x7F on.
        case forbidden
    }

    @inlinable
    package static func kind(_ byte: UInt8) -> Kind {
        if byte < 64 {
            if plainLow >> UInt64(byte) & 1 == 1 { return .plain }
            return byte == 0x25 ? .needsCheck : .forbidden
        }
        if byte < 128 {
            if plainHigh >> UInt64(byte - 64) & 1 == 1 { return .plain }
            return byte == 0x5B || byte == 0x5D ? .needsCheck : .forbidden
        }
        return .forbidden
    }

    /// The bits of `! $ & ' ( ) * + , - . / 0-9 : ; = ?` among the bytes 0 … 63.
    @usableFromInline
    static let plainLow: UInt64 = 0xAFFF_FFD2_0000_0000
    /// The bits of `@ A-Z _ a-z ~` among the bytes 64 … 127.
    @usableFromInline
    static let plainHigh: UInt64 = 0x47FF_FFFE_87FF_FFFF

    /// True for `unreserved / sub-delims`, the bytes of a `reg-name` apart from percent-encodings.
    static func isNameByte(_ byte: UInt8) -> Bool {
        kind(byte) == .plain && byte != UInt8(ascii: "/") && byte != UInt8(ascii: "?") && byte != UInt8(ascii: ":")
            && byte != UInt8(ascii: "@")
    }
}
