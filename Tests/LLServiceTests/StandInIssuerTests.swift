import Foundation
import LLHTTP
import LLTestSupport
import Testing

@testable import LLStandIn

/// The stand-in issuer without a process and, except for its callbacks, without sockets.
@Suite("The stand-in issuer")
struct StandInIssuerTests {
    private static let keysPath = "/.well-known/oauth/openid/jwks/"
    private static let appID = "123456789012345"
    private static let user = "2954873201847263"
    private static let appSecret = "0123456789abcdef0123456789abcdef"
    private let issuer: StandInIssuer

    init() throws { issuer = try StandInIssuer(audience: Self.appID, maxAgeSeconds: 77, appSecret: Self.appSecret) }

    /// A connection on which a request was sent.
    private func send(_ method: String, _ path: String, _ fields: String, _ body: String) -> ConnectionDriver {
        let head = "\(method) \(path) HTTP/1.1\r\nHost: i\r\n\(fields)Content-Length: \(body.utf8.count)\r\n\r\n"
        return ConnectionDriver(handler: issuer, sending: head + body)
    }

    /// - Parameter fields: Whole lines.
    private func get(_ path: String, _ fields: String = "") throws -> TestResponse {
        try #require(send("GET", path, fields, "").responses.first)
    }

    private func post(_ path: String, _ body: String = "") throws -> TestResponse {
        try #require(send("POST", path, "", body).responses.first)
    }

    private func token(_ claims: String = "{}") throws -> String {
        try #require(post("/tokens", claims).object["id_token"] as? String)
    }

    private func accessToken(_ body: String) throws -> String {
        try #require(post("/access-tokens", body).object["access_token"] as? String)
    }

    /// A part of a token, decoded.
    private static func part(_ number: Int, of token: String) throws -> String {
        let digits = token.split(separator: ".")[number].replacing("-", with: "+").replacing("_", with: "/")
        let padding = String(repeating: "=", count: (4 - digits.count % 4) % 4)
        return String(decoding: try #require(Data(base64Encoded: digits + padding)), as: UTF8.self)
    }

    private static func claims(of token: String) throws -> [String: Any] {
        let payload = try JSONSerialization.jsonObject(with: Data(part(1, of: token).utf8))
        return try #require(payload as? [String: Any])
    }

    @Test("It publishes discovery and two keys with an entity tag, and answers 304 to a client that has them")
    func documents() throws {
        let discovery = try get("/.well-known/openid-configuration/")
        #expect(discovery.text.contains(#""issuer":"https://www.facebook.com""#))
        #expect(discovery.text.contains(#""jwks_uri":"http://i/.well-known/oauth/openid/jwks/""#))
        let keys = try get(Self.keysPath)
        #expect(keys.status == 200 && keys["cache-control"] == "public, max-age=77")
        #expect(keys.text.ranges(of: "\"kid\"").count == 2)
        let tag = try #require(keys["etag"])
        let again = try get(Self.keysPath, "If-None-Match: \(tag)\r\n")
        #expect(again.status == 304 && again["etag"] == tag)
        _ = try post("/rotate")
        let rotated = try get(Self.keysPath, "If-None-Match: \(tag)\r\n")
        #expect(rotated.status == 200 && rotated["etag"] != tag)
    }

    @Test("A token has Facebook's wire style and the requested claims")
    func wireStyle() throws {
        let token = try token(#"{"email":"a@b.example","name":"é/😀","nonce":"N","iat":1700000000,"x":[1,{"y":null}]}"#)
        #expect(try Self.part(0, of: token).hasPrefix(#"{"alg":"RS256","typ":"JWT","kid":""#))
        let form =
            #"\{"iss":"https:\\/\\/www.facebook.com","aud":"123456789012345","sub":"\d+","iat":1700000000,"#
            + #""exp":1700003600,"jti":"[A-Za-z0-9]{4}\.[0-9a-f]{64}","nonce":"N","email":"a\\u0040b.example","#
            + #""name":"\\u00e9\\/\\ud83d\\ude00","x":\[1,\{"y":null\}\]\}"#
        let payload = try Self.part(1, of: token)
        #expect(payload.wholeMatch(of: try Regex(form)) != nil, "\(payload)")
    }

    @Test("The clock and the faults are set by a request, and end by another; a wrong one is 400")
    func conditions() throws {
        #expect(try post("/faults", #"{"outage_seconds":600}"#).status == 200)
        #expect(try get(Self.keysPath).status == 503)
        #expect(try post("/faults", #"{"delay_milliseconds":300}"#).status == 200)
        let delayed = send("GET", Self.keysPath, "", "")
        delayed.advance(by: .milliseconds(299))
        #expect(delayed.statuses == [])
        delayed.advance(by: .milliseconds(1))
        #expect(delayed.statuses == [200])
        #expect(try post("/faults", "{}").text == #"{"outage_seconds":0,"delay_milliseconds":0}"#)
        #expect(try get(Self.keysPath).status == 200)
        #expect(try post("/clock", #"{"now":1}"#).text == #"{"now":1}"#)
        #expect(try Self.claims(of: token())["iat"] as? Int == 1)
        #expect(try post("/clock", "{}").text != #"{"now":1}"#)
        for (path, body) in [
            ("/clock", "[]"), ("/clock", #"{"now":-1}"#), ("/clock", #"{"now":"x"}"#), ("/clock", #"{"time":1}"#),
            ("/faults", #"{"outage_seconds":3601}"#), ("/faults", #"{"outage_seconds":-1}"#),
            ("/faults", #"{"slow":1}"#), ("/tokens", "[]"), ("/tokens", "{"), ("/tokens", #"{"a":1,"a":2}"#),
            ("/access-tokens", "[]"), ("/access-tokens", #"{"nam":"x"}"#), ("/access-tokens", #"{"scopes":5}"#),
            ("/access-tokens?gone", "{}"), ("/proofs", #"{"method":"GET","url":"x"}"#),
        ] { #expect(try post(path, body).status == 400, "\(path) \(body)") }
        #expect(try post("/nothing").status == 404)
        #expect(try get("/tokens").status == 405)
    }

    @Test("A refresh keeps user and device; in the background it keeps the nonce, a silent one has a new nonce")
    func refresh() throws {
        let key = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
        let login = try token(
            #"{"nonce":"of-the-login","sub":"7","email":"a@b.example","at_hash":"x","user_gender":"f","#
                + #""cnf":{"jkt":"\#(key)"},"iat":1700000000,"jti":"first"}"#
        )
        var nonces: Set<String> = []
        for way in ["", "?way=direct", "?way=silent", "?way=silent"] {
            let answer = try post("/refresh\(way)", "{\"id_token\":\"\(login)\"}")
            let claims = try Self.claims(of: try #require(answer.object["id_token"] as? String))
            #expect(claims["sub"] as? String == "7" && claims["email"] as? String == "a@b.example")
            #expect(claims["cnf"] as? [String: String] == ["jkt": key])
            #expect(claims["at_hash"] == nil && claims["jti"] as? String != "first")
            let issuedAt = try #require(claims["iat"] as? Int)
            #expect(issuedAt > 1_700_000_000 && claims["exp"] as? Int == issuedAt + 3_600)
            let nonce = try #require(claims["nonce"] as? String)
            let isSDKs = try Regex("[0-9A-F]{8}-[0-9A-F]{4}-4[0-9A-F]{3}-[89AB][0-9A-F]{3}-[0-9A-F]{12}")
            #expect(way == "?way=silent" ? nonce.wholeMatch(of: isSDKs) != nil : nonce == "of-the-login")
            nonces.insert(nonce)
        }
        #expect(nonces.count == 3)
        for (path, body) in [
            ("/refresh?way=other", "{\"id_token\":\"\(login)\"}"), ("/refresh", "{\"id_token\":\"\(login)x\"}"),
            ("/refresh", "{}"), ("/refresh", "[]"), ("/refresh", ""), ("/refresh", "{\"id_token\":1}"),
        ] { #expect(try post(path, body).status == 400, "\(path) \(body.prefix(20))") }
    }

    @Test("An access token may be issued as late as a number of 18 digits says")
    func lateAccessToken() throws {
        let (graph, latest) = (StandInGraph(appSecret: "secret"), 999_999_999_999_999_999)
        let token = try graph.mintAccessToken(Array("{\"issued_at\":\(latest)}".utf8), fate: "", appID: "1", now: 0)
        #expect(graph.debug(token, asking: "1", now: 0).body.contains("\(latest)"))
    }

    @Test("Its Graph answers a missing or a wrong proof or token as Facebook's does")
    func graph() throws {
        let bearer = "Authorization: Bearer \(Self.appID)|"
        for (fields, words) in [
            ("", "\"code\":2500"), ("\(bearer)wrong\r\n", "\"code\":190"),
            ("\(bearer)\(Self.appSecret)\r\n", "appsecret"),
        ] { #expect(try get("/v26.0/\(Self.user)/permissions", fields).text.contains(words)) }
        let access = "Authorization: Bearer \(try accessToken(#"{"user":"77"}"#))\r\n"
        #expect(try get("/v26.0/me?appsecret_proof=00", access).text.contains("appsecret_proof"))
        let (token, old) = (try token(), try token(#"{"iat":1700000000}"#))
        for (token, app, words) in [
            (token, Self.appID, "{\"success\":true}"), (token, "42", "\"code\":190"),
            (old, Self.appID, "\"error_subcode\":463"),
            (String(token.dropLast(8)) + "AAAAAAAA", Self.appID, "Bad signature"),
        ] {
            let answer = try post("/platform/uninstall/", "id_token=\(token)&app_id=\(app)")
            #expect(answer.text.contains(words), "\(answer.text)")
        }
    }

    @Test("A callback to a service that is not configured or cannot be reached is answered with the reason", .live)
    func callbacks() throws {
        let server = try TestServer { [issuer] _ in issuer }
        func call(_ path: String) throws -> TestResponse {
            let request = "POST /users/\(path) HTTP/1.1\r\nHost: i\r\nContent-Length: 0\r\n\r\n"
            return try #require(BlockingClient(server.address).exchange(request))
        }
        #expect(try call("1/deauthorize").text.contains("--service-url"))
        #expect(try call("x/deauthorize").status == 404)
        issuer.service.withLock { $0 = "http://127.0.0.1:1" }
        #expect(try call("1/data-deletion").status == 502)
    }
}
