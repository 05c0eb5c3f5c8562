internal import LLBytes
internal import LLHTTP1
internal import LLHTTPServer
internal import LLStores
internal import LimitedLogin

/// `/auth` and every path below it: tells a gateway whether the request it holds comes with a good token.
///
/// The head alone decides, whatever the method and the path. The status is one of 200, 401, 403 and 503; 400 where the
/// gateway's own query has a parameter that does not exist; 429 where a device makes too many proofs. Some gateways turn the
/// last two into a failure of their own. What the
/// token says goes back in the fields of the setting `auth_headers`; fields of those names that came with the request are
/// not looked at.
enum AuthEndpoint {
    static let answer: Route.Answer = { worker, head, bytes, _, context, response in
        let settings = worker.settings
        // A reload may have closed the routes while the request waited for keys.
        guard let gateway = settings.gateway else {
            return .refused(.idToken, Problem(.notFound, Requirement.gateway.sentence))
        }
        var scheme = AuthScheme.bearer
        do throws(Problem) {
            let credentials = try AuthCredentials(head, bytes, gateway.dpop)
            scheme = credentials.scheme
            let demand = try AuthDemand(head, bytes)
            if let tokens = settings.tokens,
                worker.ownTokens.isOwn(bytes.extracting(credentials.token), tokens, settings)
            {
                let token = try worker.ownTokens.judge(bytes.extracting(credentials.token), appID: demand.appID)
                return try tell(
                    token.claims,
                    token.payload,
                    credentials,
                    demand,
                    gateway,
                    worker,
                    head,
                    bytes,
                    context,
                    &response
                )
            }
            var question = TokenQuestion(appID: demand.appID, texts: gateway.texts)
            // A proof is compared with these values.
            if scheme == .dpop { question.texts.insert(.keyThumbprint) }
            let verdict = try worker.judge.judge(
                bytes.extracting(credentials.token),
                question,
                signatures: worker.signatures,
                verifier: settings.unboundVerifier,
                context: context,
                trace: TraceParent.passedOn(head, bytes)
            )
            switch verdict {
            case .wait(let moment): return .wait(until: moment)
            case .verified(let claims):
                return try tell(
                    claims,
                    worker.judge.workspace.payload,
                    credentials,
                    demand,
                    gateway,
                    worker,
                    head,
                    bytes,
                    context,
                    &response
                )
            }
        } catch {
            var problem = error.code == .unknownApp ? AuthDemand.unknownApp : error
            problem.scheme = scheme
            return .refused(.idToken, problem)
        }
    }

    /// The rest of the way of a good token: its proof, the gateway's demand, and the fields.
    @inline(__always)
    private static func tell(
        _ claims: VerifiedClaims,
        _ payload: [UInt8],
        _ credentials: AuthCredentials,
        _ demand: AuthDemand,
        _ gateway: GatewaySettings,
        _ worker: WorkerParts,
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        _ context: RequestContext,
        _ response: inout HTTPResponse
    ) throws(Problem) -> Outcome {
        let proof = try credentials.judgeProof(
            head,
            bytes,
            claims,
            payload: payload.span,
            gateway: gateway,
            policy: worker.settings.verifier.policy
        )
        try demand.require(claims)
        try export(claims, payload.span, gateway.fields, isProven: proof != nil, &response)
        guard let proof else { return .accepted(.idToken) }
        return try FirstUse.use(ReplayQuestion(proof), of: .idToken, worker, context, response)
    }

    private static func export(
        _ claims: VerifiedClaims,
        _ payload: Span<UInt8>,
        _ fields: [AuthField],
        isProven: Bool,
        _ response: inout HTTPResponse
    ) throws(Problem) {
        response.addField("Cache-Control: no-store")
        for field in fields {
            guard case .text(let text) = field.claim else {
                let moment = field.claim == .expiration ? claims.expiresAt : claims.issuedAt
                // Whole seconds since 1970: a sign and the digits of 64 bits.
                response.addField(field.fieldName, atMost: 21) { output in
                    output.append(decimal: Int(moment.wholeSeconds))
                    return true
                }
                continue
            }
            // The name of a key is told only of a client that has proved to hold it.
            let range = text == .keyThumbprint && !isProven ? 0..<0 : claims[text] ?? 0..<0
            let isTold = response.addField(field.fieldName, atMost: AuthFieldValue.room(for: range)) { output in
                AuthFieldValue.append(range, in: payload, to: &output)
            }
            if !isTold, text == .subject {
                // An answer must name its person.
                throw Problem(
                    .rejectedToken(.malformedClaim),
                    "The claim sub is longer than \(AuthFieldValue.byteLimit) bytes.",
                    claim: "sub"
                )
            }
        }
    }
}

/// What a gateway asks for beyond a good token: `?permissions=email,user_birthday` and `?app_id=…`.
///
/// Both only narrow what is accepted, and the first of each name counts. A parameter of another name is refused, since a
/// misspelt one would demand nothing. Parameters after `original` are ignored: a gateway can append there whatever its
/// client asked for.
struct AuthDemand {
    /// The one app the token must be for; empty for any configured one.
    private(set) var appID: [UInt8] = []
    private var permissions = PermissionSet(rawValue: 0)

    /// Reads the query of a request. A demand that no token can fulfil, or that is empty, is 403, an unknown parameter 400:
    /// a 401 would log people out for a mistake in the gateway's configuration.
    init(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) throws(Problem) {
        guard let query = head.query else { return }
        guard let parameters = FormParameters(bytes, query, endingAt: "original") else {
            throw Problem(.insufficientScope, "The query is malformed, so what it demands cannot be shown.")
        }
        let known = ["permissions", "app_id"]
        guard parameters.count(of: "permissions") + parameters.count(of: "app_id") == parameters.count else {
            let name = parameters.firstName(except: known) ?? ""
            throw Problem(
                .invalidRequest,
                RequestMistake.sentence(name, "The query's parameter", "is unknown", known: known + ["original"]),
                hint:
                    "Use permissions, app_id and original alone; a gateway that appends its client's query needs ?original= at "
                    + "the end of its path."
            )
        }
        if let appID = parameters.first("app_id") {
            // The verdict would read an empty one as none.
            guard !appID.isEmpty else { throw Self.unknownApp }
            self.appID = appID
        }
        if let list = parameters.first("permissions") { permissions = try Self.permissions(list) }
    }

    static var unknownApp: Problem {
        Problem(.insufficientScope, "The app_id in the query is not a configured app's.")
    }

    private static func permissions(_ list: [UInt8]) throws(Problem) -> PermissionSet {
        var permissions: PermissionSet = []
        for name in list.split(whereSeparator: { $0 == UInt8(ascii: ",") || $0 == ASCII.space }) {
            guard let permission = Permission(name: Array(name).span) else {
                throw RequestMistake.unknownPermission(.insufficientScope, String(decoding: name, as: UTF8.self))
            }
            permissions.insert(PermissionSet(permission))
        }
        guard !permissions.isEmpty else {
            throw Problem(.insufficientScope, "The query demands permissions and names none.")
        }
        return permissions
    }

    /// Refuses a token that does not show every permission asked for; one that yields no claim can never be shown.
    func require(_ claims: VerifiedClaims) throws(Problem) {
        let missing = permissions.subtracting(claims.satisfiedPermissions)
        guard !missing.isEmpty else { return }
        let names = missing.permissions.map(\.rawValue).joined(separator: ", ")
        throw Problem(
            .insufficientScope,
            "The token shows no claim of: \(names).",
            scope: permissions.permissions.map(\.rawValue).joined(separator: " ")
        )
    }
}
