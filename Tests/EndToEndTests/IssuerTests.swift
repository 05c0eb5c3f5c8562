import Foundation
import LLTestSupport
import Testing

@testable import LLStandIn

@Suite("issuer: the stand-in alone", .live)
struct IssuerTests {
    @Test("It publishes discovery and two keys with an entity tag, and answers 304 to a client that has them")
    func documents() throws {
        let issuer = try IssuerProcess("--max-age", "77")
        let discovery = try issuer.get("/.well-known/openid-configuration/")
        #expect(discovery.text.contains(#""issuer":"https://www.facebook.com""#))
        #expect(discovery.text.contains(#""jwks_uri":"http://i/.well-known/oauth/openid/jwks/""#))
        let keys = try issuer.get(IssuerProcess.keysPath)
        #expect(keys.status == 200 && keys["cache-control"] == "public, max-age=77")
        #expect(keys.text.ranges(of: "\"kid\"").count == 2)
        let tag = try #require(keys["etag"])
        let again = try issuer.get(IssuerProcess.keysPath, "If-None-Match: \(tag)\r\n")
        #expect(again.status == 304 && again["etag"] == tag)
        _ = try issuer.post("/rotate")
        let rotated = try issuer.get(IssuerProcess.keysPath, "If-None-Match: \(tag)\r\n")
        #expect(rotated.status == 200 && rotated["etag"] != tag)
    }

    @Test("A token has Facebook's wire style and the requested claims")
    func wireStyle() throws {
        let token = try IssuerProcess().token(
            #"{"email":"a@b.example","name":"é/😀","nonce":"N","iat":1700000000,"x":[1,{"y":null}]}"#
        )
        #expect(try Self.part(0, of: token).hasPrefix(#"{"alg":"RS256","typ":"JWT","kid":""#))
        let form =
            #"\{"iss":"https:\\/\\/www.facebook.com","aud":"123456789012345","sub":"\d+","iat":1700000000,"#
            + #""exp":1700003600,"jti":"[A-Za-z0-9]{4}\.[0-9a-f]{64}","nonce":"N","email":"a\\u0040b.example","#
            + #""name":"\\u00e9\\/\\ud83d\\ude00","x":\[1,\{"y":null\}\]\}"#
        let payload = try Self.part(1, of: token)
        #expect(payload.wholeMatch(of: try Regex(form)) != nil, "\(payload)")
    }

    @Test("In a container it answers the allowed names alone; another host is 421")
    func hosts() throws {
        let issuer = try IssuerProcess("--container", "--allow-host", "Facebook", "--allow-host", "fb.test")
        #expect(issuer.process.outputText.contains("worth nothing"))
        for (host, status) in [
            ("facebook:8090", 200), ("FACEBOOK", 200), ("fb.test:1", 200), ("127.0.0.1:8090", 200), ("localhost", 200),
            ("facebook.example", 421), ("xfacebook", 421), ("192.0.2.1", 421), ("issuer", 421),
        ] {
            for path in ["/login", IssuerProcess.keysPath, "/.well-known/openid-configuration"] {
                #expect(try issuer.get(path, host: host).status == status, "\(host)")
            }
        }
        let refused = try issuer.get("/login", host: "issuer")
        #expect(refused.text.contains("for facebook, fb.test, 127.0.0.1, [::1] and localhost alone"))
        for name in ["facebook:8090", "http://facebook", "", "a b"] {
            #expect(try FinishedRun(["issuer", "--container", "--allow-host", name]).exitCode == 64, "\(name)")
        }
    }

    @Test("With a seed and a stopped clock two runs are the same bytes, keys and tokens; another seed differs")
    func seeds() throws {
        func run(_ seed: String) throws -> [String] {
            let issuer = try IssuerProcess("--seed", seed)
            #expect(try issuer.post("/clock", #"{"now":1800000000}"#).text == #"{"now":1800000000}"#)
            let texts = try ["/login", "/login/expired", IssuerProcess.keysPath].map { try issuer.get($0).text }
            return texts + [try issuer.token(), try issuer.post("/rotate").text, try issuer.token()]
        }
        let (first, other) = (try run("7"), try run("8"))
        #expect(try run("7") == first)
        #expect(zip(first, other).allSatisfy { $0 != $1 })
        #expect(try Self.part(1, of: first[3]).contains(#""iat":1800000000,"#))
    }

    @Test("The clock and the faults are set by a request, and end by another; a wrong one is 400")
    func conditions() throws {
        let issuer = try IssuerProcess()
        let keys = IssuerProcess.keysPath
        #expect(try issuer.post("/faults", #"{"outage_seconds":600}"#).status == 200)
        #expect(try issuer.get(keys).status == 503)
        #expect(try issuer.post("/faults", #"{"delay_milliseconds":300}"#).status == 200)
        let start = ContinuousClock.now
        #expect(try issuer.get(keys).status == 200)
        #expect(ContinuousClock.now - start >= .milliseconds(300))
        #expect(try issuer.post("/faults", "{}").text == #"{"outage_seconds":0,"delay_milliseconds":0}"#)
        #expect(try issuer.post("/clock", #"{"now":1}"#).text == #"{"now":1}"#)
        #expect(try issuer.post("/clock", "{}").text != #"{"now":1}"#)
        for (path, body) in [
            ("/clock", "[]"), ("/clock", #"{"now":-1}"#), ("/clock", #"{"now":"x"}"#), ("/clock", #"{"time":1}"#),
            ("/faults", #"{"outage_seconds":3601}"#), ("/faults", #"{"outage_seconds":-1}"#),
            ("/faults", #"{"slow":1}"#), ("/tokens", "[]"), ("/tokens", "{"), ("/tokens", #"{"a":1,"a":2}"#),
        ] { #expect(try issuer.post(path, body).status == 400, "\(path) \(body)") }
        #expect(try issuer.post("/nothing").status == 404)
        #expect(try issuer.get("/tokens").status == 405)
    }

    @Test("A refresh keeps user and device; in the background it keeps the nonce, a silent one has a new nonce")
    func refresh() throws {
        let issuer = try IssuerProcess()
        let key = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
        let login = try issuer.token(
            #"{"nonce":"of-the-login","sub":"7","email":"a@b.example","at_hash":"x","user_gender":"f","#
                + #""cnf":{"jkt":"\#(key)"},"iat":1700000000,"jti":"first"}"#
        )
        var nonces: Set<String> = []
        for way in ["", "?way=direct", "?way=silent", "?way=silent"] {
            let answer = try issuer.post("/refresh\(way)", "{\"id_token\":\"\(login)\"}")
            let claims = try jsonObject(Self.part(1, of: try #require(answer.member("id_token"))))
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
        ] { #expect(try issuer.post(path, body).status == 400, "\(path) \(body.prefix(20))") }
    }

    @Test("An access token may be issued as late as a number of 18 digits says")
    func lateAccessToken() throws {
        let (graph, latest) = (StandInGraph(appSecret: "secret"), 999_999_999_999_999_999)
        let token = try graph.mintAccessToken(Array("{\"issued_at\":\(latest)}".utf8), fate: "", appID: "1", now: 0)
        #expect(graph.debug(token, asking: "1", now: 0).body.contains("\(latest)"))
    }

    /// A part of a token, decoded.
    private static func part(_ number: Int, of token: String) throws -> String {
        let digits = String(token.split(separator: ".")[number])
        var text = digits.replacing("-", with: "+").replacing("_", with: "/")
        while text.count % 4 != 0 { text += "=" }
        return String(decoding: try #require(Data(base64Encoded: text)), as: UTF8.self)
    }
}
