import Foundation
import LLTestSupport
import Testing

@testable import LLStandIn

@Suite("issuer: the stand-in alone", .live)
struct IssuerTests {
    @Test("It publishes discovery and two keys with an entity tag, and answers 304 to a client that has them")
    func documents() throws {
        let issuer = try IssuerProcess(arguments: ["--max-age", "77"])
        let discovery = try issuer.exchange("GET /.well-known/openid-configuration/ HTTP/1.1\r\nHost: i\r\n\r\n")
        #expect(discovery.status == 200)
        #expect(discovery.text.contains(#""issuer":"https://www.facebook.com""#))
        #expect(discovery.text.contains(#""jwks_uri":"http://i/.well-known/oauth/openid/jwks/""#))
        let keys = try issuer.exchange("GET /.well-known/oauth/openid/jwks/ HTTP/1.1\r\nHost: i\r\n\r\n")
        #expect(keys.status == 200)
        #expect(keys["cache-control"] == "public, max-age=77")
        #expect(keys.text.components(separatedBy: "\"kid\"").count == 3)
        let tag = try #require(keys["etag"])
        let again = try issuer.exchange(
            "GET /.well-known/oauth/openid/jwks/ HTTP/1.1\r\nHost: i\r\nIf-None-Match: \(tag)\r\n\r\n"
        )
        #expect(again.status == 304)
        #expect(again["etag"] == tag)
        _ = try issuer.post("/rotate")
        let rotated = try issuer.exchange(
            "GET /.well-known/oauth/openid/jwks/ HTTP/1.1\r\nHost: i\r\nIf-None-Match: \(tag)\r\n\r\n"
        )
        #expect(rotated.status == 200)
        #expect(rotated["etag"] != tag)
    }

    @Test("A token has Facebook's wire style and the requested claims")
    func wireStyle() throws {
        let issuer = try IssuerProcess()
        let token = try issuer.token(
            #"{"email":"a@b.example","name":"é/😀","nonce":"N","iat":1700000000,"x":[1,{"y":null}]}"#
        )
        let parts = token.split(separator: ".").map(String.init)
        let header = try Self.decode(parts[0])
        #expect(header.hasPrefix(#"{"alg":"RS256","typ":"JWT","kid":""#))
        let payload = try Self.decode(parts[1])
        #expect(payload.hasPrefix(#"{"iss":"https:\/\/www.facebook.com","aud":"123456789012345","sub":""#))
        #expect(payload.contains(#""iat":1700000000,"exp":1700003600,"jti":""#))
        #expect(
            payload.contains(
                #""nonce":"N","email":"a\u0040b.example","name":"\u00e9\/\ud83d\ude00","x":[1,{"y":null}]}"#
            )
        )
        #expect(payload.contains(try Regex(#""jti":"[A-Za-z0-9]{4}\.[0-9a-f]{64}""#)))
    }

    @Test("In a container it answers the allowed names alone; another host is 421")
    func hosts() throws {
        let issuer = try IssuerProcess(arguments: [
            "--container", "--allow-host", "Facebook", "--allow-host", "fb.test",
        ])
        #expect(issuer.process.outputText.contains("worth nothing"))
        let hosts = [
            ("facebook:8090", 200), ("FACEBOOK", 200), ("fb.test:1", 200), ("127.0.0.1:8090", 200), ("localhost", 200),
            ("facebook.example", 421), ("xfacebook", 421), ("192.0.2.1", 421), ("issuer", 421),
        ]
        for (host, status) in hosts {
            for path in ["/login", "/.well-known/oauth/openid/jwks/", "/.well-known/openid-configuration"] {
                #expect(
                    try issuer.exchange("GET \(path) HTTP/1.1\r\nHost: \(host)\r\n\r\n").status == status,
                    "\(host)"
                )
            }
        }
        let refused = try issuer.exchange("GET /login HTTP/1.1\r\nHost: issuer\r\n\r\n")
        #expect(refused.text.contains("for facebook, fb.test, 127.0.0.1, [::1] and localhost alone"))
        for name in ["facebook:8090", "http://facebook", "", "a b"] {
            #expect(try FinishedRun(["issuer", "--container", "--allow-host", name]).exitCode == 64, "\(name)")
        }
    }

    @Test("With a seed and a stopped clock two runs are the same bytes, keys and tokens; another seed differs")
    func seeds() throws {
        func run(_ seed: String) throws -> [String] {
            let issuer = try IssuerProcess(arguments: ["--seed", seed])
            #expect(try issuer.post("/clock", #"{"now":1800000000}"#).text == #"{"now":1800000000}"#)
            let texts = try ["/login", "/login/expired", "/.well-known/oauth/openid/jwks"].map {
                try issuer.exchange("GET \($0) HTTP/1.1\r\nHost: i\r\n\r\n").text
            }
            return texts + [try issuer.token(), try issuer.post("/rotate").text, try issuer.token()]
        }
        let (first, other) = (try run("7"), try run("8"))
        #expect(try run("7") == first)
        #expect(zip(first, other).allSatisfy { $0 != $1 })
        #expect(try Self.decode(first[3].split(separator: ".").map(String.init)[1]).contains(#""iat":1800000000,"#))
    }

    @Test("The clock and the faults are set by a request, and end by another; a wrong one is 400")
    func conditions() throws {
        let issuer = try IssuerProcess()
        let keys = "GET /.well-known/oauth/openid/jwks/ HTTP/1.1\r\nHost: i\r\n\r\n"
        #expect(try issuer.post("/faults", #"{"outage_seconds":600}"#).status == 200)
        #expect(try issuer.exchange(keys).status == 503)
        #expect(try issuer.post("/faults", #"{"delay_milliseconds":300}"#).status == 200)
        let start = ContinuousClock.now
        #expect(try issuer.exchange(keys).status == 200)
        #expect(ContinuousClock.now - start >= .milliseconds(300))
        #expect(try issuer.post("/faults", "{}").text == #"{"outage_seconds":0,"delay_milliseconds":0}"#)
        #expect(try issuer.post("/clock", #"{"now":1}"#).text == #"{"now":1}"#)
        #expect(try issuer.post("/clock", "{}").text != #"{"now":1}"#)
        let wrong = [
            ("/clock", "[]"), ("/clock", #"{"now":-1}"#), ("/clock", #"{"now":"x"}"#), ("/clock", #"{"time":1}"#),
            ("/faults", #"{"outage_seconds":3601}"#), ("/faults", #"{"outage_seconds":-1}"#),
            ("/faults", #"{"slow":1}"#), ("/tokens", "[]"), ("/tokens", "{"), ("/tokens", #"{"a":1,"a":2}"#),
        ]
        for (path, body) in wrong { #expect(try issuer.post(path, body).status == 400, "\(path) \(body)") }
        #expect(try issuer.post("/nothing").status == 404)
        #expect(try issuer.exchange("GET /tokens HTTP/1.1\r\nHost: i\r\n\r\n").status == 405)
    }

    /// The claims of a token.
    private static func claims(_ token: String) throws -> [String: Any] {
        let payload = try decode(String(token.split(separator: ".")[1]))
        return try #require(try JSONSerialization.jsonObject(with: Data(payload.utf8)) as? [String: Any])
    }

    @Test("A refresh keeps user and device; in the background it keeps the nonce, a silent one has a new nonce")
    func refresh() throws {
        let issuer = try IssuerProcess()
        let login = try issuer.token(
            #"{"nonce":"of-the-login","sub":"7","email":"a@b.example","at_hash":"x","user_gender":"f","#
                + #""cnf":{"jkt":"0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"},"iat":1700000000,"jti":"first"}"#
        )
        func refresh(_ way: String, _ token: String) throws -> [String: Any] {
            let answer = try issuer.post("/refresh\(way)", "{\"id_token\":\"\(token)\"}")
            #expect(answer.status == 200)
            let decoded = try JSONDecoder().decode([String: String].self, from: Data(answer.body))
            return try Self.claims(try #require(decoded["id_token"]))
        }
        var nonces: Set<String> = []
        for way in ["", "?way=direct", "?way=silent", "?way=silent"] {
            let claims = try refresh(way, login)
            #expect(claims["sub"] as? String == "7" && claims["email"] as? String == "a@b.example")
            let key = claims["cnf"] as? [String: String]
            #expect(key == ["jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"])
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
        ] {
            #expect(try issuer.post(path, body).status == 400, "\(path) \(body.prefix(20))")
        }
    }

    @Test("Beyond its limit the stand-in forgets the oldest minted entries, and nothing else")
    func forgets() {
        var entries = NewestEntries<Int, Int>()
        let limit = NewestEntries<Int, Int>.limit
        for key in 0..<2 * limit + 1 {
            entries[key] = key
            entries[key] = -key
        }
        #expect(entries.values.count == limit)
        #expect(entries[limit] == nil)
        #expect(entries[limit + 1] == -(limit + 1) && entries[2 * limit] == -2 * limit)
    }

    @Test("An access token may be issued as late as a number of 18 digits says")
    func lateAccessToken() throws {
        let (graph, latest) = (StandInGraph(appSecret: "secret"), 999_999_999_999_999_999)
        let token = try graph.mintAccessToken(Array("{\"issued_at\":\(latest)}".utf8), fate: "", appID: "1", now: 0)
        #expect(graph.debug(token, asking: "1", now: 0).body.contains("\(latest)"))
    }

    private static func decode(_ part: String) throws -> String {
        var text = part.replacing("-", with: "+").replacing("_", with: "/")
        while text.count % 4 != 0 { text += "=" }
        return String(decoding: try #require(Data(base64Encoded: text)), as: UTF8.self)
    }
}
