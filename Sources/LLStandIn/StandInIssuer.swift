internal import LLBytes
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
    package let conditions = Locked(Conditions())
    let graph: StandInGraph
    /// The requests that wait for the service's answer to a callback.
    let callbacks = BackgroundJobs<Void, StandInAnswer>(capacity: callbackLimit)
    let client = HTTPSClient()
    private let maxAgeSeconds: Int
    /// Answers a request that may not be served, and returns true.
    private let refuses: @Sendable (inout HTTPExchange, Span<UInt8>) -> Bool
    private let server = Locked<HTTPServer?>(nil)

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

    /// - Parameter front: Gets each request first.
    package func start(
        at address: SocketAddress,
        behind front: @escaping @Sendable (StandInIssuer) -> any HTTPRequestHandler
    ) throws(SocketError) {
        let listener = HTTPServerConfiguration(address: .network(address), workerCount: 1)
        let server = HTTPServer(configuration: listener) { _ in front(self) }
        self.server.withLock { $0 = server }
        try server.start()
    }

    /// The address it listens on, once started.
    package var address: SocketAddress? { server.withLock { $0 }?.localAddress?.network }

    package func stop() {
        client.cancel()
        server.withLock { $0 }?.stop(drainDelay: .zero, grace: .seconds(1))
    }

    /// A token in Facebook's format with these claims (the text of a JSON object), signed by the newest key.
    /// - Parameter statuses: Permissions that the token does not show, with their status.
    func token(claims: [UInt8], statuses: [String: String] = [:], now: Int64) throws -> String {
        let payload = try template.payload(claims: claims, now: now)
        graph.recordLogin(payload: payload, statuses: statuses)
        return try keys.published[0].mint(payload: payload)
    }

    /// The materials of the catalogue's tokens for a login of now.
    package func workshop(nonce: String) throws(OpenSSLError) -> CatalogueWorkshop {
        CatalogueWorkshop(template: template, keys: try keys.catalogueMinters(), nonce: nonce, now: now)
    }

    private var now: Int64 { conditions.withLock(\.time) ?? WallClock.unixSeconds() }

    /// Answers the JWK Set with 503 for this time, as in an outage at Facebook.
    package func beginOutage(_ time: Duration) { conditions.withLock { $0.outageEnd = MonotonicClock.now() + time } }

    private static let keySetPath = "/.well-known/oauth/openid/jwks"
    /// The greatest body, in bytes: a token of 32 KiB, and half of that for the other members.
    private static let bodyByteLimit = 49_152

    typealias Handler = @Sendable (StandInIssuer, StandInRequest) throws -> StandInAnswer

    private static let reads: [String: Handler] = [
        "/.well-known/openid-configuration": { $0.discovery($1) }, keySetPath: { $0.keySet($1) },
    ]

    /// The answers to `POST`, besides those at ``StandInRequest/callback``.
    private static let posts: [String: Handler] = [
        "/platform/uninstall": { $0.graph.uninstall($1, keys: $0.keys) },
        "/refresh": { try $0.refresh($1) },
        "/clock": { try $0.setClock($1.body) }, "/faults": { try $0.setFaults($1.body) },
        "/proofs": { try $0.proof($1) },
        "/rotate": { issuer, _ in
            try issuer.keys.rotate()
            return .object([("key_ids", FacebookJSON.list(issuer.keys.published.map(\.keyID)))])
        },
        "/access-tokens": { issuer, request in
            let (fate, appID) = (request.queryText, issuer.template.audience)
            let token = try issuer.graph.mintAccessToken(request.body, fate: fate, appID: appID, now: request.now)
            return .object([("access_token", FacebookJSON.string(token))])
        },
        "/tokens": { issuer, request in
            let token = try issuer.token(claims: request.body, statuses: request.statuses, now: request.now)
            return .object([("id_token", FacebookJSON.string(token))])
        },
    ]

    package func attach(_ waker: @escaping RequestWaker) { callbacks.attach(waker) }

    package func didAbandon(_ request: ParkedRequest) { callbacks.abandon(request) }

    package func receiveHead(_ exchange: inout HTTPExchange, bytes: Span<UInt8>) -> HeadDecision {
        if refuses(&exchange, bytes) { return .respond }
        return bytes.text(exchange.head.path).hasPrefix(Self.keySetPath)
            ? .ignoreBody : .readBody(atMost: Self.bodyByteLimit)
    }

    package func receiveRequest(_ exchange: inout HTTPExchange, bytes: Span<UInt8>) -> RequestDecision {
        let answer: StandInAnswer
        do {
            answer = try self.answer(StandInRequest(exchange, bytes, now: now))
        } catch {
            answer = error as? StandInAnswer ?? .text(error is StandInRefusal ? 400 : 500, "\(error)")
        }
        return answer.send(in: &exchange)
    }

    private func answer(_ request: StandInRequest) throws -> StandInAnswer {
        let read = Self.reads[request.name]
        if let handler = read ?? Self.posts[request.name] ?? request.callback {
            let isReading = [.get, .head].contains(request.method)
            if read == nil ? request.method == .post : isReading { return try handler(self, request) }
            return .text(405, "method not allowed", [("Allow", read == nil ? "POST" : "GET, HEAD")])
        }
        // A version may stand before Facebook's paths.
        let place = request.path.split(separator: "/").drop { $0.first == "v" }.joined(separator: "/")
        switch (request.method, place) {
        case (.get, "dialog/oauth"): return try answerDialog(request)
        case (.get, "me"): return try graph.me(request)
        case (.get, "oauth/access_token_info"): return try graph.accessTokenInfo(request)
        case (.get, "oauth/access_token"): return try exchange(request)
        case (.get, "debug_token"):
            return graph.debug(request.query["input_token"], asking: try graph.app(request), now: request.now)
        default: return try answerLogin(request) ?? graph.answerAboutPerson(request) ?? .text(404, "not found")
        }
    }

    /// A DPoP proof of this issuer's device for the request that the body names, and the thumbprint of the device's
    /// key. A token is bound to that key by `{"cnf": {"jkt": "…"}}`.
    private func proof(_ request: StandInRequest) throws -> StandInAnswer {
        guard let object = JSONObject(request.body), let token = object.string("id_token"),
            let method = object.string("method"), let url = object.string("url")
        else { throw StandInRefusal("the body must be a JSON object with id_token, method and url") }
        let moment = object.integer("iat") ?? request.now
        let proof = try keys.device.mint(method: method, url: url, token: token, issuedAt: moment)
        let thumbprint = try keys.device.thumbprint()
        return .object([("proof", FacebookJSON.string(proof)), ("key_thumbprint", FacebookJSON.string(thumbprint))])
    }

    /// Refreshes a token as Facebook does for the SDK: in the background with the login's nonce, or by `?way=silent`
    /// with a new one. After a revocation the person has to log in again.
    private func refresh(_ request: StandInRequest) throws -> StandInAnswer {
        let way = request.query["way"] ?? "direct"
        guard way == "direct" || way == "silent" else { throw StandInRefusal("way is direct or silent") }
        guard let token = JSONObject(request.body)?.string("id_token") else {
            throw StandInRefusal("the body must be a JSON object with the member id_token")
        }
        guard let payload = keys.payload(of: Array(token.utf8)) else {
            throw StandInRefusal("id_token is none of this issuer's, or its key was rotated out")
        }
        guard let revoked = graph.revokedClaims(ofLogin: payload) else {
            return StandInAnswer(status: 400, body: "{\"error\":\"login_required\"}")
        }
        // The refreshed token comes without an access token, so it has no hash of one.
        let renewed = ["jti", "iat", "exp", "at_hash"] + (way == "direct" ? [] : ["nonce"])
        let (dropped, nonce) = (revoked.union(renewed), way == "direct" ? "" : Self.uuid())
        let refreshed = try template.payload(claims: payload, dropping: dropped, nonce: nonce, now: request.now)
        let fresh = try keys.published[0].mint(payload: refreshed)
        return .object([("id_token", FacebookJSON.string(fresh))])
    }

    /// A random UUID in the SDK's spelling (RFC 9562 section 5.4).
    package static func uuid() -> String {
        let parts = [8, 4, 3, 3, 12].map { String.random($0, of: "0123456789ABCDEF") }
        return "\(parts[0])-\(parts[1])-4\(parts[2])-\(String.random(1, of: "89AB"))\(parts[3])-\(parts[4])"
    }

    /// The members of Facebook's own document, with this issuer's addresses.
    private func discovery(_ request: StandInRequest) -> StandInAnswer {
        let host = request.fields["host"] ?? ""
        let body = """
            {"issuer":"\(template.issuer)","authorization_endpoint":"http://\(host)/dialog/oauth/",\
            "jwks_uri":"http://\(host)/.well-known/oauth/openid/jwks/",\
            "response_types_supported":["id_token","token id_token"],\
            "subject_types_supported":["pairwise"],"id_token_signing_alg_values_supported":["RS256"],\
            "claims_supported":["iss","aud","sub","iat","exp","jti","nonce","at_hash","name","given_name","middle_name",\
            "family_name","email","picture","user_friends","user_birthday","user_age_range","user_link","user_hometown",\
            "user_location","user_gender"]}
            """
        return StandInAnswer(body: body)
    }

    /// The JWK Set with a strong entity tag, so that an unchanged one is not sent again (RFC 9110 section 8.8.3).
    private func keySet(_ request: StandInRequest) -> StandInAnswer {
        let conditions = conditions.withLock(\.self)
        let moment = request.context.firstByteAt + conditions.delay
        if request.context.now < moment { return StandInAnswer(pause: moment) }
        guard MonotonicClock.now() >= conditions.outageEnd else { return .text(503, "away") }
        let published = keys.published
        let tag = "\"" + published.map { String($0.keyID.prefix(16)) }.joined(separator: "-") + "\""
        let kept: [StandInAnswer.Field] = [("ETag", tag), ("Cache-Control", "public, max-age=\(maxAgeSeconds)")]
        if request.fields["if-none-match"] == tag { return StandInAnswer(status: 304, fields: kept) }
        let text = String(decoding: TokenMinter.jwkSet(published), as: UTF8.self)
        return StandInAnswer(fields: kept + [("Content-Type", "application/json")], body: text)
    }

    /// Answers `GET /login`, and `GET /login/NAME` for a token of the catalogue, with a body that is ready for the
    /// service's `POST /verify`; nil if the request is for another part.
    private func answerLogin(_ request: StandInRequest) throws -> StandInAnswer? {
        guard [.get, .head].contains(request.method), request.path == "/login" || request.path.hasPrefix("/login/")
        else { return nil }
        let name = request.path.dropFirst("/login/".count)
        guard let entry = CatalogueEntry.named(name.isEmpty ? "good" : String(name)) else { return nil }
        let workshop = try workshop(nonce: "n-" + .random(16))
        let token = try entry.token(workshop)
        graph.recordLogin(payload: Array(try workshop.payload().utf8), statuses: [:])
        let members = [("id_token", token)] + entry.requestMembers(workshop)
        return .object(members.map { ($0.0, FacebookJSON.string($0.1)) })
    }
}

/// The conditions that a test sets: the time, and faults of the JWK Set. Tokens are signed whatever they are.
package struct Conditions: Sendable {
    /// A time that a test has set, which stands still; nil for the system's clock.
    fileprivate var time: Int64?
    /// Until this moment the JWK Set is answered with 503, as in an outage at Facebook.
    package var outageEnd = MonotonicInstant(nanoseconds: 0)
    /// The time after which the JWK Set is answered.
    fileprivate var delay = Duration.zero
}

extension StandInIssuer {
    /// The longest fault in seconds: it ends by itself if the test that began it is gone.
    private static let longestFault: Int64 = 3_600

    /// `POST /clock`: `{"now": N}` stops the clock at a time, and `{}` sets it to the system's.
    private func setClock(_ body: [UInt8]) throws(StandInRefusal) -> StandInAnswer {
        guard let object = JSONObject(body), object.members.allSatisfy({ $0.name == "now" }) else {
            throw StandInRefusal(#"the body must be {"now": SECONDS_SINCE_1970}, or {} for the system's clock"#)
        }
        let time = object.integer("now")
        guard object.members.isEmpty || (0...253_402_300_799).contains(time ?? -1) else {
            throw StandInRefusal("now must be a whole number of seconds since 1970")
        }
        conditions.withLock { $0.time = time }
        return .object([("now", "\(now)")])
    }

    /// `POST /faults`: `{"outage_seconds": N, "delay_milliseconds": N}`; a member that is left out ends its fault.
    private func setFaults(_ body: [UInt8]) throws(StandInRefusal) -> StandInAnswer {
        let names: Set = ["outage_seconds", "delay_milliseconds"]
        guard let object = JSONObject(body), names.isSuperset(of: object.members.map(\.name)) else {
            throw StandInRefusal(#"the body must be {"outage_seconds": N, "delay_milliseconds": N}, or {}"#)
        }
        let (outage, delay) = (object.integer("outage_seconds") ?? 0, object.integer("delay_milliseconds") ?? 0)
        guard (0...Self.longestFault).contains(outage), (0...Self.longestFault * 1_000).contains(delay) else {
            throw StandInRefusal("a fault lasts 0 to \(Self.longestFault) s")
        }
        beginOutage(.seconds(outage))
        conditions.withLock { $0.delay = .milliseconds(delay) }
        return .object([("outage_seconds", "\(outage)"), ("delay_milliseconds", "\(delay)")])
    }
}

/// The stand-in issuer's signing keys. As at Facebook, exactly two are published, and the newest signs.
package final class IssuerKeyRing: Sendable {
    /// The two published ones, then the one that is never published once it is made.
    private let minters: Locked<[TokenMinter]>
    /// The device that makes the proofs of `POST /proofs`.
    let device: ProofMinter

    package init() throws(OpenSSLError) {
        device = ProofMinter(key: try Chance.key(.p256))
        minters = Locked([try TokenMinter.make(), try TokenMinter.make()])
    }

    package var published: [TokenMinter] { minters.withLock { Array($0.prefix(2)) } }

    /// The payload of a token that one of the published keys signed; nil for any other.
    func payload(of token: [UInt8]) -> [UInt8]? {
        guard let parts = JWSCompactSerialization(splitting: token.span) else { return nil }
        var payload: [UInt8] = []
        var signature: [UInt8] = []
        guard Base64URL.decode(token.span, parts.payload, into: &payload),
            Base64URL.decode(token.span, parts.signature, into: &signature),
            // The signature scheme is deterministic, so an equal second signature verifies the first.
            published.contains(where: { (try? $0.key.signature(for: Array(token[parts.signingInput]))) == signature })
        else { return nil }
        return payload
    }

    /// The keys for the tokens of a catalogue; the last one is never published, and made at the first call.
    package func catalogueMinters() throws(OpenSSLError) -> CatalogueWorkshop.Minters {
        try minters.withLock { minters throws(OpenSSLError) in
            if minters.count == 2 { minters.append(try TokenMinter.make()) }
            return (minters[0], minters[1], minters[2])
        }
    }

    package func rotate() throws(OpenSSLError) {
        let newest = try TokenMinter.make()
        minters.withLock { $0[..<2] = [newest, $0[0]] }
    }
}
