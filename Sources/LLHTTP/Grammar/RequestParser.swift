internal import LLBytes

/// Parses one request head from bytes that may arrive in any pieces.
///
/// The parser keeps its position, so each byte is read once, however the bytes are split. Its decisions depend on the
/// bytes alone: a request refused in one piece is refused, for the same reason, in any other pieces. Octets are parsed
/// as octets, never as text (RFC 9112 §2.2).
package struct RequestParser: ~Copyable {
    enum State {
        case start, startLineFeed
        case method, target, version, requestLineFeed
        case fields, complete
    }

    package let limits: HTTPLimits

    var state = State.start
    var position = 0
    var emptyLines = 0
    var lineStart = 0
    var tokenStart = 0
    var target = 0..<0
    /// True if the target holds `%`, `[` or `]`.
    var targetNeedsCheck = false
    var lines: FieldLines
    var framing = Framing()

    package init(limits: HTTPLimits) {
        self.limits = limits
        lines = FieldLines(countLimit: limits.fieldCount, byteLimit: limits.headerSectionBytes)
    }

    /// True after the first byte of the request line; empty lines before it do not count.
    package var hasBegun: Bool { state != .start && state != .startLineFeed }

    /// Prepares for the next request and keeps the storage of the head.
    package mutating func reset(_ head: inout RequestHead) {
        if state == .start, position == 0 { return }
        head.reset()
        state = .start
        position = 0
        emptyLines = 0
        targetNeedsCheck = false
        framing = Framing()
    }

    /// Parses the bytes that arrived since the last call.
    /// - Parameters:
    ///   - bytes: All bytes of the request from its first one on; at least as many as at the last call.
    ///   - head: The head of the same request at each call.
    /// - Returns: True once the head is complete; false if the bytes so far may become a request.
    package mutating func parse(_ bytes: Span<UInt8>, into head: inout RequestHead) throws(HTTPRefusal) -> Bool {
        while position < bytes.count {
            switch state {
            case .start: try parseStart(bytes)
            case .startLineFeed:
                try FieldLines.expectLineFeed(bytes, &position)
                state = .start
            case .method: try parseMethod(bytes, &head)
            case .target: try parseTarget(bytes)
            case .version: try parseVersion(bytes)
            case .requestLineFeed: try endRequestLine(bytes, &head)
            case .fields: try parseFields(bytes, &head)
            case .complete: return true
            }
        }
        return state == .complete
    }

    /// RFC 9112 §2.2: a bounded number of empty lines before the request line is ignored.
    private mutating func parseStart(_ bytes: Span<UInt8>) throws(HTTPRefusal) {
        if bytes[position] == ASCII.carriageReturn {
            guard emptyLines < limits.leadingEmptyLines else { throw .malformedRequestLine }
            emptyLines += 1
            position += 1
            state = .startLineFeed
            return
        }
        lineStart = position
        tokenStart = position
        state = .method
    }

    private mutating func parseFields(_ bytes: Span<UInt8>, _ head: inout RequestHead) throws(HTTPRefusal) {
        while true {
            switch try lines.next(bytes, from: &position) {
            case .needMore: return
            case .field(let field):
                try framing.receive(bytes, field)
                head.fields.append(field)
            case .end:
                // RFC 9110 §5.3: the whole header section must be read before any decision.
                try framing.judge(bytes, into: &head)
                head.byteCount = position
                state = .complete
                return
            }
        }
    }
}

extension RequestParser {
    /// RFC 9112 §3.1: the method is a token, followed by exactly one space.
    mutating func parseMethod(_ bytes: Span<UInt8>, _ head: inout RequestHead) throws(HTTPRefusal) {
        let method = try parsePart(bytes, .malformedRequestLine) { byte, _ in FieldGrammar.isTokenByte(byte) }
        guard let method else { return }
        head.method = HTTPMethod(bytes, method)
        state = .target
    }

    /// RFC 9112 §3.2: the target has no white space and no byte outside the grammar of URIs. An invalid target is
    /// refused with 400, not repaired.
    mutating func parseTarget(_ bytes: Span<UInt8>) throws(HTTPRefusal) {
        let target = try parsePart(bytes, .malformedTarget) { byte, needsCheck in
            let kind = URIGrammar.kind(byte)
            if kind == .needsCheck { needsCheck = true }
            return kind != .forbidden
        }
        guard let target else { return }
        self.target = target
        state = .version
    }

    /// Reads a part of the request line, and the space behind it.
    /// - Returns: The part; nil if it needs more bytes.
    @inline(__always)
    private mutating func parsePart(
        _ bytes: Span<UInt8>,
        _ refusal: HTTPRefusal,
        _ isAllowed: (_ byte: UInt8, _ targetNeedsCheck: inout Bool) -> Bool
    ) throws(HTTPRefusal) -> Range<Int>? {
        let end = min(bytes.count, lineStart + limits.requestLineBytes)
        while position < end {
            let byte = bytes[position]
            position += 1
            if byte == ASCII.space {
                let part = tokenStart..<position - 1
                guard !part.isEmpty else { throw refusal }
                tokenStart = position
                return part
            }
            guard isAllowed(byte, &targetNeedsCheck) else { throw refusal }
        }
        // RFC 9112 §3: a request line longer than the server is willing to parse is 414.
        if position - lineStart >= limits.requestLineBytes { throw .targetTooLong }
        return nil
    }

    /// RFC 9112 §2.3: `HTTP/` digit `.` digit, in upper case, directly followed by the line end.
    mutating func parseVersion(_ bytes: Span<UInt8>) throws(HTTPRefusal) {
        while position < bytes.count {
            let byte = bytes[position]
            let offset = position - tokenStart
            let isRight =
                offset == 8 ? byte == ASCII.carriageReturn : FieldGrammar.isVersionByte(byte, at: offset)
            guard isRight else { throw .malformedRequestLine }
            if offset == 8 {
                guard position - lineStart <= limits.requestLineBytes else { throw .targetTooLong }
                position += 1
                state = .requestLineFeed
                return
            }
            position += 1
        }
    }

    /// Checks the version and the form of the target at the end of the request line.
    mutating func endRequestLine(_ bytes: Span<UInt8>, _ head: inout RequestHead) throws(HTTPRefusal) {
        try FieldLines.expectLineFeed(bytes, &position)
        // RFC 9110 §15.6.6: a request of another major version is 505. The version has the form `HTTP/1.1`.
        guard bytes[tokenStart + 5] == UInt8(ascii: "1") else { throw .unsupportedVersion }
        // RFC 9110 §2.5: a higher minor version is handled as the highest that this server knows.
        head.minorVersion = bytes[tokenStart + 7] == UInt8(ascii: "0") ? 0 : 1
        try splitTarget(bytes, &head)
        lines.begin(countingFrom: position)
        state = .fields
    }
}

/// The parts of one request head, as ranges of the bytes it was parsed from. Every range is within those bytes.
///
/// One value serves many requests: a reset keeps its storage.
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

    /// The value of the first field named `name`.
    /// - Parameters:
    ///   - name: The field name in lower case.
    ///   - bytes: The bytes this head was parsed from.
    package func value(of name: StaticString, in bytes: Span<UInt8>) -> Range<Int>? {
        fields.first { bytes.equalIgnoringCase($0.name, name) }?.value
    }

    /// The number of field lines with this name, given in lower case.
    package func count(of name: StaticString, in bytes: Span<UInt8>) -> Int {
        fields.count { bytes.equalIgnoringCase($0.name, name) }
    }
}

/// The request method, compared by exact bytes (RFC 9110 §9.1: methods are case-sensitive).
package enum HTTPMethod: UInt8, Sendable, CaseIterable {
    case get, head, post, put, delete, connect, options, trace, patch, query
    /// A valid token that is not a method of RFC 9110, RFC 5789 (PATCH) or the QUERY extension.
    case unrecognized

    /// True if a request of this method may be sent twice (RFC 9110 §9.2.2).
    package var isIdempotent: Bool { self != .post }

    /// The method's name; `_OTHER` for an unrecognised one, as in OpenTelemetry.
    package var name: StaticString {
        switch self {
        case .get: "GET"
        case .head: "HEAD"
        case .post: "POST"
        case .put: "PUT"
        case .delete: "DELETE"
        case .connect: "CONNECT"
        case .options: "OPTIONS"
        case .trace: "TRACE"
        case .patch: "PATCH"
        case .query: "QUERY"
        case .unrecognized: "_OTHER"
        }
    }

    package init(_ bytes: Span<UInt8>, _ range: Range<Int>) {
        self = Self.allCases.first { bytes.equal(range, $0.name) } ?? .unrecognized
    }
}
