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
        self = .unrecognized
        for method in Self.allCases where method != .unrecognized {
            if bytes.equal(range, method.name) {
                self = method
                return
            }
        }
    }
}
