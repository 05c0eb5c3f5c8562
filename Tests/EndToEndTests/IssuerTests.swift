import LLTestSupport
import Testing

/// The flags of `issuer`; its answers are tested without a process.
@Suite("issuer: the stand-in alone", .live)
struct IssuerTests {
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
            let issuer = try IssuerProcess("--seed", seed, "--max-age", "77")
            #expect(try issuer.post("/clock", #"{"now":1800000000}"#).text == #"{"now":1800000000}"#)
            let keys = try issuer.get(IssuerProcess.keysPath)
            #expect(keys["cache-control"] == "public, max-age=77")
            let texts = try ["/login", "/login/expired"].map { try issuer.get($0).text }
            return texts + [keys.text, try issuer.token(), try issuer.post("/rotate").text, try issuer.token()]
        }
        let (first, other) = (try run("7"), try run("8"))
        #expect(try run("7") == first)
        #expect(zip(first, other).allSatisfy { $0 != $1 })
    }
}
