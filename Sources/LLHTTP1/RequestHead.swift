internal import LLBytes

/// The parts of one request head, as ranges of the bytes it was parsed from. Every range is within those bytes.
///
/// One value serves many requests: a reset keeps its storage.
package struct RequestHead: ~Copyable {
    /// The ranges of one field line's name and value. The value excludes white space around it.
    package struct Field: Sendable {
        let nameStart: UInt32
        let nameEnd: UInt32
        let valueStart: UInt32
        let valueEnd: UInt32

        package var name: Range<Int> { Int(nameStart)..<Int(nameEnd) }
        package var value: Range<Int> { Int(valueStart)..<Int(valueEnd) }
    }

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
    package internal(set) var fields: [Field] = []
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

    /// Reads the method token in `range` of `bytes`.
    package init(_ bytes: Span<UInt8>, _ range: Range<Int>) {
        self = Self.allCases.first { bytes.equal(range, $0.name) } ?? .unrecognized
    }
}

/// The facts from the fields that frame a message or name its host. They are checked when the section is complete.
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

    /// Records one field. The length of the name is compared first, so most fields cost one comparison.
    mutating func receive(_ bytes: Span<UInt8>, _ name: Range<Int>, _ value: Range<Int>) throws(RequestRefusal) {
        switch name.count {
        case 4 where bytes.equalIgnoringCase(name, "host"):
            hosts += 1
            host = value
        case 6 where bytes.equalIgnoringCase(name, "expect"):
            // RFC 9110 §10.1.1: 100-continue is the only defined expectation; case does not matter.
            var list = ListElements(value)
            while let element = list.next(bytes) {
                let isKnown = bytes.equalIgnoringCase(element, "100-continue")
                expectsContinue = expectsContinue || isKnown
                expectsOther = expectsOther || !isKnown
            }
        case 10 where bytes.equalIgnoringCase(name, "connection"):
            // RFC 9110 §7.6.1: a list of options; case does not matter.
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

    /// Checks the whole section and completes the head.
    func judge(_ bytes: Span<UInt8>, into head: inout RequestHead) throws(RequestRefusal) {
        try judgeHost(bytes, into: &head)
        try judgeLength(into: &head)
        // Two readers could take two Content-Type fields for two different media types.
        guard contentTypes <= 1 else { throw .duplicateField }
        // RFC 9112 §9.3: `close` wins; HTTP/1.0 persists only if the client asks for it.
        head.keepAlive = !closes && (head.minorVersion == 1 || keepsAlive)
        // RFC 9110 §10.1.1: an expectation in HTTP/1.0 is ignored; an unknown one is 417.
        if head.minorVersion == 1 {
            guard !expectsOther else { throw .expectationFailed }
            head.expectsContinue = expectsContinue
        }
    }

    /// RFC 9112 §3.2: HTTP/1.1 without Host, with more than one, or with an invalid one is 400. An empty Host is
    /// refused too, because every resource of this server has an authority.
    private func judgeHost(_ bytes: Span<UInt8>, into head: inout RequestHead) throws(RequestRefusal) {
        guard hosts == 1 else {
            if hosts == 0, head.minorVersion == 0 { return }
            throw .invalidHost
        }
        guard Authority.isValid(bytes, host) else { throw .invalidHost }
        // RFC 9112 §3.2.2: the authority of an absolute-form target replaces the Host field.
        if head.authority == nil { head.authority = host }
    }

    /// RFC 9112 §6.1 and §6.3: at most one valid declaration of the length; everything else closes the connection.
    private func judgeLength(into head: inout RequestHead) throws(RequestRefusal) {
        if transferEncodings > 0 {
            // RFC 9112 §6.1: HTTP/1.0 with Transfer-Encoding has faulty framing.
            guard head.minorVersion == 1 else { throw .invalidTransferEncoding }
            // RFC 9112 §6.1: a message with both may be an attack on a server in front of this one.
            guard contentLengths == 0 else { throw .conflictingFraming }
            guard transferEncodings == 1 else { throw .invalidTransferEncoding }
            switch coding {
            case .chunked: head.isChunked = true
            // RFC 9112 §6.1: an unknown coding is 501.
            case .chunkedAfterOthers: throw .unsupportedTransferCoding
            // RFC 9112 §6.3: a request has no length if its last coding is not chunked: 400.
            case .invalid: throw .invalidTransferEncoding
            }
        } else if contentLengths > 0 {
            // RFC 9112 §6.3 allows equal values to be merged. Two are refused here, because no client needs them.
            guard contentLengths == 1 else { throw .invalidContentLength }
            head.contentLength = contentLength
        }
    }
}

/// The value of one Transfer-Encoding field (RFC 9112 §6.1), as needed by a server that removes one coding.
enum TransferCoding {
    /// Exactly `chunked` in any case.
    case chunked
    /// Other codings, each a token, then chunked once at the end.
    case chunkedAfterOthers
    /// Anything else: chunked is missing, not last or repeated, or an element is empty or not a token.
    case invalid

    /// Reads the value in `range` of `bytes`. Empty list elements are not allowed here: two readers could derive two
    /// lengths from such a list.
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
            // Each element must be a token, and no coding may follow chunked.
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
