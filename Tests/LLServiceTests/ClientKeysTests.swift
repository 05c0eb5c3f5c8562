import LLHTTP
import LLTestSupport
import Testing

@testable import LLService

@Suite("Callers and their keys", .live)
struct ClientKeysTests {
    // The SHA-256 of "secret" and of "other".
    static let secret = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
    static let other = "d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa"

    /// The caller `backend` with the key `secret`.
    static func backend() throws -> ClientKeys { try keys("backend \(secret)") }

    private static func keys(_ text: String) throws -> ClientKeys {
        try ClientKeys(parsing: Array(text.utf8), place: "clients")
    }

    @Test("A file of names and hashes is read, with comments, blank lines and two keys for one name")
    func reading() throws {
        let keys = try Self.keys("# callers\n\nbackend \(Self.secret)\r\nworker\t\(Self.other.uppercased())\n")
        #expect(keys.names == ["backend", "worker"] && keys.client(presenting: "secret".utf8.span) == 0)
        #expect(keys.client(presenting: "other".utf8.span) == 1)
        #expect(keys.client(presenting: "Secret".utf8.span) == nil)
        #expect(keys.client(presenting: "".utf8.span) == nil)
        #expect(keys.client(presenting: String(repeating: "a", count: 513).utf8.span) == nil)
        let rotating = try Self.keys("backend \(Self.secret)\nbackend \(Self.other)")
        #expect(rotating.names == ["backend"] && rotating.client(presenting: "other".utf8.span) == 0)
    }

    @Test(
        "A malformed file is refused with the line at fault",
        arguments: [
            ("", "clients"), ("# nobody\n", "clients"), ("backend\n", "line 1"), ("\nbackend x\n", "line 2"),
            ("back end \(secret)", "line 1"), ("b\u{e4}ck \(secret)", "line 1"), ("a \(secret)0", "line 1"),
            ("a \(secret.dropLast())g", "line 1"), ("a \(secret)\nb \(secret)", "line 2"),
            ("\(String(repeating: "n", count: 65)) \(secret)", "line 1"),
        ]
    )
    func malformed(text: String, place: String) {
        let error = #expect(throws: ConfigurationError.self) { try Self.keys(text) }
        #expect(error?.description.contains(place) == true)
    }

    @Test("A new key is accepted by its own line, and two new keys differ")
    func making() throws {
        let made = try #require(ClientKeys.make(name: "backend"))
        let again = try #require(ClientKeys.make(name: "backend"))
        #expect(made.key != again.key && !made.line.contains(made.key))
        #expect(try Self.keys(made.line).client(presenting: made.key.utf8.span) == 0)
        #expect(ClientKeys.make(name: "a b") == nil && ClientKeys.make(name: "") == nil)
    }

    @Test("A caller with its key is served and counted; the key may be in either header")
    func authorized() async throws {
        let service = try await InProcessService(clients: Self.backend())
        let body = "{\"id_token\":\"\(try Tokens.mint(Tokens.claims()))\",\"nonce\":\"n-1\"}"
        for field in ["Authorization: Bearer secret", "authorization: bearer  secret", "X-Api-Key: secret"] {
            let answer = try service.answer(fields: ["Content-Type: application/json", field], body: body)
            #expect(answer.status == 200, "\(field)")
        }
        #expect(service.registry.render().contains(#"limited_login_client_requests_total{client="backend"} 3"#))
    }

    @Test(
        "A caller without its key learns nothing but that",
        arguments: [
            [], ["Authorization: Bearer wrong"], ["Authorization: secret"], ["Authorization: Basic c2VjcmV0"],
            ["Authorization: Bearer "], ["X-Api-Key: wrong"], ["X-Api-Key:"],
            ["Authorization: Bearer secret", "X-Api-Key: secret"], ["X-Api-Key: secret", "X-Api-Key: secret"],
        ]
    )
    func unauthorized(fields: [String]) async throws {
        let service = try await InProcessService(clients: Self.backend())
        let answer = try service.answer(fields: ["Content-Type: text/plain"] + fields, body: "no JSON")
        #expect(answer.status == 401 && answer.code == "unauthorized_client")
        // URLSession on Linux never ends if it gets a Basic challenge.
        let challenges = answer.fields.filter { $0.name == "www-authenticate" }
        #expect(challenges.count == 1 && challenges[0].value.hasPrefix("Bearer realm=\"limited-login\""))
        #expect(try service.answer("GET", "/livez", fields: []).status == 200)
        #expect(try service.answer("GET", "/readyz", fields: []).status == 200)
    }

    @Test("A reload changes the callers for the next request")
    func reload() async throws {
        let service = try await InProcessService(clients: Self.backend())
        let field = ["Content-Type: application/json", "X-Api-Key: secret"]
        #expect(try service.answer(fields: field, body: "{}").code == "invalid_request")
        let old = service.core.settings.value
        let new = RuntimeSettings(verifier: old.verifier, clients: try Self.keys("backend \(Self.other)"))
        service.core.settings.publish(new)
        #expect(try service.answer(fields: field, body: "{}").code == "unauthorized_client")
        service.core.settings.publish(RuntimeSettings(verifier: old.verifier, clients: nil))
        #expect(try service.answer(fields: ["Content-Type: application/json"], body: "{}").code == "invalid_request")
    }

    @Test("A request that a reload refuses while it waits for a key gives up its place")
    func reloadDuringAWait() async throws {
        let service = try await InProcessService(clients: Self.backend())
        let (old, fields) = (service.core.settings.value, ["Content-Type: application/x-www-form-urlencoded"])
        let new = RuntimeSettings(verifier: old.verifier, clients: try Self.keys("backend \(Self.other)"))
        // More than the requests that may wait for unknown keys.
        for number in 0..<600 {
            let header = Base64URL.encode(Array("{\"alg\":\"RS256\",\"kid\":\"\(number)\"}".utf8))
            let body = "client_id=backend&client_secret=secret&token=\(header).e30.AAAA"
            try #require(try service.send("POST", "/introspect", fields: fields, body: body).isParked, "\(number)")
            service.core.settings.publish(new)
            let woken = try service.send("POST", "/introspect", fields: fields, body: body, visit: .woken, again: true)
            #expect(try woken.response().status == 401)
            service.core.settings.publish(old)
        }
    }
}

@Suite("Basic credentials")
struct BasicCredentialsTests {
    private func decode(_ text: String) -> [String]? {
        let bytes = Array("Basic \(text)".utf8)
        guard let decoded = CallerCredentials.decodeBasic(bytes.span, 6..<bytes.count) else { return nil }
        return [decoded.name, decoded.key].map { String(decoding: $0, as: UTF8.self) }
    }

    @Test("The first colon separates the name from the key; text without one, or not strict base64, is refused")
    func decoded() {
        for (text, credentials) in [
            ("YTpi", ["a", "b"]), ("YTo=", ["a", ""]), ("OmI=", ["", "b"]), ("Og==", ["", ""]),
            ("YTpiOmM=", ["a", "b:c"]), ("YTo+Pz4/", ["a", ">?>?"]),
        ] { #expect(decode(text) == credentials, "\(text)") }
        for text in [
            "", "=", "====", "Og", "Og=", "Og===", "Oh==", "YTp", "YTp=", "YTo=YTo=", "Y=o=", "YQ==", "YTo-Pz4_",
            "YT i", "YTpi\n", "YTo*", String(repeating: "YTpi", count: 513),
        ] { #expect(decode(text) == nil, "\(text)") }
    }
}
