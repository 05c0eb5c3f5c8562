internal import CLLDocuments
internal import LLBytes
package import LLHTTP
package import LimitedLogin

/// One path that the service answers. Its row in ``table`` has its methods, callers and answers.
package struct Route: Sendable {
    /// The path of a request; `{name}` stands for one part of it. It is also the label `http_route` of the metrics.
    package let path: StaticString
    /// True if the path has a `{name}`.
    private(set) var hasParameters = false
    /// True if the route also answers all paths below its own.
    private(set) var takesPathsBelow = false
    /// The methods besides OPTIONS, which lists them. Nil if the route treats all methods the same, OPTIONS too.
    package let methods: [HTTPMethod]?
    package private(set) var listeners: [ListenerRole] = [.service]
    /// The configuration the route needs; without it the path is 404.
    private(set) var requirement: Requirement?
    /// True if the path also stands below the path of the issuer's URL.
    private(set) var isOfIssuer = false
    private(set) var caller = Caller.anybody
    private(set) var body = RequestBody.none
    /// True for a route that is answered even when other requests are refused for overload.
    private(set) var isHealth = false
    private(set) var isAudited = false
    private(set) var dialect = ProblemDialect.plain
    /// The codes that the route may answer besides ``Rejection/Code/ofAnyPath``; `/openapi.json` lists them.
    package private(set) var problems: [Rejection.Code] = []
    let answer: Answer

    /// Answers a request after the checks of path, method, caller and media type, or lets it wait.
    typealias Answer =
        @Sendable (
            _ worker: WorkerContext,
            _ exchange: inout HTTPExchange,
            _ bytes: Span<UInt8>
        ) throws(Rejection) -> Outcome

    package var allow: String { ((methods ?? []) + [.options]).map { "\($0.name)" }.joined(separator: ", ") }

    @inline(__always)
    func allows(_ method: HTTPMethod) -> Bool { methods?.contains(method) ?? true }

    /// True if the path of a request belongs to this route. Bytes are compared without decoding percent escapes.
    @inline(__always)
    func matches(_ path: Range<Int>, _ bytes: Span<UInt8>) -> Bool {
        if bytes.equal(path, self.path) { return true }
        if takesPathsBelow { return isBelow(path, bytes) }
        return hasParameters && parameters(path, bytes) != nil
    }

    /// The parts of a path for each `{name}`, in order, none of them empty; nil if the path belongs to another route.
    func parameters(_ path: Range<Int>, _ bytes: Span<UInt8>) -> [Range<Int>]? {
        let names = "\(self.path)".split(separator: "/", omittingEmptySubsequences: false)
        let parts = path.split(maxSplits: names.count, omittingEmptySubsequences: false) { bytes[$0] == Self.slash }
        guard parts.count == names.count else { return nil }
        var found: [Range<Int>] = []
        for (name, part) in zip(names, parts) {
            if name.hasPrefix("{"), !part.isEmpty {
                found.append(part)
            } else if !name.utf8.elementsEqual(part.map { bytes[$0] }) {
                return nil
            }
        }
        return found
    }

    private func isBelow(_ path: Range<Int>, _ bytes: Span<UInt8>) -> Bool {
        let end = path.lowerBound + self.path.utf8CodeUnitCount
        return path.upperBound > end && bytes[end] == Self.slash && bytes.equal(path.lowerBound..<end, self.path)
    }

    private static let slash = UInt8(ascii: "/")

    func mayAnswer(_ code: Rejection.Code) -> Bool {
        problems.contains(code) || Rejection.Code.ofAnyPath.contains(code)
    }
}

enum Caller: Sendable {
    case anybody
    case knownWhereConfigured
    /// One of the clients; without configured clients every caller is refused.
    case known
    /// The same as `known`, but a caller may also send its key in the form, as OAuth clients do.
    case knownByForm
}

/// The configuration that enables a route, and the 404 without it.
struct Requirement: Sendable {
    let sentence: String
    private(set) var hint: String?
    let isMet: @Sendable (RuntimeSettings) -> Bool

    /// Endpoints throw it too: a reload may have taken the configuration away since the head came.
    var problem: Rejection { Rejection(.notFound, sentence, hint: hint) }

    /// The gateway routes are disabled by default, because a bearer token is tied to no login.
    static let gateway = Requirement(sentence: "The routes for gateways are disabled; see LIMITED_LOGIN_GATEWAY.") {
        $0.gateway != nil
    }
    static let tokenIssuer = Requirement(sentence: "No tokens are issued here; see LIMITED_LOGIN_ISSUER.") {
        $0.tokens != nil
    }
    static let nonceIssuer = Requirement(
        sentence: "No nonces are issued here; see LIMITED_LOGIN_NONCE_SECRET_FILE.",
        hint: "Make a secret with limited-login nonce secret --out FILE, name the file in "
            + "LIMITED_LOGIN_NONCE_SECRET_FILE, and start the service again."
    ) { $0.verifier.nonces != nil }
    static let permissions = Requirement(
        sentence: "The routes for permissions are disabled; see LIMITED_LOGIN_APP_SECRETS_FILE."
    ) { $0.appSecrets != nil }
    static let callbacks = Requirement(
        sentence: "Facebook's callbacks are disabled; see LIMITED_LOGIN_APP_SECRETS_FILE."
    ) { $0.appSecrets != nil }
    /// Without a configured backend no data would be deleted.
    static let dataDeletion = Requirement(
        sentence: "Data deletion needs LIMITED_LOGIN_APP_SECRETS_FILE and LIMITED_LOGIN_CALLBACKS_URL."
    ) { $0.appSecrets != nil && $0.webhook != nil }
}

package enum ListenerRole: Sendable {
    /// The listener for app backends: `POST /verify` and health.
    case service
    /// The listener for operators: metrics and health.
    case administration
}

extension Route {
    package static let table: [Route] = [
        verify, auth, introspect, token, nonces, livez, readyz, healthz, metrics, openapi, uninstall, permissions,
        permission,
        deauthorize, dataDeletion, revocations, openIDConfiguration, authorizationServer, keySet,
    ]

    package static let unmatchedLabel: StaticString = "_unmatched"

    static let verify = Route(
        path: "/verify",
        methods: [.post],
        caller: .knownWhereConfigured,
        body: .json(atMost: VerifyEndpoint.bodyLimit),
        isAudited: true,
        problems: [.invalidNonce, .invalidPermission, .unknownApp, .unauthorizedClient, .unsupportedMediaType]
            + Rejection.Code.ofLogins,
        answer: VerifyEndpoint.answer
    )

    /// It is only for callers with a key: others could find out which tokens are good (RFC 7662 section 4).
    static let introspect = Route(
        path: "/introspect",
        methods: [.post],
        isOfIssuer: true,
        caller: .knownByForm,
        body: .form(atMost: VerifyEndpoint.bodyLimit),
        dialect: .introspection,
        problems: [.unauthorizedClient, .unsupportedMediaType] + Rejection.Code.ofJudging,
        answer: IntrospectEndpoint.answer
    )

    /// It is never public: the caller gets a token that others accept as a login.
    static let token = Route(
        path: "/token",
        methods: [.post],
        requirement: .tokenIssuer,
        isOfIssuer: true,
        caller: .knownByForm,
        body: .form(atMost: VerifyEndpoint.bodyLimit),
        isAudited: true,
        dialect: .exchange,
        problems: [
            .invalidTarget, .invalidScope, .unsupportedGrantType, .invalidNonce, .unknownApp, .unauthorizedClient,
            .unsupportedMediaType,
        ] + Rejection.Code.ofLogins,
        answer: TokenEndpoint.answer
    )

    /// Documents that consumers of the tokens read by themselves (OpenID Connect Discovery, RFC 8414, RFC 7517).
    static let openIDConfiguration = published("/.well-known/openid-configuration") { $0.discovery }
    static let authorizationServer = published("/.well-known/oauth-authorization-server") { $0.discovery }
    static let keySet = published("/.well-known/jwks.json") { $0.keySet }

    private static func published(_ path: StaticString, _ text: @escaping @Sendable (TokenSettings) -> [UInt8]) -> Route
    {
        Route(path: path, methods: [.get, .head], requirement: .tokenIssuer, isOfIssuer: true) {
            worker,
            exchange,
            _ throws(Rejection) in
            guard let tokens = worker.settings.tokens else { throw Requirement.tokenIssuer.problem }
            exchange.response.addField("Content-Type: application/json")
            // A new key is published 300 s before it signs.
            exchange.response.addField("Cache-Control: public, max-age=300")
            exchange.response.body += text(tokens)
            return .done()
        }
    }

    /// The route for gateways. A gateway may append its own client's path, and passes on that client's method.
    static let auth = Route(
        path: "/auth",
        takesPathsBelow: true,
        methods: nil,
        requirement: .gateway,
        body: .ignored,
        isAudited: true,
        problems: [.missingToken, .invalidDPoPProof, .tooManyProofs, .insufficientScope] + Rejection.Code.ofJudging
            + Rejection.Code.ofUnboundTokens,
        answer: AuthEndpoint.answer
    )

    static let nonces = Route(
        path: "/nonces",
        methods: [.post],
        requirement: .nonceIssuer,
        caller: .knownWhereConfigured,
        body: .jsonOrNothing(atMost: NonceRequest.bodyLimit),
        problems: [
            .invalidPermission, .unknownApp, .unauthorizedClient, .unsupportedMediaType, .replayStoreUnavailable,
        ],
        answer: NoncesEndpoint.answer
    )

    /// Lists permissions, and revokes the login. Like the two below it needs a key: it can end any person's login.
    static let permissions = Route(
        path: "/users/{user_id}/permissions",
        hasParameters: true,
        methods: [.get, .delete],
        requirement: .permissions,
        caller: .known,
        body: .empty,
        problems: [.unknownApp, .unauthorizedClient, .replayStoreUnavailable, .callbackNotDelivered]
            + Rejection.Code.ofGraph,
        answer: PermissionsEndpoint.answer
    )

    static let permission = Route(
        path: "/users/{user_id}/permissions/{permission}",
        hasParameters: true,
        methods: [.delete],
        requirement: .permissions,
        caller: .known,
        body: .empty,
        problems: [.unknownApp, .unauthorizedClient] + Rejection.Code.ofGraph,
        answer: PermissionsEndpoint.answer
    )

    /// Facebook asks for the id token alone, so no app secret is needed.
    static let uninstall = Route(
        path: "/uninstall",
        methods: [.post],
        caller: .known,
        body: .json(atMost: VerifyEndpoint.bodyLimit),
        problems: [.unknownApp, .unauthorizedClient, .unsupportedMediaType, .callbackNotDelivered]
            + Rejection.Code.ofJudging + Rejection.Code.ofUnboundTokens + Rejection.Code.ofGraph,
        answer: UninstallEndpoint.answer
    )

    static let deauthorize = callback("/callbacks/deauthorize", .deauthorize, requirement: .callbacks)

    static let dataDeletion = callback("/callbacks/data-deletion", .dataDeletion, requirement: .dataDeletion)

    /// The route is public: Facebook's signature authenticates the caller.
    private static func callback(_ path: StaticString, _ kind: CallbackKind, requirement: Requirement) -> Route {
        Route(
            path: path,
            methods: [.post],
            requirement: requirement,
            body: .form(atMost: SignedRequest.byteLimit),
            problems: [.invalidSignedRequest, .unsupportedMediaType, .callbackNotDelivered, .replayStoreUnavailable],
            answer: CallbackEndpoint.answer(kind)
        )
    }

    static let revocations = Route(
        path: "/revocations",
        methods: [.post],
        caller: .known,
        body: .json(atMost: 1_024),
        problems: [
            .unknownApp, .unauthorizedClient, .unsupportedMediaType, .callbackNotDelivered, .replayStoreUnavailable,
        ],
        answer: RevocationsEndpoint.answer
    )

    static let openapi = Route(
        path: "/openapi.json",
        methods: [.get, .head],
        answer: { _, exchange, _ in
            exchange.response.addField("Content-Type: application/json")
            exchange.response.share(OpenAPIDocument.bytes)
            return .done()
        }
    )

    static let livez = health("/livez")

    static let readyz = health("/readyz", problems: [.keysUnavailable, .replayStoreUnavailable, .draining])

    /// An older name of `/livez`.
    static let healthz = health("/healthz")

    private static func health(_ path: StaticString, problems: [Rejection.Code] = []) -> Route {
        Route(
            path: path,
            methods: [.get, .head],
            listeners: [.service, .administration],
            isHealth: true,
            problems: problems,
            answer: HealthEndpoint.answer(readiness: !problems.isEmpty)
        )
    }

    static let metrics = Route(
        path: "/metrics",
        methods: [.get, .head],
        listeners: [.administration],
        answer: { worker, exchange, _ in
            exchange.response.addField("Content-Type: text/plain; version=0.0.4; charset=utf-8")
            exchange.response.body.append(contentsOf: worker.core.exposition().utf8)
            return .done()
        }
    )
}

/// The OpenAPI 3.1 document of the service's listener. Tests compare it with ``Route`` and ``Rejection/Code``.
package enum OpenAPIDocument {
    /// The document without white space between its values, made at first use.
    package static let bytes: [UInt8] = {
        var bytes: [UInt8] = []
        var isInString = false
        var isEscaped = false
        for byte in unsafe String(cString: openapi_document()).utf8 {
            if isInString || byte > UInt8(ascii: " ") { bytes.append(byte) }
            if byte == UInt8(ascii: "\""), !isEscaped { isInString.toggle() }
            isEscaped = byte == UInt8(ascii: "\\") && !isEscaped
        }
        return bytes
    }()
}
