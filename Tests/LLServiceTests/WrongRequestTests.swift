import Foundation
import LLHTTP
import LLTestSupport
import LimitedLogin
import Logging
import Testing

@testable import LLService

/// A wrong request, and the client's words in it that no hint may repeat.
struct WrongRequest: Sendable {
    let name, method, target: String
    let fields, words: [String]
    let body: @Sendable (_ token: String) -> String
    /// True if the callers of the service have keys.
    let hasKeys: Bool

    /// A body of `POST /verify`, in which TOKEN stands for a good token.
    private static func body(_ name: String, _ text: String, _ words: String...) -> WrongRequest {
        WrongRequest(name, "POST", "/verify", words: words) { text.replacing("TOKEN", with: $0) }
    }

    /// The same with a good token and its nonce before these members.
    private static func more(_ name: String, _ members: String, _ words: String...) -> WrongRequest {
        WrongRequest(name, "POST", "/verify", words: words) { #"{"id_token":"\#($0)","nonce":"n-1",\#(members)}"# }
    }

    init(
        _ name: String,
        _ method: String,
        _ target: String,
        _ fields: [String] = ["Content-Type: application/json"],
        words: [String] = [],
        hasKeys: Bool = false,
        body: @escaping @Sendable (String) -> String = { _ in "" }
    ) {
        (self.name, self.method, self.target, self.fields) = (name, method, target, fields)
        (self.words, self.hasKeys, self.body) = (words, hasKeys, body)
    }

    /// A request with the token changed as by a faulty paste.
    private static func pasted(_ name: String, _ text: @escaping @Sendable (String) -> String) -> WrongRequest {
        WrongRequest(name, "POST", "/verify") { "{\"id_token\":\"\(text($0))\",\"nonce\":\"n-1\"}" }
    }

    static let bodies: [WrongRequest] = [
        body("`idToken` for `id_token`", #"{"idToken":"TOKEN","nonce":"n-1"}"#, "idToken"),
        body("`token` for `id_token`", #"{"token":"TOKEN","nonce":"n-1"}"#),
        body("`Nonce` for `nonce`", #"{"id_token":"TOKEN","Nonce":"n-1"}"#, "Nonce"),
        more("`appid` for `app_id`", #""appid":"42""#, "appid"),
        more("a member that is like no other", #""extra":1"#, "extra"),
        body("a member with other characters", #"{"id_token":"TOKEN","x-<y>":1}"#, "x-<y>"),
        body("no `id_token`", #"{"nonce":"n-1"}"#), body("`id_token` is a number", #"{"id_token":1,"nonce":"n-1"}"#),
        body("`id_token` is empty", #"{"id_token":"","nonce":"n-1"}"#),
        body("`nonce` is empty", #"{"id_token":"TOKEN","nonce":""}"#),
        body("`nonce` has white space", #"{"id_token":"TOKEN","nonce":"n 1"}"#, "n 1"),
        body("`nonce` is a number", #"{"id_token":"TOKEN","nonce":7}"#),
        more("`nonce` and `raw_nonce`", #""raw_nonce":"n-1""#),
        body("`issued_nonce` is false", #"{"id_token":"TOKEN","issued_nonce":false}"#),
        body("no nonce and no subject", #"{"id_token":"TOKEN"}"#),
        body("`subject` is empty", #"{"id_token":"TOKEN","subject":""}"#),
        more("`key_thumbprint` is no thumbprint", #""key_thumbprint":"abcde""#, "abcde"),
        more("`app_id` of no configured app", #""app_id":"987""#, "987"), more("`app_id` is a number", #""app_id":42"#),
        more("the permission `emails`", #""permissions":["emails"]"#, "emails"),
        more("the permission `birthday`", #""permissions":["birthday"]"#),
        more("the permission `user_posts`", #""permissions":["user_posts"]"#, "user_posts"),
        more("a permission with other characters", #""permissions":["e mail"]"#, "e mail"),
        more("`permissions` is a text", #""permissions":"email""#),
        body("an access token, where they are refused", #"{"access_token":"EAAB0123456789012345678901"}"#),
        body("a JWT as `access_token`", #"{"access_token":"TOKEN"}"#),
        body("`nonce` beside an access token", #"{"access_token":"EAAB0123456789012345678901","nonce":"n-1"}"#),
    ]

    static let tokens: [WrongRequest] = [
        pasted("a token behind `Bearer `") { "Bearer \($0)" }, pasted("a line break behind the token") { "\($0)\\n" },
        pasted("white space before the token") { " \($0)" },
        pasted("a token on two lines") { "\($0.prefix(60))\\n\($0.dropFirst(60))" },
        pasted("a token in quotation marks") { "\\\"\($0)\\\"" },
        pasted("a printed Swift optional") { "Optional(\\\"\($0)\\\")" },
        pasted("`%2E` for full stops") { $0.replacing(".", with: "%2E") },
        pasted("a token in plain base64") { "\($0)==" },
        pasted("a token without its middle") { "\($0.prefix(20))...\($0.suffix(20))" },
        pasted("the JSON around a token") { "{\\\"id_token\\\":\\\"\($0)\\\"}" },
        pasted("the beginning of a token") { String($0.prefix(50)) }, pasted("two tokens") { "\($0) \($0)" },
        pasted("a token without its signature") { $0.split(separator: ".").dropLast().joined(separator: ".") },
        pasted("a token with a stop at the end") { "\($0)." },
        pasted("a longer text than any token") { "\($0)\(String(repeating: "a", count: 32_768))" },
        pasted("an access token as `id_token`") { _ in "EAABwzLixnjYBO0123456789abcdefghijklmnop" },
        pasted("a token with `alg` none") {
            "eyJhbGciOiJub25lIn0." + $0.split(separator: ".").dropFirst().joined(separator: ".")
        },
        pasted("a token with one changed character") { $0.replacing(".", with: ".").dropLast(5) + "AAAAA" },
        body("the nonce of another login", #"{"id_token":"TOKEN","nonce":"n-2"}"#, "n-2"),
        body("a nonce that the app does not hash", #"{"id_token":"TOKEN","raw_nonce":"n-1"}"#, "n-1"),
        body("the subject of another person", #"{"id_token":"TOKEN","subject":"999"}"#, "999"),
        more("the app of another token", #""app_id":"42""#),
        body("a nonce that was issued elsewhere", #"{"id_token":"TOKEN","issued_nonce":true}"#),
    ]

    /// A body of another type at `/verify`.
    private static func typed(_ name: String, words: [String] = [], _ fields: String...) -> WrongRequest {
        WrongRequest(name, "POST", "/verify", fields, words: words) { _ in "{}" }
    }

    static let texts: [WrongRequest] = [
        body("an empty body", ""), body("a comma before the brace", #"{"id_token":"x",}"#),
        body("single quotation marks", "{'id_token':'x'}"), body("a body that ends too early", #"{"id_token":"x""#),
        body("two bodies", "{} zz", "zz"), body("a member twice", #"{"nonce":"a","nonce":"b"}"#), body("a list", "[]"),
        typed("a form (`curl -d`)", form), typed("no `Content-Type`"),
        typed("another charset", json + "; charset=latin1"),
        typed("a type with other characters", words: ["<b>"], "Content-Type: <b>\"x\""),
        typed("a compressed body", json, "Content-Encoding: gzip"),
        keyed("JSON at `/introspect`", [key], "/introspect"),
    ]

    private static let key = "X-Api-Key: secret"
    private static let form = "Content-Type: application/x-www-form-urlencoded"
    private static let json = "Content-Type: application/json"

    private static let good = ["Bearer a.b.c"]

    private static func auth(_ name: String, _ credentials: [String] = [], _ query: String = "", words: [String] = [])
        -> WrongRequest
    {
        WrongRequest(name, "GET", "/auth\(query)", credentials.map { "Authorization: \($0)" }, words: words)
    }

    static let routes: [WrongRequest] = [
        WrongRequest("`GET /verify`", "GET", "/verify", []), WrongRequest("`DELETE /nonces`", "DELETE", "/nonces", []),
        WrongRequest("`POST /readyz`", "POST", "/readyz", []),
        WrongRequest("`BREW /verify`", "BREW", "/verify", [], words: ["BREW"]),
        WrongRequest("`/verify/`", "POST", "/verify/"), WrongRequest("`/v1/verify`", "POST", "/v1/verify"),
        WrongRequest("`/api/v2/verify/`", "POST", "/api/v2/verify/"), WrongRequest("`/Verify`", "POST", "/Verify"),
        WrongRequest("`/verfy`", "POST", "/verfy", words: ["verfy"]),
        WrongRequest("`/users/1/permissions` without secrets", "GET", "/users/1/permissions", []),
        WrongRequest("`/`", "GET", "/", []),
        WrongRequest("`/metrics` at the service's listener", "GET", "/metrics", []),
        keyed("no key", []), keyed("a wrong key", ["X-Api-Key: nope"], words: ["nope"]),
        keyed("two keys", [key, "Authorization: Bearer secret"]),
        WrongRequest("`/introspect` without configured keys", "POST", "/introspect", [form]) { _ in "token=x" },
        introspected("`/introspect` without `token`", "a=b"),
        introspected("`issued_nonce` at `/introspect`", "token=x&issued_nonce=true"),
        keyed("`/revocations` without `user_id`", [key], "/revocations"),
        keyed("`userId` at `/revocations`", [key], "/revocations", words: ["userId"], #"{"userId":"1"}"#),
        WrongRequest("`/nonces` without `app_id`, with several apps", "POST", "/nonces") { _ in "{}" },
        WrongRequest("`expires_in` as a text", "POST", "/nonces") { _ in #"{"app_id":"42","expires_in":"60"}"# },
        WrongRequest("`appId` at `/nonces`", "POST", "/nonces", words: ["appId"]) { _ in #"{"appId":"42"}"# },
        auth("`/auth` without a token"), auth("`/auth` with two tokens", ["Bearer a", "Bearer b"]),
        auth("`/auth` with `Basic`", ["Basic eDp5"], words: ["eDp5"]),
        auth("`/auth` with quotation marks", ["Bearer \"a.b.c\""], words: ["a.b.c"]),
        auth("a client's query at `/auth`", good, "?id=5", words: ["id=5"]),
        auth("`permission` at `/auth`", good, "?permission=email"),
        auth("`permissions` without a name at `/auth`", good, "?permissions="),
        auth("the permission `emails` at `/auth`", good, "?permissions=emails", words: ["emails"]),
        auth("an `app_id` of no app at `/auth`", good, "?app_id=7"),
    ]

    /// JSON for a service whose callers have keys.
    private static func keyed(
        _ name: String,
        _ fields: [String],
        _ target: String = "/verify",
        words: [String] = [],
        _ body: String = "{}"
    ) -> WrongRequest {
        WrongRequest(name, "POST", target, [json] + fields, words: words, hasKeys: true) { _ in body }
    }

    private static func introspected(_ name: String, _ body: String) -> WrongRequest {
        WrongRequest(name, "POST", "/introspect", [form, key], hasKeys: true) { _ in body }
    }

    static let all = bodies + tokens + texts + routes
}

@Suite("Wrong requests", .live)
struct WrongRequestTests {
    /// Every answer, and the page that shows its hints.
    private static let files = ("Tests/Mistakes.txt", "Sources/LLService/LLService.docc/Mistakes.md")

    /// An answer to a wrong request.
    private struct Answer { let request, code, detail, hint: String }

    private static func answers() async throws -> [Answer] {
        let (logger, lines) = lineLogger(.trace)
        let nonces = try NonceIssuer(secret: "5c0f0d2ab3f14e67a1b7c9d2e8f40316")
        let keys = try ClientKeysTests.backend()
        let open = try await InProcessService(gatewayIsEnabled: true, nonces: nonces, logger: logger)
        let keyed = try await InProcessService(clients: keys, gatewayIsEnabled: true, nonces: nonces, logger: logger)
        var claims = Tokens.claims()
        (claims.name, claims.email) = ("Jane Quinn Doe", "jane.doe@example.com")
        let token = try Tokens.mint(claims)
        var answers: [Answer] = []
        for request in WrongRequest.all {
            let (service, body) = (request.hasKeys ? keyed : open, request.body(token))
            let answer = try service.answer(request.method, request.target, fields: request.fields, body: body)
            #expect(answer.status >= 400, "\(request.name)")
            for word in request.words + [String(token.prefix(30)), "Jane", "jane.doe", "2954873201847263"] {
                #expect(!answer.hint.contains(word), "\(request.name): \(answer.hint)")
            }
            #expect(!answer.text.contains(token.prefix(60)) && !answer.text.contains("jane.doe"), "\(request.name)")
            let code = "\(answer.status) `\(answer.code ?? "")`"
            answers.append(Answer(request: request.name, code: code, detail: answer.detail, hint: answer.hint))
        }
        let large = try open.fail(.bodyTooLarge, "POST", "/verify")
        let code = "413 `\(large.code ?? "")`"
        answers.append(Answer(request: "60 KB of body", code: code, detail: large.detail, hint: large.hint))
        let log = lines.withLock { $0.joined() }
        for word in [String(token.prefix(30)), "Jane", "jane.doe", "2954873201847263"] { #expect(!log.contains(word)) }
        return answers
    }

    /// The page's rows: one for each hint, with its answers and the first of its requests.
    private static func rows(_ answers: [Answer]) -> [String] {
        var hints: [String] = []
        for answer in answers where !hints.contains(answer.hint) { hints.append(answer.hint) }
        return hints.map { hint in
            let group = answers.filter { $0.hint == hint }
            let codes = group.map(\.code).reduce(into: [String]()) { if !$0.contains($1) { $0.append($1) } }
            return "| \(group[0].request) | \(codes.joined(separator: ", ")) | \(hint) |"
        }
    }

    @Test("Each answer is the known one, the page has each hint once, and no hint repeats a word of the request")
    func table() async throws {
        let answers = try await Self.answers()
        let known = answers.map { "\($0.request) | \($0.code) | \($0.detail) | \($0.hint)" }
        let rows = Self.rows(answers)
        #expect(known.count >= 58 && Set(known).count == known.count)
        if ProcessInfo.processInfo.environment["LIMITED_LOGIN_WRITE_MISTAKES"] != nil {
            let parts = try ProjectFiles.text(Self.files.1).components(separatedBy: "|---|---|---|\n")
            let page = try #require(parts.first) + "|---|---|---|\n" + rows.joined(separator: "\n") + "\n"
            for (file, text) in [(Self.files.0, known.joined(separator: "\n") + "\n"), (Self.files.1, page)] {
                try text.write(toFile: ProjectFiles.path(file), atomically: true, encoding: .utf8)
            }
        }
        let written = Set(try ProjectFiles.text(Self.files.0).split(separator: "\n").map(String.init))
        for answer in known { #expect(written.contains(answer), "\(answer)") }
        #expect(written.count == known.count)
        let shown = try ProjectFiles.text(Self.files.1).split(separator: "\n").filter { $0.hasPrefix("| ") }.dropFirst()
        #expect(shown.map(String.init) == rows)
    }

    @Test("Every code has a hint of one sentence, and no outage looks like a refusal", arguments: Rejection.Code.all)
    func hints(code: Rejection.Code) {
        #expect(code.hint.count > 10 && code.hint.hasSuffix("."), "\(code.rawValue)")
        #expect(!code.hint.dropLast().contains(". ") && !code.title.isEmpty, "\(code.hint)")
        #expect(Rejection.Code.all.count(where: { $0.rawValue == code.rawValue }) == 1)
        #expect(code.rawValue.utf8.allSatisfy { (0x61...0x7a).contains($0) || $0 == 0x5f })
        switch code.kind {
        case .token, .client: #expect([401, 403, 429].contains(code.status))
        case .caller: #expect(code.status < 500 || [501, 505].contains(code.status))
        case .outage: #expect(code.status == 429 || code.status >= 500)
        }
    }

    @Test("The first page names every code of an id token")
    func firstPage() throws {
        let page = try ProjectFiles.text("README.md")
        let rows = page.split(separator: "\n").filter { $0.hasPrefix("| ") }
        let named = Set(rows.flatMap { $0.matches(of: /`([a-z]+_[a-z_]+)`/).map { String($0.1) } })
        for code in Rejection.Code.ofTokens where code.rawValue != "expired" {
            #expect(named.contains(code.rawValue), "\(code.rawValue)")
        }
    }
}
