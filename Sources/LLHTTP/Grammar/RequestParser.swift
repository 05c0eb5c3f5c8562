internal import LLBytes

/// Parses one request head, octets and never text (RFC 9112 §2.2), and keeps the position of the first incomplete line. A
/// request refused in one piece is refused, for the same reason, in any other pieces.
package struct RequestParser: ~Copyable {
    package let limits: HTTPLimits
    /// True after the first byte of the request line; empty lines before it do not count.
    package private(set) var hasBegun = false

    private var hasLine = false
    private var position = 0
    private var emptyLines = 0
    private var lines: FieldLines
    private var framing = Framing()

    package init(limits: HTTPLimits) {
        self.limits = limits
        lines = FieldLines(countLimit: limits.fieldCount, byteLimit: limits.headerSectionBytes)
    }

    /// Prepares for the next request and keeps the storage of the head.
    package mutating func reset(_ head: inout RequestHead) {
        if !hasBegun, position == 0 { return }
        head.reset()
        hasBegun = false
        hasLine = false
        position = 0
        emptyLines = 0
        framing = Framing()
    }

    /// - Parameter bytes: All bytes of the request from its first one on; at least as many as at the last call.
    /// - Returns: True once the head is complete; false if the bytes so far may become a request.
    package mutating func parse(_ bytes: Span<UInt8>, into head: inout RequestHead) throws(HTTPRefusal) -> Bool {
        if !hasLine {
            guard try skipEmptyLines(bytes), try readRequestLine(bytes, &head) else { return false }
            lines.begin(countingFrom: position)
            hasLine = true
        }
        while head.byteCount == 0 {
            switch try lines.next(bytes, from: &position) {
            case .needMore: return false
            case .field(let field):
                try framing.receive(bytes, field)
                head.fields.append(field)
            case .end:
                // RFC 9110 §5.3: the whole header section must be read before any decision.
                try framing.judge(bytes, into: &head)
                head.byteCount = position
            }
        }
        return true
    }

    /// RFC 9112 §2.2: a bounded number of empty lines before the request line is ignored.
    /// - Returns: True if another byte follows them.
    private mutating func skipEmptyLines(_ bytes: Span<UInt8>) throws(HTTPRefusal) -> Bool {
        while position < bytes.count, bytes[position] == ASCII.carriageReturn {
            guard emptyLines < limits.leadingEmptyLines else { throw .malformedRequestLine }
            guard try FieldLines.endLine(bytes, position, &position) else { return false }
            emptyLines += 1
        }
        if position < bytes.count { hasBegun = true }
        return hasBegun
    }

    /// RFC 9112 §3.1 and §3.2: the method is a token, and the target holds no byte outside the grammar of URIs. One space
    /// follows each. An invalid target is refused with 400, not repaired.
    /// - Returns: False if it needs more bytes.
    private mutating func readRequestLine(_ bytes: Span<UInt8>, _ head: inout RequestHead) throws(HTTPRefusal) -> Bool {
        let limit = position + limits.requestLineBytes
        let end = min(bytes.count, limit)
        var index = position
        let method = try readPart(bytes, &index, end, .malformedRequestLine, FieldGrammar.isTokenByte)
        if let method { head.method = HTTPMethod(bytes, method) }
        guard method != nil, let target = try readPart(bytes, &index, end, .malformedTarget, URIGrammar.isTargetByte)
        else {
            // RFC 9112 §3: a request line longer than the server is willing to parse is 414.
            if end == limit { throw .targetTooLong }
            return false
        }
        // RFC 9112 §2.3: `HTTP/` digit `.` digit, in upper case, directly followed by the line end.
        let version = index
        while index < min(bytes.count, version + 8) {
            guard FieldGrammar.isVersionByte(bytes[index], at: index - version) else { throw .malformedRequestLine }
            index += 1
        }
        guard index < bytes.count else { return false }
        guard bytes[index] == ASCII.carriageReturn else { throw .malformedRequestLine }
        guard index <= limit else { throw .targetTooLong }
        guard try FieldLines.endLine(bytes, index, &position) else { return false }
        // RFC 9110 §15.6.6: a request of another major version is 505. The version has the form `HTTP/1.1`.
        guard bytes[version + 5] == UInt8(ascii: "1") else { throw .unsupportedVersion }
        // RFC 9110 §2.5: a higher minor version is handled as the highest that this server knows.
        head.minorVersion = bytes[version + 7] == UInt8(ascii: "0") ? 0 : 1
        try head.splitTarget(bytes, target)
        return true
    }

    /// Reads a part of the request line, and the space behind it.
    /// - Returns: The part; nil if it does not end before `end`.
    @inline(__always)
    private func readPart(
        _ bytes: Span<UInt8>,
        _ index: inout Int,
        _ end: Int,
        _ refusal: HTTPRefusal,
        _ isAllowed: (UInt8) -> Bool
    ) throws(HTTPRefusal) -> Range<Int>? {
        let start = index
        while index < end, bytes[index] != ASCII.space {
            guard isAllowed(bytes[index]) else { throw refusal }
            index += 1
        }
        if index == end { return nil }
        guard index > start else { throw refusal }
        index += 1
        return start..<index - 1
    }
}

/// The parts of one request head, as ranges within the bytes it was parsed from. One value serves many requests.
package struct RequestHead: ~Copyable {
    package internal(set) var method: HTTPMethod = .get
    /// The absolute path of the request target, from its `/`. For `OPTIONS *` it is the one byte `*`; for CONNECT, and
    /// for absolute-form without a path, it is empty.
    package internal(set) var path: Range<Int> = 0..<0
    /// The query of the request target, without its `?`; nil if there is none.
    package internal(set) var query: Range<Int>?
    /// The authority of the request: from an absolute-form target, or else from the Host field (RFC 9112 §3.2.2). Nil
    /// if an HTTP/1.0 request names none.
    package internal(set) var authority: Range<Int>?
    /// The minor version of HTTP/1: 0 or 1 (a higher one is handled as 1, RFC 9110 §2.5).
    package internal(set) var minorVersion: UInt8 = 1
    /// The field lines in order, without those with an underscore in the name.
    package internal(set) var fields: [HeadField] = []
    package internal(set) var contentLength: Int?
    package internal(set) var isChunked = false
    /// True if the connection may serve another request after this one.
    package internal(set) var keepAlive = true
    /// True if the client waits for `100 Continue` before it sends the body.
    package internal(set) var expectsContinue = false
    /// The length of the whole head in bytes, including the empty line. The body begins here.
    package internal(set) var byteCount = 0

    package init() {}

    /// True if a body follows, including an empty chunked one.
    package var hasBody: Bool { isChunked || (contentLength ?? 0) > 0 }

    /// Changes the complete head into a request without a body, after which the connection must close.
    mutating func dropBody() {
        contentLength = nil
        isChunked = false
        keepAlive = false
    }

    /// Forgets the request and keeps the storage.
    package mutating func reset() {
        var storage: [HeadField] = []
        swap(&storage, &fields)
        if !storage.isEmpty { storage.removeAll(keepingCapacity: true) }
        self = RequestHead()
        fields = storage
    }

    /// The value of the first field with this name, given in lower case.
    package func value(of name: StaticString, in bytes: Span<UInt8>) -> Range<Int>? {
        fields.first { bytes.equalIgnoringCase($0.name, name) }?.value
    }

    /// The number of field lines with this name, given in lower case.
    package func count(of name: StaticString, in bytes: Span<UInt8>) -> Int {
        fields.count { bytes.equalIgnoringCase($0.name, name) }
    }

    /// Checks which of the four forms the target has (RFC 9112 §3.2), and records its parts.
    mutating func splitTarget(_ bytes: Span<UInt8>, _ target: Range<Int>) throws(HTTPRefusal) {
        // RFC 9112 §3.2.3: authority-form is for CONNECT alone. RFC 9110 §15.6.2: this server does not support tunnels.
        if method == .connect { throw .connectUnsupported }
        if bytes[target.lowerBound] == UInt8(ascii: "/") {
            try splitPath(bytes, target)
        } else if bytes.equal(target, "*") {
            // RFC 9112 §3.2.4: asterisk-form is for OPTIONS alone.
            guard method == .options else { throw .malformedTarget }
            path = target
        } else {
            try splitAbsolute(bytes, target)
        }
    }

    /// RFC 9112 §3.2.1: an absolute path and a query. The path may be empty after an authority. RFC 3986 §2.1: two
    /// hexadecimal digits follow `%`. An encoded NUL, CR or LF is refused: no path of this server has one, and it could
    /// deceive code that decodes it later. Only IP literals have brackets.
    private mutating func splitPath(_ bytes: Span<UInt8>, _ range: Range<Int>) throws(HTTPRefusal) {
        (path, query) = (range, nil)
        var index = range.lowerBound
        while index < range.upperBound {
            switch bytes[index] {
            case UInt8(ascii: "?") where query == nil:
                path = range.lowerBound..<index
                query = index + 1..<range.upperBound
            case UInt8(ascii: "["), UInt8(ascii: "]"): throw .malformedTarget
            case UInt8(ascii: "%"):
                guard let value = PercentEncoding.byte(bytes, at: index, before: range.upperBound),
                    value != 0, value != ASCII.lineFeed, value != ASCII.carriageReturn
                else { throw .malformedTarget }
                index += 2
            default: break
            }
            index += 1
        }
    }

    /// RFC 9112 §3.2.2: absolute-form must be accepted by every server.
    private mutating func splitAbsolute(_ bytes: Span<UInt8>, _ target: Range<Int>) throws(HTTPRefusal) {
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
        authority = start..<end
        try splitPath(bytes, end..<target.upperBound)
    }
}

/// The request method, compared by exact bytes (RFC 9110 §9.1: methods are case-sensitive).
package enum HTTPMethod: UInt8, Sendable, CaseIterable {
    case get, head, post, put, delete, connect, options, trace, patch, query
    /// A valid token that is not a method of RFC 9110, RFC 5789 (PATCH) or the QUERY extension.
    case unrecognized

    /// True if a request of this method may be sent twice (RFC 9110 §9.2.2).
    package var isIdempotent: Bool { self != .post }

    private static let names: [StaticString] = [
        "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY", "_OTHER",
    ]

    /// The method's name; `_OTHER` for an unrecognised one, as in OpenTelemetry.
    package var name: StaticString { Self.names[Int(rawValue)] }

    package init(_ bytes: Span<UInt8>, _ range: Range<Int>) {
        self = Self.allCases.first { bytes.equal(range, $0.name) } ?? .unrecognized
    }
}

/// `uri-host [ ":" port ]` (RFC 9110 §4.2, §7.2; RFC 3986 §3.2), without user information.
enum Authority {
    /// True if `range` of `bytes` is a host that is not empty, optionally with a port of at most 65,535.
    static func isValid(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
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
        if index == range.upperBound { return true }
        guard bytes[index] == UInt8(ascii: ":") else { return false }
        // RFC 3986 §3.2.3: the digits may be missing.
        let port = index + 1..<range.upperBound
        guard port.count <= 5 else { return false }
        var value = 0
        for index in port {
            guard let digit = ASCII.digit(bytes[index]) else { return false }
            value = value * 10 + digit
        }
        return value <= 65_535
    }

    /// The index after one byte or percent-encoding of a `reg-name`; nil if there is none.
    private static func afterNameByte(_ bytes: Span<UInt8>, _ index: Int, _ end: Int) -> Int? {
        switch bytes[index] {
        case UInt8(ascii: "%"):
            guard let decoded = PercentEncoding.byte(bytes, at: index, before: end), decoded >= 0x20 else { return nil }
            return index + 3
        // RFC 3986 allows a comma; it is refused because it indicates a list of hosts.
        case UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "@"), UInt8(ascii: "["), UInt8(ascii: "]"),
            UInt8(ascii: ","):
            return nil
        case let byte: return URIGrammar.isTargetByte(byte) ? index + 1 : nil
        }
    }
}

/// The bytes of request targets (RFC 3986, as used by RFC 9112 §3.2).
package enum URIGrammar {
    /// False for controls, space, `"`, `#`, `<`, `>`, `\`, `^`, a grave accent, `{`, `|`, `}` and bytes from 0x7F on. `%`,
    /// `[` and `]` are allowed at some positions only.
    package static func isTargetByte(_ byte: UInt8) -> Bool {
        if byte < 64 { return low >> UInt64(byte) & 1 == 1 }
        return byte < 128 && high >> UInt64(byte - 64) & 1 == 1
    }

    /// The bits of `! $ % & ' ( ) * + , - . / 0-9 : ; = ?` among the bytes 0 … 63.
    private static let low: UInt64 = 0xAFFF_FFF2_0000_0000
    /// The bits of `@ A-Z [ ] _ a-z ~` among the bytes 64 … 127.
    private static let high: UInt64 = 0x47FF_FFFE_AFFF_FFFF
}
