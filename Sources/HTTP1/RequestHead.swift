internal import Bytes

/// Where the parts of one request head lie in the bytes it was parsed from. Every range is within those bytes.
///
/// One value serves many requests: its storage is kept when it is reset.
package struct RequestHead: ~Copyable {
    /// One field line: where its name and its value (white space around it removed) lie.
    package struct Field: Sendable {
        let nameStart: UInt32
        let nameEnd: UInt32
        let valueStart: UInt32
        let valueEnd: UInt32

        package var name: Range<Int> { Int(nameStart)..<Int(nameEnd) }
        package var value: Range<Int> { Int(valueStart)..<Int(valueEnd) }
    }

    package internal(set) var method: HTTPMethod = .get
    /// The absolute path of the request target, from its `/`; for `OPTIONS *` the one byte `*`; for
    /// absolute-form without a path, and for CONNECT, empty.
    package internal(set) var path: Range<Int> = 0..<0
    /// The query of the request target, without its `?`; nil where there is none.
    package internal(set) var query: Range<Int>?
    /// The authority the request is for: of an absolute-form target, else the Host field (RFC 9112 §3.2.2); nil where
    /// an HTTP/1.0 request names none.
    package internal(set) var authority: Range<Int>?
    /// The minor version of HTTP/1: 0 or 1 (a higher one is handled as 1, RFC 9110 §2.5).
    package internal(set) var minorVersion: UInt8 = 1
    /// The field lines in order; those whose name holds an underscore are left out.
    package internal(set) var fields: [Field] = []
    package internal(set) var contentLength: Int?
    package internal(set) var isChunked = false
    /// True where the connection may serve another request after this one.
    package internal(set) var keepAlive = true
    /// True where the client waits for `100 Continue` before it sends the body.
    package internal(set) var expectsContinue = false
    /// Bytes of the whole head, the empty line included: the body begins here.
    package internal(set) var byteCount = 0

    package init() {}

    /// True where a body follows (perhaps an empty chunked one).
    package var hasBody: Bool { isChunked || (contentLength ?? 0) > 0 }

    /// Forgets the request and keeps the storage.
    package mutating func reset() {
        var storage: [Field] = []
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

    /// How many field lines are named `name` (lower case).
    package func count(of name: StaticString, in bytes: Span<UInt8>) -> Int {
        fields.count { bytes.equalIgnoringCase($0.name, name) }
    }
}

/// The request method, compared by exact bytes (RFC 9110 §9.1: methods are case-sensitive).
package enum HTTPMethod: UInt8, Sendable, CaseIterable {
    case get, head, post, put, delete, connect, options, trace, patch, query
    /// A valid token that names no method of RFC 9110, RFC 5789 (PATCH) or the QUERY extension.
    case unrecognized

    /// The method's name; `_OTHER` for one not recognised, as OpenTelemetry names it.
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

    /// Reads the method token that `range` of `bytes` holds.
    package init(_ bytes: Span<UInt8>, _ range: Range<Int>) {
        self = Self.allCases.first { bytes.equal(range, $0.name) } ?? .unrecognized
    }
}

/// What the fields that frame a message, or name its host, said so far; judged when the section is complete.
struct Framing {
    private var hosts = 0
    private var host = 0..<0
    private var contentLengths = 0
    private var contentLength = 0
    private var transferEncodings = 0
    private var coding = TransferCoding.chunked
    private var closes = false
    private var keepsAlive = false
    private var expectsContinue = false
    private var expectsOther = false
    private var contentTypes = 0

    /// Takes note of one field. Told apart by length first, so that most fields cost one comparison.
    mutating func receive(_ bytes: Span<UInt8>, _ name: Range<Int>, _ value: Range<Int>) throws(RequestRefusal) {
        switch name.count {
        case 4 where bytes.equalIgnoringCase(name, "host"):
            hosts += 1
            host = value
        case 6 where bytes.equalIgnoringCase(name, "expect"):
            // RFC 9110 §10.1.1: the one expectation there is; its case set aside.
            var list = ListElements(value)
            while let element = list.next(bytes) {
                let isKnown = bytes.equalIgnoringCase(element, "100-continue")
                expectsContinue = expectsContinue || isKnown
                expectsOther = expectsOther || !isKnown
            }
        case 10 where bytes.equalIgnoringCase(name, "connection"):
            // RFC 9110 §7.6.1: a list of options, their case set aside.
            var list = ListElements(value)
            while let element = list.next(bytes) {
                if bytes.equalIgnoringCase(element, "close") { closes = true }
                if bytes.equalIgnoringCase(element, "keep-alive") { keepsAlive = true }
            }
        case 12 where bytes.equalIgnoringCase(name, "content-type"):
            contentTypes += 1
        case 14 where bytes.equalIgnoringCase(name, "content-length"):
            contentLengths += 1
            guard let length = DecimalNumber.parse(bytes, value) else { throw .invalidContentLength }
            contentLength = length
        case 17 where bytes.equalIgnoringCase(name, "transfer-encoding"):
            transferEncodings += 1
            coding = TransferCoding(bytes, value)
        default: break
        }
    }

    /// Judges the whole section and completes the head.
    func judge(_ bytes: Span<UInt8>, into head: inout RequestHead) throws(RequestRefusal) {
        try judgeHost(bytes, into: &head)
        try judgeLength(into: &head)
        // A second Content-Type would let two readers see two media types.
        guard contentTypes <= 1 else { throw .duplicateField }
        // RFC 9112 §9.3: `close` wins; HTTP/1.0 persists only where asked to.
        head.keepAlive = !closes && (head.minorVersion == 1 || keepsAlive)
        // RFC 9110 §10.1.1: an expectation in HTTP/1.0 is ignored; one not known is 417.
        if head.minorVersion == 1 {
            guard !expectsOther else { throw .expectationFailed }
            head.expectsContinue = expectsContinue
        }
    }

    /// RFC 9112 §3.2: 400 for HTTP/1.1 without Host, for more than one, and for an invalid one. An empty one is
    /// refused too: every resource of this server has an authority.
    private func judgeHost(_ bytes: Span<UInt8>, into head: inout RequestHead) throws(RequestRefusal) {
        guard hosts == 1 else {
            if hosts == 0, head.minorVersion == 0 { return }
            throw .invalidHost
        }
        guard Authority.isValid(bytes, host) else { throw .invalidHost }
        // RFC 9112 §3.2.2: the authority of an absolute-form target replaces the Host field.
        if head.authority == nil { head.authority = host }
    }

    /// RFC 9112 §6.1 and §6.3: one declaration of the length at most, and a valid one; everything else closes.
    private func judgeLength(into head: inout RequestHead) throws(RequestRefusal) {
        if transferEncodings > 0 {
            // RFC 9112 §6.1: HTTP/1.0 with Transfer-Encoding has faulty framing.
            guard head.minorVersion == 1 else { throw .invalidTransferEncoding }
            // RFC 9112 §6.1: a message with both may be an attack on what stands before this server.
            guard contentLengths == 0 else { throw .conflictingFraming }
            guard transferEncodings == 1 else { throw .invalidTransferEncoding }
            switch coding {
            case .chunked: head.isChunked = true
            // RFC 9112 §6.1: 501 for a coding not understood.
            case .chunkedAfterOthers: throw .unsupportedTransferCoding
            // RFC 9112 §6.3: a request whose last coding is not chunked has no length: 400.
            case .invalid: throw .invalidTransferEncoding
            }
        } else if contentLengths > 0 {
            // RFC 9112 §6.3 lets equal values be merged; two of them are refused here, since no client needs it.
            guard contentLengths == 1 else { throw .invalidContentLength }
            head.contentLength = contentLength
        }
    }
}

/// The value of one Transfer-Encoding field (RFC 9112 §6.1), as far as it matters to a server that removes one coding.
enum TransferCoding {
    /// Exactly `chunked`, its case set aside.
    case chunked
    /// Other codings, each a token, and chunked once, at the end.
    case chunkedAfterOthers
    /// Anything else: chunked missing, not last or repeated, an element empty or no token.
    case invalid

    /// Reads the value that `range` of `bytes` holds. Empty list elements are not forgiven here: a list that two
    /// readers could take for two lengths is refused.
    init(_ bytes: Span<UInt8>, _ range: Range<Int>) {
        if bytes.equalIgnoringCase(range, "chunked") {
            self = .chunked
            return
        }
        self = .invalid
        var index = range.lowerBound
        var chunkedSeen = false
        while true {
            let start = index
            while index < range.upperBound, FieldGrammar.isTokenByte(bytes[index]) {
                index += 1
            }
            // A token is needed, and nothing may follow chunked.
            if index == start || chunkedSeen { return }
            chunkedSeen = bytes.equalIgnoringCase(start..<index, "chunked")
            index = ListElements.skipWhitespace(bytes, index, range.upperBound)
            if index == range.upperBound { break }
            guard bytes[index] == UInt8(ascii: ",") else { return }
            index = ListElements.skipWhitespace(bytes, index + 1, range.upperBound)
        }
        if chunkedSeen { self = .chunkedAfterOthers }
    }
}
