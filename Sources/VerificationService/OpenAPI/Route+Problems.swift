internal import Graph
internal import HTTP1
internal import LimitedLogin

extension Route {
    /// The methods that do something at the path, `OPTIONS` aside, which everywhere but at `/auth` tells the methods.
    var methods: [HTTPMethod] {
        switch self {
        case .verify, .introspect, .nonces, .uninstall: [.post]
        case .userPermissions: [.get, .delete]
        case .userPermission: [.delete]
        case .auth: [.get, .head, .post, .put, .delete, .options, .trace, .patch]
        case .openapi, .livez, .readyz, .healthz, .metrics: [.get, .head]
        case .unmatched: []
        }
    }

    /// Every code the route itself may answer; the server's own, ``ProblemCode/ofServer``, may come anywhere.
    var problems: [ProblemCode] {
        switch self {
        case .verify:
            [.invalidRequest, .invalidNonce, .invalidPermission, .unknownApp] + ProblemCode.ofTokens
                + [.unauthorizedClient, .unsupportedMediaType, .keysUnavailable, .replayStoreUnavailable]
        case .introspect: [.invalidRequest, .unauthorizedClient, .unsupportedMediaType, .keysUnavailable]
        case .nonces:
            [
                .invalidRequest, .unknownApp, .unauthorizedClient, .notFound, .unsupportedMediaType,
                .replayStoreUnavailable,
            ]
        case .auth: [.missingToken] + ProblemCode.ofTokens + [.insufficientScope, .notFound, .keysUnavailable]
        case .userPermissions, .userPermission:
            [.invalidRequest, .unknownApp, .unauthorizedClient, .notFound] + ProblemCode.ofGraph
        case .uninstall:
            [.invalidRequest, .unknownApp, .unauthorizedClient, .notFound, .unsupportedMediaType, .keysUnavailable]
                + ProblemCode.ofTokens + ProblemCode.ofGraph
        case .readyz: [.keysUnavailable, .draining]
        case .openapi, .livez, .healthz, .metrics: []
        case .unmatched: [.notFound]
        }
    }
}

extension ProblemCode {
    /// Whether it says what became of a token.
    var isVerdict: Bool {
        switch self {
        case .rejectedToken, .unknownApp, .keysUnavailable: true
        default: false
        }
    }

    /// Those of calls that failed at Graph.
    static let ofGraph: [ProblemCode] = GraphError.allCases.map { .graph($0) }

    /// Those of refused tokens.
    static var ofTokens: [ProblemCode] {
        all.filter { if case .rejectedToken = $0 { true } else { false } }
    }

    /// What the HTTP server answers by itself, at any path: a request it cannot read, or too much of it.
    static let ofServer: [ProblemCode] = [
        .invalidRequest, .requestTimeout, .bodyTooLarge, .uriTooLong, .expectationFailed, .misdirectedRequest,
        .headersTooLarge, .internalError, .notImplemented, .overloaded, .httpVersionNotSupported,
    ]
}
