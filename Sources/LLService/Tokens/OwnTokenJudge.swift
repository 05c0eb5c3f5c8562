internal import LLBytes
internal import LLHTTP
internal import LLJOSE
internal import LLStores
package import LimitedLogin

package final class TokenSettings: Sendable {
    package let issuer: TokenIssuer
    /// The metadata of the issuer (OpenID Connect Discovery section 3, RFC 8414 section 2): one JSON object.
    let discovery: [UInt8]
    let keySet: [UInt8]
    /// The path of the issuer's URL; empty for most.
    private let path: [UInt8]

    package init(_ issuer: TokenIssuer) {
        self.issuer = issuer
        keySet = Array(issuer.keys.jwkSet.utf8)
        let base = issuer.policy.issuer
        path = Array(base.utf8.dropFirst("https://".utf8.count).drop { $0 != UInt8(ascii: "/") })
        let algorithms = Set(issuer.keys.keys.map(\.algorithm.rawValue)).sorted()
        var text: [UInt8] = [UInt8(ascii: "{")]
        JSONWriter.member("issuer", base, to: &text)
        // OpenID Connect Discovery requires this member. The address does not exist, because logins begin at Facebook.
        JSONWriter.member("authorization_endpoint", base + "/authorize", to: &text)
        JSONWriter.member("token_endpoint", base + "/token", to: &text)
        JSONWriter.member("introspection_endpoint", base + "/introspect", to: &text)
        JSONWriter.member("jwks_uri", base + "/.well-known/jwks.json", to: &text)
        JSONWriter.member("response_types_supported", ["none"], to: &text)
        JSONWriter.member("grant_types_supported", [TokenRequest.grantType], to: &text)
        JSONWriter.member("subject_types_supported", ["pairwise"], to: &text)
        JSONWriter.member("id_token_signing_alg_values_supported", algorithms, to: &text)
        let methods = ["client_secret_basic", "client_secret_post"]
        JSONWriter.member("token_endpoint_auth_methods_supported", methods, to: &text)
        let claims = ["iss", "sub", "aud", "client_id", "azp", "iat", "exp", "auth_time", "jti", "idp", "cnf"]
        let told = issuer.policy.claims.flatMap { $0 == .email ? ["email", "email_verified"] : [$0.rawValue] }
        JSONWriter.member("claims_supported", claims + told, to: &text)
        text.append(UInt8(ascii: "}"))
        discovery = text
    }

    /// The path of a route in a request's path that has the issuer's path too; nil for any other. Discovery puts a document
    /// below the issuer (section 4.1), and RFC 8414 the issuer's path behind the document's (section 3.1).
    func routePath(in path: Range<Int>, _ bytes: Span<UInt8>) -> Range<Int>? {
        let own = self.path
        guard !own.isEmpty, path.count > own.count else { return nil }
        let (end, start) = (path.lowerBound + own.count, path.upperBound - own.count)
        if bytes.equal(path.lowerBound..<end, own.span) { return end..<path.upperBound }
        let document: StaticString = "/.well-known/"
        let name = path.lowerBound..<min(path.lowerBound + document.utf8CodeUnitCount, start)
        guard bytes.equal(start..<path.upperBound, own.span), bytes.equal(name, document) else { return nil }
        return path.lowerBound..<start
    }
}

/// Judges tokens that this service issued, at `/auth` and `/introspect`, without keys of Facebook. Each worker has one.
final class OwnTokenJudge {
    private let revocations: Revocations
    private let metrics: ServiceMetrics
    private var tokens: RecentDigests
    private var verifier: OwnTokenVerifier?

    init(capacity: Int, revocations: Revocations, metrics: ServiceMetrics) {
        self.metrics = metrics
        self.revocations = revocations
        tokens = RecentDigests(capacity: capacity)
    }

    func use(_ settings: RuntimeSettings) {
        verifier = settings.tokens.map { OwnTokenVerifier($0.issuer, verification: settings.verifier.policy) }
        // A reload may have removed the key that signed a token.
        tokens = RecentDigests(capacity: tokens.capacity)
    }

    func isOwn(_ token: Span<UInt8>) -> Bool { verifier?.isOwn(token) ?? false }

    /// Judges a token for which ``isOwn(_:)`` is true.
    func judge(_ token: Span<UInt8>, _ expectation: TokenExpectation) throws(Rejection) -> UnboundToken {
        guard let verifier else { throw Rejection(.internalError, "The keys of this service's tokens are not ready.") }
        guard revocations.isKnown else { throw TokenJudge.unknownRevocations }
        guard let digest = try? SHA256.digest(of: token) else {
            throw Rejection(.internalError, "OpenSSL cannot hash.")
        }
        let known = tokens.find(digest)
        if tokens.capacity > 0 { metrics.count(.signature(isRemembered: known != nil)) }
        let judged = try verifier.judge(token, appID: expectation.appIDBytes, isSigned: known != nil, now: .now)
        let app = JSONText.value(judged.payload.span, judged.clientID)
        let user = JSONText.value(judged.payload.span, judged.claims.subject)
        try revocations.requireInForce(app: app.utf8.span, user: user.utf8.span, issuedAt: judged.authenticatedAt)
        tokens.use(digest, nil)
        // A token that was issued here has no nonce.
        guard expectation.binding.nonce == nil else { throw .missingClaim(.nonce) }
        if let expected = expectation.binding.subject, !user.utf8.elementsEqual(expected) { throw .subjectMismatch }
        return UnboundToken(claims: judged.claims, payload: judged.payload, isOwn: true, client: judged.clientID)
    }
}

/// A good token at `/auth` or `/introspect`: one of Facebook, or one that was issued here.
struct UnboundToken {
    let claims: VerifiedClaims
    /// The bytes that the ranges point into.
    let payload: [UInt8]
    var isOwn = false
    /// The client that the token was issued to. A token of Facebook was issued to its audience.
    let client: Range<Int>
}

extension WorkerContext {
    /// Judges a token of Facebook or of this service; nil if it must wait for keys.
    /// - Parameter texts: The texts to return of a token of Facebook; others may be missing.
    func judgeUnbound(
        _ token: Span<UInt8>,
        _ expectation: TokenExpectation,
        _ texts: ClaimSet,
        _ exchange: inout HTTPExchange,
        _ bytes: Span<UInt8>
    ) throws(Rejection) -> UnboundToken? {
        if ownTokens.isOwn(token) { return try ownTokens.judge(token, expectation) }
        let claims = try judge.judge(token, expectation, texts, verifier: settings.unboundVerifier, &exchange, bytes)
        return claims.map { UnboundToken(claims: $0, payload: judge.workspace.payload, client: $0.audience) }
    }
}
