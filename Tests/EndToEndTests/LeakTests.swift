import Foundation
import LLHTTP
import LLJOSE
import LLStandIn
import LLTestSupport
import Testing

/// The secrets of one login, marked so that each is recognised anywhere.
private struct MarkedLogin {
    let number: Int
    let token: String
    let nonce: String
    /// The user's id in requests to Graph.
    let userID: String
    /// The texts that must not appear anywhere.
    let secrets: [String]
    /// A mark in the token's issuer, app or key ID. A refusal may show it to the caller; the log and the metrics may
    /// not.
    let technical = UUID().uuidString.replacing("-", with: "").lowercased()

    enum Fault: CaseIterable {
        case none, expired, early, audience, issuer, nonce, noSubject, unknownKey, signature, payload, header, notJSON
    }

    init(_ number: Int, _ fault: Fault) throws {
        self.number = number
        // The mark is random, so no part of it appears anywhere by chance.
        let mark = UUID().uuidString.replacing("-", with: "").lowercased()
        nonce = "nonce-\(mark)"
        userID = (0..<19).map { _ in "\(Int.random(in: 1...9))" }.joined()
        let now = WallClock.unixSeconds()
        var claims = MintedClaims(
            audience: RunningService.appID,
            subject: "7\(number)\(mark)",
            nonce: nonce,
            issuedAt: now
        )
        claims.name = "Name \(mark)"
        claims.givenName = "Given \(mark)"
        claims.email = "\(mark)@mail.example"
        claims.picture = "https://picture.example/\(mark)"
        claims.hometown = (id: "1", name: "Town \(mark)")
        claims.friendIDs = ["8\(number)"]
        switch fault {
        case .expired: (claims.issuedAt, claims.expiresAt) = (now - 9_000, now - 8_000)
        case .early: claims.issuedAt = now + 9_000
        case .audience: claims.audience = "aud-\(technical)"
        case .issuer: claims.issuer = "https://\(technical).example"
        case .nonce: claims.nonce = "other-\(mark)"
        case .noSubject: claims.subject = nil
        default: break
        }
        let unknown = TokenMinter(key: StandInKeys.previous.key, keyID: "kid-\(technical)")
        var minted = try (fault == .unknownKey ? unknown : StandInKeys.current).mint(claims)
        switch fault {
        case .signature: minted = String(minted.dropLast(8)) + "AAAAAAAA"
        case .payload: minted = minted.replacing(".", with: ".!", maxReplacements: 1)
        case .header: minted = "x" + minted
        case .notJSON:
            minted = try StandInKeys.current.mint(header: StandInKeys.current.header, payload: Array(mark.utf8))
        default: break
        }
        token = minted
        secrets = [mark, userID] + Self.encoded(mark) + minted.split(separator: ".").dropFirst().map(String.init)
    }

    /// The mark in base64url, for each position in a group of three bytes.
    private static func encoded(_ mark: String) -> [String] {
        (0..<3).map { offset in
            let whole = Data(mark.utf8.dropFirst(offset)).base64EncodedString()
            // The last group depends on the bytes after the mark.
            return String(whole.prefix(mark.utf8.count / 3 * 4 - 8))
        }
    }

    var body: String { #"{"id_token":"\#(token)","nonce":"\#(nonce)"}"# }
}

@Suite("Nothing leaks", .live)
struct LeakTests {
    /// Requests that carry a login's secrets, each in another place.
    private static func requests(_ login: MarkedLogin) -> [String] {
        let (token, nonce, body) = (login.token, login.nonce, login.body)
        let json = "Host: a\r\nContent-Type: application/json\r\nConnection: close\r\n"
        let form = json.replacing("application/json", with: "application/x-www-form-urlencoded")
        func post(_ body: String, _ fields: String = json, path: String = "/verify") -> String {
            "POST \(path) HTTP/1.1\r\n\(fields)Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
        }
        func get(_ target: String, _ fields: String = "", method: String = "GET") -> String {
            "\(method) \(target) HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\(fields)\r\n"
        }
        let bearer = "Authorization: Bearer \(token)\r\n"
        let user = "/users/\(login.userID)/permissions"
        // Each of these is sent twice, since only every second request comes from a known caller.
        let graph = [
            get(user), get(user + "?permissions=email&app_id=\(nonce)"), get(user + "?\(nonce)=1"),
            get(user + "/email", method: "DELETE"), get(user, method: "DELETE"), get("/users/\(nonce)/permissions"),
            get(user + "/\(nonce)", method: "DELETE"), get(user, "X-Nonce: \(nonce)\r\n", method: "POST"),
            post(#"{"id_token":"\#(token)"}"#, path: "/uninstall"), post(body, path: "/uninstall"),
            post(#"{"id_token":"\#(token)","app_id":"\#(nonce)"}"#, path: "/uninstall"),
            post(#"{"user_id":"\#(login.userID)"}"#, path: "/revocations"),
            post(#"{"user_id":"\#(nonce)"}"#, path: "/revocations"),
        ]
        return [
            post(body),
            post(#"{"id_token":"\#(token)","raw_nonce":"\#(nonce)"}"#),
            post(#"{"id_token":"\#(token)","subject":"\#(nonce)"}"#),
            post(#"{"id_token":"\#(token)"}"#),
            post(#"{"id_token":"\#(token)","nonce":"\#(nonce)","subject":"\#(nonce)"}"#),
            post(#"{"id_token":"\#(token)","nonce":"\#(nonce) "}"#),
            post(#"{"id_token":"\#(token)","nonce":"\#(nonce)","app_id":"\#(nonce)"}"#),
            post(#"{"id_token":"\#(token)","nonce":"\#(nonce)","permissions":["\#(nonce)"]}"#),
            post(#"{"id_token":"\#(token)","nonce":"\#(nonce)","\#(nonce)":1}"#),
            post(#"{"id_token":"\#(token)","id_token":"\#(token)","nonce":"\#(nonce)"}"#),
            post(#"{"id_token":"\#(token)","nonce":"\#(nonce)""#),
            post("\(token) \(nonce)"),
            post(body, json.replacing("application/json", with: "text/\(nonce)")),
            post(body, json + "Content-Encoding: \(nonce)\r\n"),
            post(body, json + bearer + "Cookie: session=\(nonce)\r\n"),
            post(body, json + "X-Api-Key: \(nonce)\r\n"),
            post(body, json + bearer + "X-Api-Key: \(nonce)\r\n"),
            post(body, json + "X-Request-Id: \(nonce)!\r\ntraceparent: \(nonce)\r\nUser-Agent: \(nonce)\r\n"),
            post(body, json + "Expect: \(nonce)\r\n"),
            post(body, json, path: "/introspect"),
            post("token=\(token)", json, path: "/introspect"),
            post("token=\(token)&nonce=\(nonce)", form, path: "/introspect"),
            get("/auth", bearer), get("/auth", bearer + "X-Nonce: \(nonce)\r\n", method: "POST"),
            post(body, json, path: "/livez"), post(body, json, path: "/\(nonce)"), post(body, json, path: "/metrics"),
            "POST /verify HTTP/1.1\r\n\(json)Transfer-Encoding: chunked\r\n\r\n\(nonce)\r\n\(body)",
            "POST /verify HTTP/1.1\r\n\(json)Content-Length: \(nonce)\r\n\r\n\(body)",
            "POST /verify HTTP/1.1\r\n\(json)Content-Length: 99999\r\n\r\n\(body)",
            "POST /verify HTTP/1.1\r\n\(json)\(nonce)\r\n\r\n\(body)",
            "POST /verify HTTP/9.9\r\n\(json)\r\n\(body)", "\(token)\r\n\r\n",
            "\(nonce) /verify HTTP/1.1\r\n\(json)\r\n",
            get("/verify?id_token=\(token)&nonce=\(nonce)"), get("/auth?nonce=\(nonce)", bearer),
            get("/auth/\(nonce)", bearer), get("/livez?\(nonce)", bearer), get("/readyz?verbose=\(nonce)", bearer),
            get("/healthz", "Cookie: \(nonce)\r\n"), get("/metrics?\(nonce)", bearer), get("/openapi.json?\(nonce)"),
            get("/\(token)"), get("/verify", bearer, method: nonce.uppercased().replacing("-", with: "")),
            get("http://\(nonce).example/livez"), get("*", bearer, method: "OPTIONS"),
            get("/verify", method: "CONNECT"),
            get("/livez", "X-Long: \(String(repeating: nonce, count: 1_000))\r\n"),
            get("/\(String(repeating: nonce, count: 300))"),
        ] + graph.flatMap { [$0, $0] }
    }

    /// True if the answer may hold the login's secrets: it accepts this good token. Routes that tie a token to no login
    /// accept it with any nonce.
    private static func isOwnAnswer(_ fault: MarkedLogin.Fault, _ request: String, _ answer: String) -> Bool {
        guard answer.hasPrefix("HTTP/1.1 200 OK") else { return false }
        let isUnbound = ["POST /introspect", "GET /auth", "POST /auth"].contains { request.hasPrefix($0) }
        return fault == .none && request.hasPrefix("POST /verify") || isUnbound && (fault == .none || fault == .nonce)
    }

    /// The secrets that occur in a text.
    private func findings(_ secrets: Set<String>, in text: String) -> [String] {
        secrets.filter { text.range(of: $0, options: .caseInsensitive) != nil }
    }

    @Test("Nothing of marked tokens, nonces, users and keys is in the logs, the metrics or the answers")
    func marks() throws {
        let set = TokenMinter.jwkSet([StandInKeys.current])
        let issuer = try ScriptedIssuer(.plain) { _, peer in
            try peer.answer(fields: ["Content-Type: application/json", "Cache-Control: max-age=600"], set)
        }
        defer { issuer.stop() }
        // This Graph returns everything that it receives.
        let graph = try ScriptedIssuer(.plain) { request, peer in
            let said =
                request.line + request.fields.map(\.value).joined() + String(decoding: request.body, as: UTF8.self)
            try peer.answerAndStay(
                status: "400 Bad Request",
                "{\"error\":{\"message\":\"\(said)\",\"type\":\"\(said)\",\"code\":10,\"fbtrace_id\":\"\(said)\"}}"
            )
        }
        defer { graph.stop() }
        let appSecret = UUID().uuidString.replacing("-", with: "")
        let folder = try ShortFolder()
        let appSecrets = try folder.write("secrets", "\(RunningService.appID) \(appSecret)\n")
        let (key, clients) = try folder.clientKey()
        var sent = 0
        for clientFile in [nil, clients] {
            var environment = ["LIMITED_LOGIN_LOG_LEVEL": "trace", "LIMITED_LOGIN_GATEWAY": "enabled"]
            environment["LIMITED_LOGIN_CLIENT_KEYS_FILE"] = clientFile
            environment["LIMITED_LOGIN_APP_SECRETS_FILE"] = appSecrets
            environment["LIMITED_LOGIN_GRAPH_URL"] = "http://127.0.0.1:\(graph.port)"
            environment["LIMITED_LOGIN_UNINSTALL_URL"] = "http://127.0.0.1:\(graph.port)/platform/uninstall/"
            let service = try RunningService(jwksURL: issuer.url, environment: environment)
            #expect(try service.waitUntilReady())
            var secrets: Set<String> = clientFile == nil ? [appSecret] : [key, appSecret]
            var accepted = 0
            for (number, fault) in MarkedLogin.Fault.allCases.enumerated() {
                let login = try MarkedLogin(number, fault)
                secrets.formUnion(login.secrets + [login.technical])
                for (place, plain) in Self.requests(login).enumerated() {
                    let isKnown = clientFile != nil && place % 2 == 0
                    let request = isKnown ? plain.replacing("Host: a", with: "Host: a\r\nX-Api-Key: \(key)") : plain
                    for address in [service.address, service.adminAddress] {
                        let client = try BlockingClient(address)
                        client.send(request)
                        client.shutdownWrite()
                        let answer = String(decoding: client.read().bytes, as: UTF8.self)
                        sent += 1
                        if Self.isOwnAnswer(fault, plain, answer), address == service.address {
                            accepted += 1
                            continue
                        }
                        let found = findings(Set(login.secrets + [key, appSecret]), in: answer)
                        #expect(found == [], "\(fault), request \(place): \(plain.prefix(60)) … \(answer)")
                    }
                }
            }
            #expect(accepted > 0)
            let metrics = try service.get("/metrics", admin: true).text
            #expect(metrics.contains("limited_login_verifications_total"))
            #expect(findings(secrets, in: metrics) == [])
            service.process.terminate()
            #expect(service.process.waitForExit() == 0)
            let log = service.process.errorText + service.process.outputText
            #expect(log.contains("verification refused") && log.contains("verification accepted"))
            #expect(findings(secrets, in: log) == [], "\(log.suffix(2_000))")
        }
        #expect(sent >= 200)
        // Graph did receive requests, with the service's credentials.
        #expect(graph.requests.contains { $0.line.hasPrefix("GET ") && $0.value(of: "authorization") != nil })
        #expect(graph.requests.contains { $0.line.hasPrefix("POST ") })
    }
}
