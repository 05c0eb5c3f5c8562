package import HTTP1

/// The paths this service answers; the label `http_route` of its metrics.
package enum Route: Int, CaseIterable, Sendable {
    case verify
    case introspect
    case nonces
    /// `/auth` and every path below it.
    case auth
    /// What a person has granted, and the whole login to be revoked.
    case userPermissions
    /// One permission to be revoked.
    case userPermission
    /// Limited Login's own way of uninstalling the app.
    case uninstall
    /// The description of the API.
    case openapi
    case livez
    case readyz
    case healthz
    case metrics
    /// Any other path: one label for all of them.
    case unmatched

    /// The path as it stands in a request target.
    package var path: StaticString {
        switch self {
        case .verify: "/verify"
        case .introspect: "/introspect"
        case .nonces: "/nonces"
        case .auth: "/auth"
        case .userPermissions: "/users/{user_id}/permissions"
        case .userPermission: "/users/{user_id}/permissions/{permission}"
        case .uninstall: "/uninstall"
        case .openapi: "/openapi.json"
        case .livez: "/livez"
        case .readyz: "/readyz"
        case .healthz: "/healthz"
        case .metrics: "/metrics"
        case .unmatched: "_unmatched"
        }
    }

    /// The `Allow` field of the path (RFC 9110 section 10.2.1).
    package var allow: StaticString {
        switch self {
        case .verify, .introspect, .nonces, .uninstall: "Allow: POST, OPTIONS"
        case .userPermissions: "Allow: GET, DELETE, OPTIONS"
        case .userPermission: "Allow: DELETE, OPTIONS"
        default: "Allow: GET, HEAD, OPTIONS"
        }
    }

    /// Whether the method is among those of `allow`.
    package func allows(_ method: HTTPMethod) -> Bool {
        switch (self, method) {
        case (_, .options): true
        case (.auth, _): true
        case (.verify, _), (.introspect, _), (.nonces, _), (.uninstall, _): method == .post
        case (.userPermissions, _): method == .get || method == .delete
        case (.userPermission, _): method == .delete
        default: method == .get || method == .head
        }
    }

    /// Whether the route says how the service itself is, so that it is answered when other requests are refused.
    package var isHealth: Bool { self == .livez || self == .readyz || self == .healthz }

    /// Whether the answer is the verdict on a token.
    package var isVerdict: Bool { self == .verify || self == .introspect || self == .auth }

    /// Whether the route asks Graph.
    package var needsGraph: Bool { self == .userPermissions || self == .userPermission || self == .uninstall }

    /// The route of a request's path, compared byte for byte.
    package init(_ head: borrowing RequestHead, bytes: Span<UInt8>, listener: ListenerRole) {
        let path = head.path
        if listener == .service, bytes.equal(path, Route.verify.path) {
            self = .verify
        } else if listener == .service, Self.isAuth(path, bytes) {
            self = .auth
        } else if listener == .service, bytes.equal(path, Route.introspect.path) {
            self = .introspect
        } else if listener == .service, bytes.equal(path, Route.nonces.path) {
            self = .nonces
        } else if bytes.equal(path, Route.livez.path) {
            self = .livez
        } else if bytes.equal(path, Route.readyz.path) {
            self = .readyz
        } else if bytes.equal(path, Route.healthz.path) {
            self = .healthz
        } else if listener == .administration, bytes.equal(path, Route.metrics.path) {
            self = .metrics
        } else if listener == .service, bytes.equal(path, Route.openapi.path) {
            self = .openapi
        } else if listener == .service, bytes.equal(path, Route.uninstall.path) {
            self = .uninstall
        } else if listener == .service, let parts = UserPath(bytes, path) {
            self = parts.permission == nil ? .userPermissions : .userPermission
        } else {
            self = .unmatched
        }
    }

    /// `/auth` itself, or a path below it: a gateway may append the path that its own client asked for.
    private static func isAuth(_ path: Range<Int>, _ bytes: Span<UInt8>) -> Bool {
        let end = path.lowerBound + Route.auth.path.utf8CodeUnitCount
        guard path.upperBound >= end, bytes.equal(path.lowerBound..<end, Route.auth.path) else { return false }
        return path.upperBound == end || bytes[end] == UInt8(ascii: "/")
    }
}

/// Which of the two listeners a request came in by.
package enum ListenerRole: Sendable {
    /// The app backends': `POST /verify` and health.
    case service
    /// The operators': metrics and health.
    case administration
}
