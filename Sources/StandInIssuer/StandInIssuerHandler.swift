internal import Bytes
package import HTTP1
package import HTTPServer
internal import JOSE
internal import OpenSSL
internal import Sockets

/// Answers the stand-in issuer's requests.
package final class StandInIssuerHandler: HTTPRequestHandler {
    /// The paths, with and without their trailing slash.
    private enum Route {
        case discovery, keySet, tokens, accessTokens, refresh, proofs, rotate, uninstall, callback, unmatched

        init(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) {
            let path = StandInIssuerHandler.text(head.path, bytes)
            switch path.hasSuffix("/") ? path.dropLast() : path[...] {
            case "/.well-known/openid-configuration": self = .discovery
            case "/.well-known/oauth/openid/jwks": self = .keySet
            case "/tokens": self = .tokens
            case "/refresh": self = .refresh
            case "/access-tokens": self = .accessTokens
            case "/proofs": self = .proofs
            case "/rotate": self = .rotate
            case "/platform/uninstall": self = .uninstall
            default: self = CallbackPath(path) == nil ? .unmatched : .callback
            }
        }

        var isForReading: Bool { self == .discovery || self == .keySet }
    }

    let graph: StandInGraph
    let callbacks: StandInCallbacks
    let keys: IssuerKeyRing
    let template: ClaimsTemplate
    private let configuration: StandInIssuer.Configuration

    package init(
        keys: IssuerKeyRing,
        template: ClaimsTemplate,
        graph: StandInGraph,
        callbacks: StandInCallbacks,
        configuration: StandInIssuer.Configuration
    ) {
        self.graph = graph
        self.callbacks = callbacks
        self.keys = keys
        self.template = template
        self.configuration = configuration
    }

    package func attach(_ waker: RequestWaker) { callbacks.jobs.attach(waker) }

    package func didAbandon(_ request: ParkedRequest) { callbacks.jobs.abandon(request) }

    package func receiveHead(
        _ head: borrowing RequestHead,
        bytes: Span<UInt8>,
        context: RequestContext,
        response: inout HTTPResponse
    ) -> HeadDecision {
        let route = Route(head, bytes)
        guard route != .unmatched else {
            let isAnswered = answerGraph(head, bytes, &response) || answerLogin(head, bytes, &response)
            return isAnswered ? .respond : refuse(404, "not found", &response)
        }
        guard (head.method == .get || head.method == .head) == route.isForReading,
            route.isForReading || head.method == .post
        else {
            response.addField(route.isForReading ? "Allow: GET, HEAD" : "Allow: POST")
            return refuse(405, "method not allowed", &response)
        }
        switch route {
        case .discovery: writeDiscovery(head, bytes, &response)
        case .keySet: writeKeySet(head, bytes, &response)
        default: return .readBody(atMost: 16_384)
        }
        return .respond
    }

    package func receiveRequest(
        _ head: borrowing RequestHead,
        bytes: Span<UInt8>,
        body: Span<UInt8>,
        context: RequestContext,
        response: inout HTTPResponse
    ) -> RequestDecision {
        do {
            let route = Route(head, bytes)
            if let path = CallbackPath(Self.text(head.path, bytes)) {
                let query = Self.query(head, bytes)
                return callBack(path, query, context, &response)
            } else if route == .uninstall {
                let form = Self.text(0..<body.count, body)
                write(graph.uninstall(form: form, keys: keys, now: WallClock.unixSeconds()), &response)
            } else if route == .refresh {
                write(try refresh(head, bytes, body), &response)
            } else if route == .proofs {
                json(try proof(body), &response)
            } else if route == .rotate {
                try keys.rotate()
                let ids = keys.published.map { "\"\($0.keyID)\"" }.joined(separator: ",")
                json("{\"key_ids\":[\(ids)]}", &response)
            } else if route == .accessTokens {
                let query = head.query.map { Self.text($0, bytes) } ?? ""
                let token = try graph.mintAccessToken(
                    Array(Self.text(0..<body.count, body).utf8),
                    fate: query,
                    appID: template.audience,
                    now: WallClock.unixSeconds()
                )
                json("{\"access_token\":\"\(token)\"}", &response)
            } else {
                let minter = keys.current
                let payload = try template.payload(
                    claims: Array(Self.text(0..<body.count, body).utf8),
                    now: WallClock.unixSeconds()
                )
                let token = try minter.mint(header: minter.header, payload: payload)
                graph.recordLogin(payload: payload, statuses: Self.statuses(head, bytes))
                json("{\"id_token\":\"\(token)\"}", &response)
            }
        } catch let error as ClaimsTemplateError {
            _ = refuse(400, error.description, &response)
        } catch {
            _ = refuse(500, "\(error)", &response)
        }
        return .respond
    }

    /// A DPoP proof of the device that goes with this issuer, for the request that the body names, and the thumbprint of its
    /// key, to which `{"cnf": {"jkt": "…"}}` binds a token.
    private func proof(_ body: Span<UInt8>) throws -> String {
        var document = JSONDocument()
        guard (try? document.parse(body)) != nil,
            let token = document.member("id_token", of: document.root, in: body), document.isString(token),
            let method = document.member("method", of: document.root, in: body), document.isString(method),
            let url = document.member("url", of: document.root, in: body), document.isString(url)
        else {
            throw ClaimsTemplateError(description: "the body must be a JSON object with id_token, method and url")
        }
        let moment = document.member("iat", of: document.root, in: body).flatMap { document.integer($0, in: body) }
        let proof = try keys.device.mint(
            method: document.string(method, in: body),
            url: document.string(url, in: body),
            token: document.string(token, in: body),
            issuedAt: moment ?? WallClock.unixSeconds()
        )
        return "{\"proof\":\"\(proof)\",\"key_thumbprint\":\"\(try keys.device.thumbprint())\"}"
    }

    /// Refreshes a token as the SDK has Facebook do it: in the background with the login's nonce, or by `?way=silent` with
    /// one of its own. A person whose login was revoked has to log in anew.
    private func refresh(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        _ body: Span<UInt8>
    ) throws -> StandInGraph.Answer {
        let query = Self.query(head, bytes)
        let way = query["way"] ?? "direct"
        guard way == "direct" || way == "silent" else {
            throw ClaimsTemplateError(description: "way is direct or silent")
        }
        var document = JSONDocument()
        guard (try? document.parse(body)) != nil,
            let token = document.member("id_token", of: document.root, in: body), document.isString(token)
        else { throw ClaimsTemplateError(description: "the body must be a JSON object with the member id_token") }
        guard let payload = keys.payload(of: Array(document.string(token, in: body).utf8)) else {
            throw ClaimsTemplateError(description: "id_token is none of this issuer's, or its key was rotated out")
        }
        guard let revoked = graph.revokedClaims(ofLogin: payload) else {
            return StandInGraph.Answer(status: 400, body: "{\"error\":\"login_required\"}")
        }
        let minter = keys.current
        let refreshed = try template.payload(
            refreshing: payload,
            keepsNonce: way == "direct",
            without: revoked,
            now: WallClock.unixSeconds()
        )
        let minted = try minter.mint(header: minter.header, payload: refreshed)
        return StandInGraph.Answer(status: 200, body: "{\"id_token\":\"\(minted)\"}")
    }

    /// The members of Facebook's own document, with this issuer's addresses.
    private func writeDiscovery(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        _ response: inout HTTPResponse
    ) {
        var base = "http://"
        if let authority = head.authority { for index in authority { base.unicodeScalars.append(.init(bytes[index])) } }
        json(
            """
            {"issuer":"\(configuration.issuer)","authorization_endpoint":"\(base)/dialog/oauth/",\
            "jwks_uri":"\(base)/.well-known/oauth/openid/jwks/","response_types_supported":["id_token","token id_token"],\
            "subject_types_supported":["pairwise"],"id_token_signing_alg_values_supported":["RS256"],\
            "claims_supported":["iss","aud","sub","iat","exp","jti","nonce","at_hash","name","given_name","middle_name",\
            "family_name","email","picture","user_friends","user_birthday","user_age_range","user_link","user_hometown",\
            "user_location","user_gender"]}
            """,
            &response
        )
    }

    /// The JWK Set with a strong entity tag, so that an unchanged one need not travel (RFC 9110 section 8.8.3).
    private func writeKeySet(_ head: borrowing RequestHead, _ bytes: Span<UInt8>, _ response: inout HTTPResponse) {
        guard !keys.isAway else { return _ = refuse(503, "away", &response) }
        let published = keys.published
        let tag = "\"" + published.map { String($0.keyID.prefix(16)) }.joined(separator: "-") + "\""
        response.addField("ETag", tag)
        response.addField("Cache-Control", "public, max-age=\(configuration.maxAgeSeconds)")
        if let known = head.value(of: "if-none-match", in: bytes), Self.equal(bytes, known, tag) {
            response.status = 304
            return
        }
        response.addField("Content-Type: application/json")
        response.body = TokenMinter.jsonWebKeySet(published)
    }

    private static func equal(_ bytes: Span<UInt8>, _ range: Range<Int>, _ text: String) -> Bool {
        range.count == text.utf8.count && zip(range, text.utf8).allSatisfy { bytes[$0] == $1 }
    }

    func json(_ text: String, _ response: inout HTTPResponse) {
        response.addField("Content-Type: application/json")
        response.body.append(contentsOf: text.utf8)
    }

    func refuse(_ status: UInt16, _ reason: String, _ response: inout HTTPResponse) -> HeadDecision {
        response.status = status
        response.addField("Content-Type: text/plain; charset=utf-8")
        response.body.append(contentsOf: "\(reason)\n".utf8)
        return .respond
    }
}

extension StandInIssuerHandler {
    /// Answers `GET /login`, and `GET /login/NAME` for a token of the catalogue, with a body that is ready for the
    /// service's `POST /verify`; false where the request is for something else.
    func answerLogin(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        _ response: inout HTTPResponse
    ) -> Bool {
        let path = Self.text(head.path, bytes)
        guard head.method == .get || head.method == .head, path == "/login" || path.hasPrefix("/login/") else {
            return false
        }
        let name = path.dropFirst("/login/".count)
        guard let entry = CatalogueEntry.named(name.isEmpty ? "good" : String(name)) else { return false }
        do {
            let nonce = "n-" + Hexadecimal.encode(try RandomBytes.make(count: 8))
            let workshop = try CatalogueWorkshop(
                template: template,
                keys: keys,
                nonce: nonce,
                now: WallClock.unixSeconds()
            )
            let token = try entry.token(workshop)
            graph.recordLogin(payload: Array(try workshop.payload().utf8), statuses: [:])
            let members = [("id_token", token)] + entry.requestMembers(workshop).map { ($0.name, $0.value) }
            json(FacebookJSON.object(members.map { ($0.0, FacebookJSON.string($0.1)) }), &response)
        } catch {
            _ = refuse(500, "\(error)", &response)
        }
        return true
    }
}
