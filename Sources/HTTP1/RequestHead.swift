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
    /// The method's own bytes.
    package internal(set) var methodName: Range<Int> = 0..<0
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
