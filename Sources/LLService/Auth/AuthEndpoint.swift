internal import LLBytes
internal import LLHTTP
internal import LLStores
internal import LimitedLogin

/// `/auth` and every path below it: tells a gateway if its client's request has a good token.
///
/// The head alone decides, for any method and path. The status is 200, 401, 403 or 503. It is 400 if the gateway's
/// query has an unknown parameter, and 429 if a device makes too many proofs; some gateways turn these two into an
/// error of their own. The answer has the token's claims in the fields of the setting `auth_headers`. Fields of the
/// same names in the request are ignored.
enum AuthEndpoint {
    static let answer: Route.Answer = { worker, exchange, bytes throws(Rejection) in
        worker.subject = .idToken
        let settings = worker.settings
        // A reload may have disabled the routes while the request waited for keys.
        guard let gateway = settings.gateway else { throw Requirement.gateway.problem }
        var scheme = AuthScheme.bearer
        do throws(Rejection) {
            if AuthDemand.passesWithoutCredentials(exchange.head, bytes) {
                worker.subject = nil
                exchange.response.addField("Cache-Control: no-store")
                return .done()
            }
            let credentials = try AuthCredentials(exchange.head, bytes, gateway.dpop)
            scheme = credentials.scheme
            let demand = try AuthDemand(exchange.head, bytes)
            var expectation = TokenExpectation()
            expectation.appIDBytes = demand.appID
            let sent = bytes.extracting(credentials.token)
            let verdict = try worker.judgeUnbound(sent, expectation, gateway.texts, &exchange, bytes)
            guard let token = verdict else { return .later(until: worker.judge.waitsUntil) }
            let (claims, payload) = (token.claims, token.payload)
            let proof = try credentials.judgeProof(
                exchange.head,
                bytes,
                claims,
                payload: payload,
                gateway: gateway,
                policy: settings.verifier.policy
            )
            try demand.require(claims)
            let person = worker.auditName(claims, payload, app: token.client)
            guard let proof else {
                export(claims, payload, gateway.fields, isProven: false, &exchange.response)
                return .done(person: person)
            }
            let app = JSONText.value(payload.span, token.client)
            let use = ReplayEntry(proof, app: app, user: JSONText.value(payload.span, claims.subject))
            return try ReplayGuard.accept(person, using: [use], worker, &exchange, bytes) { response in
                export(claims, payload, gateway.fields, isProven: true, &response)
            }
        } catch {
            let problem = error.code == .unknownApp ? AuthDemand.unknownApp : error
            throw problem.with { $0.scheme = scheme.rawValue }
        }
    }

    /// Writes the claims that the gateway wants. A person is always named, since no good token has a longer `sub` than a
    /// field may have.
    private static func export(
        _ claims: VerifiedClaims,
        _ payload: [UInt8],
        _ fields: [AuthField],
        isProven: Bool,
        _ response: inout HTTPResponse
    ) {
        response.addField("Cache-Control: no-store")
        for field in fields {
            let moment: NumericDate? =
                switch field.claim {
                case .expiration: claims.expiresAt
                case .issuedAt: claims.issuedAt
                default: nil
                }
            if let moment {
                // The value is in whole seconds since 1970: a sign and at most twenty digits.
                response.addField(field.fieldName, atMost: 21) { output in
                    output.append(decimal: Int(moment.wholeSeconds))
                    return true
                }
                continue
            }
            var range = claims[field.claim] ?? 0..<0
            // The thumbprint of a key is sent only if the client has proved that it holds the key.
            if case .confirmation = field.claim, !isProven { range = 0..<0 }
            response.addField(field.fieldName, atMost: AuthFieldValue.room(for: range)) { output in
                AuthFieldValue.append(range, in: payload.span, to: &output)
            }
        }
    }
}

/// A gateway's demands: `?permissions=email,user_birthday`, `?app_id=…` and `?optional=true`.
///
/// The first two only restrict the accepted tokens. With the third a request without any credentials passes, without a
/// person. The first parameter of each name counts. A parameter of another name is
/// refused, because a misspelt demand would have no effect. Parameters after `original` are ignored: a gateway can
/// append its client's path and query there.
struct AuthDemand {
    private(set) var appID: [UInt8]?
    private var isOptional = false
    private var permissions = PermissionSet(rawValue: 0)

    /// Reads the query of a request. A demand that is empty, or that no token can fulfil, is 403, and an unknown
    /// parameter is 400. A 401 would log people out because of a mistake in the gateway's configuration.
    init(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) throws(Rejection) {
        guard let query = head.query else { return }
        guard let parameters = FormParameters(bytes, query, endingAt: "original") else {
            throw Rejection(.insufficientScope, "The query is malformed, so what it demands cannot be shown.")
        }
        let known = ["permissions", "app_id", "optional"]
        if let name = parameters.firstName(except: known) {
            throw Rejection(
                .invalidRequest,
                RequestMistake.sentence(name, "The query's parameter", "is unknown", known: known + ["original"]),
                hint:
                    "Use permissions, app_id, optional and original alone; a gateway that appends its client's query needs "
                    + "?original= at the end of its path."
            )
        }
        if let optional = parameters.first("optional") {
            guard optional == Array("true".utf8) else {
                let hint = "Use optional=true, or leave it out."
                throw Rejection(.invalidRequest, "The query's parameter optional is not true.", hint: hint)
            }
            // A request without credentials would pass a demand that it cannot fulfil.
            guard parameters.count == 1 else {
                let hint = "Use optional=true alone, or the demand alone."
                throw Rejection(.invalidRequest, "The query demands a token, and says that none is needed.", hint: hint)
            }
            isOptional = true
        }
        if let appID = parameters.first("app_id") {
            guard !appID.isEmpty else { throw Self.unknownApp }
            self.appID = appID
        }
        if let list = parameters.first("permissions") { permissions = try Self.permissions(list) }
    }

    /// True if the request has no credentials at all, and the query says that they are optional.
    static func passesWithoutCredentials(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) -> Bool {
        guard head.query != nil, head.count(of: "authorization", in: bytes) == 0, head.count(of: "dpop", in: bytes) == 0
        else { return false }
        return (try? AuthDemand(head, bytes))?.isOptional == true
    }

    static var unknownApp: Rejection {
        Rejection(.insufficientScope, "The app_id in the query is not a configured app's.")
    }

    private static func permissions(_ list: [UInt8]) throws(Rejection) -> PermissionSet {
        var permissions: PermissionSet = []
        for name in list.split(whereSeparator: { $0 == UInt8(ascii: ",") || $0 == ASCII.space }) {
            guard let permission = Permission(name: Array(name).span) else {
                throw RequestMistake.unknownPermission(.insufficientScope, String(decoding: name, as: UTF8.self))
            }
            permissions.insert(PermissionSet(permission))
        }
        guard !permissions.isEmpty else {
            throw Rejection(.insufficientScope, "The query demands permissions and names none.")
        }
        return permissions
    }

    /// Refuses a token that does not show every demanded permission. A permission without a claim can never be shown.
    func require(_ claims: VerifiedClaims) throws(Rejection) {
        let missing = permissions.subtracting(claims.satisfiedPermissions)
        guard !missing.isEmpty else { return }
        let names = missing.permissions.map(\.rawValue).joined(separator: ", ")
        throw Rejection(.insufficientScope, "The token shows no claim of: \(names).").with {
            $0.scope = permissions.permissions.map(\.rawValue).joined(separator: " ")
        }
    }
}
