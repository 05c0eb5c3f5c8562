internal import LLBytes
internal import LLHTTP
internal import LLJOSE
internal import LLStores
internal import LimitedLogin

/// `/auth` and every path below it: tells a gateway if its client's request has a good token.
///
/// The head alone decides, for any method and path. Some gateways turn a status besides 200, 401 and 403 into an error of
/// their own. Fields of the setting `auth_headers` in the request are ignored.
enum AuthEndpoint {
    static let answer: Route.Answer = { worker, exchange, bytes throws(Rejection) in
        worker.subject = .idToken
        let settings = worker.settings
        guard let gateway = settings.gateway else { throw Requirement.gateway.problem }
        var scheme = "Bearer"
        do throws(Rejection) {
            if exchange.head.query != nil, let demand = try? AuthDemand(exchange.head, bytes), demand.isOptional,
                exchange.head.count(of: "authorization", in: bytes) == 0,
                exchange.head.count(of: "dpop", in: bytes) == 0
            {
                worker.subject = nil
                exchange.response.addField("Cache-Control: no-store")
                return .done()
            }
            let credentials = try AuthCredentials(exchange.head, bytes, gateway.dpop)
            if credentials.isDPoP { scheme = "DPoP" }
            let demand = try AuthDemand(exchange.head, bytes)
            var expectation = TokenExpectation()
            expectation.appIDBytes = demand.appID
            let sent = bytes.extracting(credentials.token)
            let verdict = try worker.judgeUnbound(sent, expectation, gateway.texts, &exchange, bytes)
            guard let token = verdict else { return .later(until: worker.judge.waitsUntil) }
            let proof = try credentials.judgeProof(exchange.head, bytes, token, gateway, settings)
            try demand.require(token.claims)
            let person = worker.auditName(token.claims, token.payload, app: token.client)
            guard let proof else {
                token.export(gateway.fields, isProven: false, to: &exchange.response)
                return .done(person: person)
            }
            let app = JSONText.value(token.payload.span, token.client)
            let use = ReplayEntry(proof, app: app, user: JSONText.value(token.payload.span, token.claims.subject))
            return try ReplayGuard.accept(person, using: [use], worker, &exchange, bytes) { response in
                token.export(gateway.fields, isProven: true, to: &response)
            }
        } catch {
            let problem = error.code == .unknownApp ? AuthDemand.unknownApp : error
            throw problem.with { $0.scheme = scheme }
        }
    }
}

extension UnboundToken {
    /// Writes the claims for the gateway. The `sub` is never left out: in a good token it fits into a field.
    fileprivate func export(_ fields: [AuthField], isProven: Bool, to response: inout HTTPResponse) {
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
            // The client must have proved that it holds the key.
            if case .confirmation = field.claim, !isProven { range = 0..<0 }
            response.addField(field.fieldName, atMost: AuthFieldValue.room(for: range)) { output in
                AuthFieldValue.append(range, in: payload.span, to: &output)
            }
        }
    }
}

/// A gateway's demands: `?permissions=email,user_birthday`, `?app_id=…` and `?optional=true`.
///
/// The first parameter of each name counts. A parameter of another name is refused, because a misspelt demand would have
/// no effect. Parameters after `original` are ignored: a gateway can append its client's path and query there.
struct AuthDemand {
    private(set) var appID: [UInt8]?
    /// True if a request without any credentials passes, without a person.
    private(set) var isOptional = false
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

/// The scheme of a request, DPoP (RFC 9449 section 7.1) or Bearer (RFC 6750 section 2.1), and its token.
struct AuthCredentials {
    let isDPoP: Bool
    let token: Range<Int>

    init(_ head: borrowing RequestHead, _ bytes: Span<UInt8>, _ demand: DPoPDemand) throws(Rejection) {
        guard head.count(of: "authorization", in: bytes) <= 1 else {
            throw Rejection(.missingToken, "The request has more than one Authorization field, so none of them counts.")
        }
        let value = head.value(of: "authorization", in: bytes) ?? 0..<0
        if let token = CallerCredentials.rest(of: value, after: "bearer ", bytes) {
            (isDPoP, self.token) = (false, token)
        } else if demand != .ignored, let token = CallerCredentials.rest(of: value, after: "dpop ", bytes) {
            (isDPoP, self.token) = (true, token)
        } else {
            throw Rejection(
                .missingToken,
                demand == .ignored
                    ? "The id token is wanted in the field Authorization: Bearer."
                    : "The id token is wanted in the field Authorization: Bearer, or DPoP with a proof."
            )
        }
    }

    /// Judges the request's proof if the scheme is DPoP. With Bearer the `DPoP` field is not read, but its presence makes
    /// the service refuse a bound token unless proofs are ignored: that client can prove its key (RFC 9449 section 7.2).
    /// - Returns: The proof, which is good but may have been used before; nil if none is needed.
    func judgeProof(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        _ judged: UnboundToken,
        _ gateway: GatewaySettings,
        _ settings: RuntimeSettings
    ) throws(Rejection) -> DPoPProof? {
        var bound: Range<Int>?
        switch judged.claims.keyBinding {
        case .unreadable: throw .proofOfUnreadableBinding
        case .key(let thumbprint): bound = thumbprint
        case .none: break
        }
        guard isDPoP else {
            guard bound != nil, gateway.dpop != .ignored else { return nil }
            if head.count(of: "dpop", in: bytes) > 0 { throw .boundBearer }
            guard gateway.dpop == .requiredIfBound else { return nil }
            throw .proofMissing
        }
        // RFC 9449 section 4.3 (1) allows one `DPoP` field.
        let count = head.count(of: "dpop", in: bytes)
        guard count <= 1 else { throw .proofRepeated }
        guard let bound else { throw .proofOfUnboundToken }
        guard let proof = head.value(of: "dpop", in: bytes) else { throw .proofMissing }
        // The client's request, as its gateway describes it.
        let method = try Self.only("x-forwarded-method", head, bytes)
        let uri = bytes.extracting(try Self.only("x-forwarded-uri", head, bytes, mayHoldComma: true))
        let target: TargetURI?
        if let origin = gateway.origin {
            target = TargetURI(scheme: origin.scheme.span, authority: origin.authority.span, target: uri)
        } else {
            target = TargetURI(
                scheme: bytes.extracting(try Self.only("x-forwarded-proto", head, bytes)),
                authority: bytes.extracting(try Self.only("x-forwarded-host", head, bytes)),
                target: uri
            )
        }
        guard let target else {
            throw Self.fault("X-Forwarded-Proto, -Host and -Uri make no http URL: each has one value, as https")
        }
        return try DPoPProof(
            verifying: bytes.extracting(proof),
            method: bytes.extracting(method),
            target: target,
            token: bytes.extracting(token),
            keyThumbprint: JSONText.value(judged.payload.span, bound).utf8.span,
            clockSkew: settings.verifier.policy.clockSkew,
            now: .now
        )
    }

    /// The value of a field that must come exactly once. If there are two, one may be from the client.
    private static func only(
        _ name: StaticString,
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        mayHoldComma: Bool = false
    ) throws(Rejection) -> Range<Int> {
        let count = head.count(of: name, in: bytes)
        guard count < 2 else { throw fault("\(name) stands there \(count) times") }
        guard let value = head.value(of: name, in: bytes), !value.isEmpty else { throw fault("\(name) is missing") }
        let holdsList = value.contains { bytes[$0] == UInt8(ascii: ",") }
        guard !holdsList || mayHoldComma else { throw fault("\(name) has several values") }
        return value
    }

    /// A fault of the gateway, not of the proof: a new proof would not help, so the status is no 401.
    private static func fault(_ reason: String) -> Rejection {
        Rejection(
            .invalidRequest,
            "The gateway tells its client's request wrongly, so no DPoP proof can be judged: \(reason).",
            hint: "Have the gateway replace X-Forwarded-Method, -Proto, -Host and -Uri by one value each, as in "
                + "config/gateways; gateway_origin stands in for -Proto and -Host."
        )
    }
}
