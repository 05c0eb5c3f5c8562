internal import LLBytes

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
