import Foundation
import LLHTTP
import LLJOSE
import LLStandIn
import LLTestSupport
import Testing

/// The secrets of one login, marked so that each is recognised anywhere.
private struct MarkedLogin {
    enum Fault: CaseIterable {
        case none, expired, early, audience, issuer, nonce, noSubject, unknownKey, signature, payload, header, notJSON
    }

    let token: String
    let nonce: String
    /// The user's id in requests to Graph.
    let userID = (0..<19).map { _ in "\(Int.random(in: 1...9))" }.joined()
    /// The texts that must not appear anywhere.
    let secrets: [String]
    /// A mark in the token's issuer, app or key ID. A refusal may show it to the caller; the log and the metrics may
    /// not.
    let technical = Self.mark()

    /// A random mark, so that no part of it appears anywhere by chance.
    private static func mark() -> String { UUID().uuidString.replacing("-", with: "").lowercased() }

    init(_ fault: Fault) throws {
        let (mark, now) = (Self.mark(), WallClock.unixSeconds())
        nonce = "nonce-\(mark)"
        var claims = MintedClaims(audience: RunningService.appID, subject: "7\(mark)", nonce: nonce, issuedAt: now)
        (claims.name, claims.givenName) = ("Name \(mark)", "Given \(mark)")
        (claims.email, claims.picture) = ("\(mark)@mail.example", "https://picture.example/\(mark)")
        claims.hometown = (id: "1", name: "Town \(mark)")
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
        let minted = try (fault == .unknownKey ? unknown : StandInKeys.current).mint(claims)
        token =
            switch fault {
            case .signature: String(minted.dropLast(8)) + "AAAAAAAA"
            case .payload: minted.replacing(".", with: ".!", maxReplacements: 1)
            case .header: "x" + minted
            case .notJSON: try StandInKeys.current.mint(payload: Array(mark.utf8))
            default: minted
            }
        secrets = [mark, userID] + Self.encoded(mark) + token.split(separator: ".").dropFirst().map(String.init)
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
        func verify(_ members: String) -> String { post(#"{"id_token":"\#(token)",\#(members)}"#) }
        return [
            post(body), verify(#""raw_nonce":"\#(nonce)""#), verify(#""subject":"\#(nonce)""#), verify(""),
            post(#"{"id_token":"\#(token)"}"#), verify(#""nonce":"\#(nonce)","subject":"\#(nonce)""#),
            verify(#""nonce":"\#(nonce) ""#), verify(#""nonce":"\#(nonce)","app_id":"\#(nonce)""#),
            verify(#""nonce":"\#(nonce)","permissions":["\#(nonce)"]"#), verify(#""nonce":"\#(nonce)","\#(nonce)":1"#),
            verify(#""id_token":"\#(token)","nonce":"\#(nonce)""#), post(String(body.dropLast())),
            post("\(token) \(nonce)"), post(body, json.replacing("application/json", with: "text/\(nonce)")),
            post(body, json + "Content-Encoding: \(nonce)\r\n"), post(body, json + "X-Api-Key: \(nonce)\r\n"),
            post(body, json + bearer + "Cookie: \(nonce)\r\n"), post(body, json + bearer + "X-Api-Key: \(nonce)\r\n"),
            post(body, json + "X-Request-Id: \(nonce)!\r\ntraceparent: \(nonce)\r\nUser-Agent: \(nonce)\r\n"),
            post(body, json + "Expect: \(nonce)\r\n"), post(body, json, path: "/introspect"),
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
        let issuer = try ScriptedIssuer { _, peer in
            try peer.answer(fields: ["Content-Type: application/json", "Cache-Control: max-age=600"], set)
        }
        // This Graph returns everything that it receives.
        let graph = try ScriptedIssuer { request, peer in
            let values = request.fields.map(\.value).joined()
            let said = request.line + values + String(decoding: request.body, as: UTF8.self)
            try peer.answerAndStay(
                status: "400 Bad Request",
                #"{"error":{"message":"\#(said)","type":"\#(said)","code":10,"fbtrace_id":"\#(said)"}}"#
            )
        }
        defer {
            issuer.stop()
            graph.stop()
        }
        let appSecret = UUID().uuidString.replacing("-", with: "")
        let folder = try ShortFolder()
        let (key, clients) = try folder.clientKey()
        let settings: [String: String?] = [
            "jwks_urls": issuer.url, "gateway": "enabled", "graph_url": "http://127.0.0.1:\(graph.port)",
            "app_secrets_file": try folder.write("secrets", "\(RunningService.appID) \(appSecret)\n"),
            "uninstall_url": "http://127.0.0.1:\(graph.port)/platform/uninstall/",
        ]
        for clientFile in [nil, clients] {
            let service = try RunningService(nil, settings.merging(["client_keys_file": clientFile]) { $1 })
            #expect(try service.waitUntilReady())
            var secrets: Set<String> = clientFile == nil ? [appSecret] : [key, appSecret]
            var accepted = 0
            for fault in MarkedLogin.Fault.allCases {
                let login = try MarkedLogin(fault)
                secrets.formUnion(login.secrets + [login.technical])
                for (place, plain) in Self.requests(login).enumerated() {
                    let isKnown = clientFile != nil && place % 2 == 0
                    let request = isKnown ? plain.replacing("Host: a", with: "Host: a\r\nX-Api-Key: \(key)") : plain
                    for address in [service.address, service.adminAddress] {
                        let client = try BlockingClient(address)
                        client.send(request)
                        client.shutdownWrite()
                        let answer = String(decoding: client.read().bytes, as: UTF8.self)
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
            service.stop()
            let log = service.process.errorText + service.process.outputText
            #expect(log.contains("verification refused") && log.contains("verification accepted"))
            #expect(findings(secrets, in: log) == [], "\(log.suffix(2_000))")
        }
        // Graph did receive requests, with the service's credentials.
        #expect(graph.requests.contains { $0.line.hasPrefix("GET ") && $0.value(of: "authorization") != nil })
        #expect(graph.requests.contains { $0.line.hasPrefix("POST ") })
    }
}
