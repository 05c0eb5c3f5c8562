internal import FoundationEssentials
package import LLHTTP
package import LLJOSE
@_exported public import LimitedLoginTesting

/// A small issuer that stands in for Facebook on a machine without network: discovery, JWK Set, tokens on demand and
/// key rotation. It also stands in for Graph, as far as permissions are concerned. It is only for development and
/// tests: it signs every request.
package final class StandInIssuer: HTTPRequestHandler, Sendable {
    package let keys: IssuerKeyRing
    package let template: ClaimsTemplate
    /// The service's address, such as `http://127.0.0.1:8080`; nil until it listens.
    package let service = Locked<String?>(nil)
    package let conditions = Conditions()
    let graph: StandInGraph
    /// The requests that wait for the service's answer to a callback.
    let callbacks = BackgroundJobs<Void, StandInGraph.Answer>(capacity: callbackLimit)
    let client = HTTPSClient()
    private let maxAgeSeconds: Int
    /// Answers a request that may not be served, and returns true.
    private let refuses: @Sendable (inout HTTPExchange, Span<UInt8>) -> Bool
    /// Nil until the server is started.
    private let server = Locked<HTTPServer?>(nil)

    /// - Parameters:
    ///   - issuer: The default of `iss` in its tokens.
    ///   - audience: The default of `aud` in its tokens.
    ///   - maxAgeSeconds: The `max-age` of the JWK Set.
    ///   - appSecret: The secret of every app at the stand-in's Graph.
    ///   - refuses: Answers a request that may not be served, and returns true; by default every request may.
    package init(
        issuer: String = "https://www.facebook.com",
        audience: String,
        maxAgeSeconds: Int = 3600,
        appSecret: String,
        refuses: @escaping @Sendable (inout HTTPExchange, Span<UInt8>) -> Bool = { _, _ in false }
    ) throws(OpenSSLError) {
        self.refuses = refuses
        keys = try IssuerKeyRing()
        template = ClaimsTemplate(issuer: issuer, audience: audience)
        graph = StandInGraph(appSecret: appSecret)
        self.maxAgeSeconds = maxAgeSeconds
    }

    /// Binds and serves; ``address`` then has the address with its real port.
    /// - Parameter front: Answers some requests in place of the issuer.
    package func start(
        at address: SocketAddress,
        behind front: @escaping @Sendable (StandInIssuer) -> any HTTPRequestHandler
    ) throws(SocketError) {
        let listener = HTTPServerConfiguration(addresses: [.network(address)], workerCount: 1)
        let server = HTTPServer(configuration: listener) { _ in front(self) }
        self.server.withLock { $0 = server }
        try server.start()
    }

    /// The address it listens on, once started.
    package var address: SocketAddress? { server.withLock { $0 }?.localAddresses.first?.network }

    package func stop() {
        client.cancel()
        server.withLock { $0 }?.stop(drainDelay: .zero, grace: .seconds(1))
    }

    /// A token in Facebook's format with these claims (the text of a JSON object), signed by the newest key.
    /// - Parameter statuses: Permissions that the token does not show, with their status.
    package func token(claims: String, statuses: [String: String] = [:], now: Int64) throws -> String {
        let payload = try template.payload(claims: Array(claims.utf8), now: now)
        graph.recordLogin(payload: payload, statuses: statuses)
        return try mint(payload)
    }

    /// The materials of the catalogue's tokens for a login of now.
    package func workshop(
        nonce: String,
        audience: String? = nil,
        person: [FacebookJSON.Member] = CatalogueWorkshop.jane
    ) throws(OpenSSLError) -> CatalogueWorkshop {
        CatalogueWorkshop(
            template: template,
            keys: try keys.catalogueMinters(),
            nonce: nonce,
            now: conditions.now(),
            audience: audience,
            person: person
        )
    }

    private func mint(_ payload: [UInt8]) throws -> String {
        let minter = keys.published[0]
        return try minter.mint(header: minter.header, payload: payload)
    }

    private static let discoveryPath = "/.well-known/openid-configuration"
    private static let keySetPath = "/.well-known/oauth/openid/jwks"
    /// The greatest body, in bytes: a token of 32 KiB, and half of that for the other members.
    private static let bodyByteLimit = 49_152

    /// The paths that accept `POST`, besides those of ``callback(_:)``.
    private static let postPaths: Set = [
        "/tokens", "/refresh", "/access-tokens", "/proofs", "/rotate", "/platform/uninstall", "/clock", "/faults",
    ]

    /// The path without its trailing slash.
    private static func name(of path: String) -> String { path.hasSuffix("/") ? String(path.dropLast()) : path }

    package func attach(_ waker: @escaping RequestWaker) { callbacks.attach(waker) }

    package func didAbandon(_ request: ParkedRequest) { callbacks.abandon(request) }

    package func receiveHead(_ exchange: inout HTTPExchange, bytes: Span<UInt8>) -> HeadDecision {
        if refuses(&exchange, bytes) { return .respond }
        let path = bytes.text(exchange.head.path)
        let name = Self.name(of: path)
        let isForReading = name == Self.discoveryPath || name == Self.keySetPath
        guard isForReading || Self.postPaths.contains(name) || Self.callback(path) != nil else {
            let isAnswered =
                answerGraph(&exchange, bytes) || answerLogin(&exchange, bytes) || answerDialog(&exchange, bytes)
            return isAnswered ? .respond : refuse(404, "not found", &exchange.response)
        }
        let method = exchange.head.method
        guard isForReading ? method == .get || method == .head : method == .post else {
            exchange.response.addField(isForReading ? "Allow: GET, HEAD" : "Allow: POST")
            return refuse(405, "method not allowed", &exchange.response)
        }
        guard isForReading else { return .readBody(atMost: Self.bodyByteLimit) }
        if name == Self.keySetPath { return .ignoreBody }
        writeDiscovery(exchange.head.authority.map { bytes.text($0) } ?? "", &exchange.response)
        return .respond
    }

    package func receiveRequest(_ exchange: inout HTTPExchange, bytes: Span<UInt8>) -> RequestDecision {
        let path = bytes.text(exchange.head.path)
        let name = Self.name(of: path)
        if name == Self.keySetPath {
            let moment = exchange.context.firstByteAt + conditions.delay
            if exchange.context.now < moment { return .park(until: moment) }
            writeKeySet(exchange.head, bytes, &exchange.response)
            return .respond
        }
        let query = FormText.query(exchange.head, bytes)
        if let (userID, name) = Self.callback(path) { return callBack(name, userID, query, &exchange) }
        let fate = exchange.head.query.map { bytes.text($0) } ?? ""
        let content = exchange.body.map { bytes[$0] }
        write(&exchange.response) { try answer(name, content, query, fate: fate, now: conditions.now()) }
        return .respond
    }

    /// Answers a `POST` request.
    private func answer(
        _ name: String,
        _ content: [UInt8],
        _ query: [String: String],
        fate: String,
        now: Int64
    ) throws -> StandInGraph.Answer {
        let text = String(decoding: content, as: UTF8.self)
        switch name {
        case "/platform/uninstall": return graph.uninstall(form: text, keys: keys, now: now)
        case "/refresh": return try refresh(content, way: query["way"] ?? "direct", now: now)
        case "/clock": return StandInGraph.Answer(body: try conditions.setClock(content))
        case "/faults": return StandInGraph.Answer(body: try conditions.setFaults(content))
        case "/proofs": return StandInGraph.Answer(body: try proof(content, now: now))
        case "/rotate":
            try keys.rotate()
            return StandInGraph.Answer(body: "{\"key_ids\":\(FacebookJSON.list(keys.published.map(\.keyID)))}")
        case "/access-tokens":
            let token = try graph.mintAccessToken(Array(text.utf8), fate: fate, appID: template.audience, now: now)
            return StandInGraph.Answer(body: "{\"access_token\":\"\(token)\"}")
        default:
            let token = try token(claims: text, statuses: FormText.statuses(query), now: now)
            return StandInGraph.Answer(body: "{\"id_token\":\"\(token)\"}")
        }
    }

    /// A DPoP proof of this issuer's device for the request that the body names, and the thumbprint of the device's
    /// key. A token is bound to that key by `{"cnf": {"jkt": "…"}}`.
    private func proof(_ body: [UInt8], now: Int64) throws -> String {
        guard let object = JSONObject(body), let token = object.string("id_token"),
            let method = object.string("method"), let url = object.string("url")
        else { throw StandInRefusal("the body must be a JSON object with id_token, method and url") }
        let moment = object.integer("iat") ?? now
        let proof = try keys.device.mint(method: method, url: url, token: token, issuedAt: moment)
        return "{\"proof\":\"\(proof)\",\"key_thumbprint\":\"\(try keys.device.thumbprint())\"}"
    }

    /// Refreshes a token as Facebook does for the SDK: in the background with the login's nonce, or by `?way=silent`
    /// with a new one. After a revocation the person has to log in again.
    private func refresh(_ body: [UInt8], way: String, now: Int64) throws -> StandInGraph.Answer {
        guard way == "direct" || way == "silent" else { throw StandInRefusal("way is direct or silent") }
        guard let object = JSONObject(body), let token = object.string("id_token") else {
            throw StandInRefusal("the body must be a JSON object with the member id_token")
        }
        guard let payload = keys.payload(of: Array(token.utf8)) else {
            throw StandInRefusal("id_token is none of this issuer's, or its key was rotated out")
        }
        guard let revoked = graph.revokedClaims(ofLogin: payload) else {
            return StandInGraph.Answer(status: 400, body: "{\"error\":\"login_required\"}")
        }
        // The refreshed token comes without an access token, so it has no hash of one.
        let renewed = ["jti", "iat", "exp", "at_hash"] + (way == "direct" ? [] : ["nonce"])
        let refreshed = try template.payload(
            claims: payload,
            dropping: revoked.union(renewed),
            nonce: way == "direct" ? "" : Self.uuid(),
            now: now
        )
        return StandInGraph.Answer(body: "{\"id_token\":\"\(try mint(refreshed))\"}")
    }

    /// A random UUID in the SDK's spelling (RFC 9562 section 5.4).
    package static func uuid() -> String {
        let parts = [8, 4, 3, 3, 12].map { String.random($0, of: "0123456789ABCDEF") }
        return "\(parts[0])-\(parts[1])-4\(parts[2])-\(String.random(1, of: "89AB"))\(parts[3])-\(parts[4])"
    }

    /// The members of Facebook's own document, with this issuer's addresses.
    private func writeDiscovery(_ authority: String, _ response: inout HTTPResponse) {
        let body = """
            {"issuer":"\(template.issuer)","authorization_endpoint":"http://\(authority)/dialog/oauth/",\
            "jwks_uri":"http://\(authority)/.well-known/oauth/openid/jwks/",\
            "response_types_supported":["id_token","token id_token"],\
            "subject_types_supported":["pairwise"],"id_token_signing_alg_values_supported":["RS256"],\
            "claims_supported":["iss","aud","sub","iat","exp","jti","nonce","at_hash","name","given_name","middle_name",\
            "family_name","email","picture","user_friends","user_birthday","user_age_range","user_link","user_hometown",\
            "user_location","user_gender"]}
            """
        write(StandInGraph.Answer(body: body), &response)
    }

    /// The JWK Set with a strong entity tag, so that an unchanged one is not sent again (RFC 9110 section 8.8.3).
    private func writeKeySet(_ head: borrowing RequestHead, _ bytes: Span<UInt8>, _ response: inout HTTPResponse) {
        guard MonotonicClock.now() >= conditions.outageEnd else { return _ = refuse(503, "away", &response) }
        let published = keys.published
        let tag = "\"" + published.map { String($0.keyID.prefix(16)) }.joined(separator: "-") + "\""
        response.addField("ETag", tag)
        response.addField("Cache-Control", "public, max-age=\(maxAgeSeconds)")
        if let known = head.value(of: "if-none-match", in: bytes), bytes.text(known) == tag {
            response.status = 304
            return
        }
        response.addField("Content-Type: application/json")
        response.body = TokenMinter.jwkSet(published)
    }

    func refuse(_ status: UInt16, _ reason: String, _ response: inout HTTPResponse) -> HeadDecision {
        response.status = status
        response.addField("Content-Type: text/plain; charset=utf-8")
        response.body.append(contentsOf: "\(reason)\n".utf8)
        return .respond
    }

    /// Answers `GET /login`, and `GET /login/NAME` for a token of the catalogue, with a body that is ready for the
    /// service's `POST /verify`; false if the request is for another part.
    private func answerLogin(_ exchange: inout HTTPExchange, _ bytes: Span<UInt8>) -> Bool {
        let (method, path) = (exchange.head.method, bytes.text(exchange.head.path))
        guard method == .get || method == .head, path == "/login" || path.hasPrefix("/login/") else {
            return false
        }
        let name = path.dropFirst("/login/".count)
        guard let entry = CatalogueEntry.named(name.isEmpty ? "good" : String(name)) else { return false }
        write(&exchange.response) {
            let workshop = try workshop(nonce: "n-" + .random(16))
            let token = try entry.token(workshop)
            graph.recordLogin(payload: Array(try workshop.payload().utf8), statuses: [:])
            let members = [("id_token", token)] + entry.requestMembers(workshop)
            let texts = members.map { ($0.0, FacebookJSON.string($0.1)) }
            return StandInGraph.Answer(body: FacebookJSON.object(texts))
        }
        return true
    }
}

/// The conditions that a test sets: the time, and faults of the JWK Set. Tokens are signed whatever they are.
package final class Conditions: Sendable {
    /// The longest fault: it ends by itself if the test that began it is gone.
    private static let longestSeconds: Int64 = 3_600

    private let state = Locked((time: Int64?.none, outageEnd: MonotonicInstant(nanoseconds: 0), delay: Duration.zero))

    /// Seconds since 1970: the system's clock, unless a test has set another time, which stands still.
    package func now() -> Int64 { state.withLock { $0.time } ?? WallClock.unixSeconds() }

    /// Until this moment the JWK Set is answered with 503, as in an outage at Facebook.
    package var outageEnd: MonotonicInstant {
        get { state.withLock { $0.outageEnd } }
        set { state.withLock { $0.outageEnd = newValue } }
    }

    /// The time after which the JWK Set is answered.
    var delay: Duration { state.withLock { $0.delay } }

    /// `POST /clock`: `{"now": N}` stops the clock at a time, and `{}` sets it to the system's.
    func setClock(_ body: [UInt8]) throws(StandInRefusal) -> String {
        guard let object = JSONObject(body), object.members.allSatisfy({ $0.name == "now" }) else {
            throw StandInRefusal(#"the body must be {"now": SECONDS_SINCE_1970}, or {} for the system's clock"#)
        }
        let time = object.integer("now")
        guard object.members.isEmpty || (0...253_402_300_799).contains(time ?? -1) else {
            throw StandInRefusal("now must be a whole number of seconds since 1970")
        }
        state.withLock { $0.time = time }
        return "{\"now\":\(now())}"
    }

    /// `POST /faults`: `{"outage_seconds": N, "delay_milliseconds": N}`; a member that is left out ends its fault.
    func setFaults(_ body: [UInt8]) throws(StandInRefusal) -> String {
        let names: Set = ["outage_seconds", "delay_milliseconds"]
        guard let object = JSONObject(body), names.isSuperset(of: object.members.map(\.name)) else {
            throw StandInRefusal(#"the body must be {"outage_seconds": N, "delay_milliseconds": N}, or {}"#)
        }
        let (outage, delay) = (object.integer("outage_seconds") ?? 0, object.integer("delay_milliseconds") ?? 0)
        guard (0...Self.longestSeconds).contains(outage), (0...Self.longestSeconds * 1_000).contains(delay) else {
            throw StandInRefusal("a fault lasts 0 to \(Self.longestSeconds) s")
        }
        state.withLock {
            $0.outageEnd = MonotonicClock.now() + .seconds(outage)
            $0.delay = .milliseconds(delay)
        }
        return "{\"outage_seconds\":\(outage),\"delay_milliseconds\":\(delay)}"
    }
}
