import Foundation
import LLHTTP
import LLStandIn
import LLTestSupport
import LimitedLogin
import Logging
import Testing

@testable import LLService

/// A wrong request, and the client's words in it that no hint may repeat.
struct WrongRequest: Sendable {
    let name: String
    var method = "POST"
    var target = "/verify"
    var fields = ["Content-Type: application/json"]
    var body: @Sendable (_ token: String) -> String = { _ in "" }
    var words: [String] = []
    /// True if the callers of the service have keys.
    var hasKeys = false

    init(_ name: String, _ words: [String] = [], _ body: @escaping @Sendable (_ token: String) -> String) {
        (self.name, self.words, self.body) = (name, words, body)
    }

    init(
        _ name: String,
        _ method: String,
        _ target: String,
        _ fields: [String] = ["Content-Type: application/json"],
        words: [String] = [],
        hasKeys: Bool = false,
        body: String = ""
    ) {
        (self.name, self.method, self.target, self.fields) = (name, method, target, fields)
        (self.words, self.hasKeys, self.body) = (words, hasKeys, { _ in body })
    }

    /// A request with the token changed as by a faulty paste.
    private static func pasted(_ name: String, _ text: @escaping @Sendable (String) -> String) -> WrongRequest {
        WrongRequest(name) { "{\"id_token\":\"\(text($0))\",\"nonce\":\"n-1\"}" }
    }

    static let bodies: [WrongRequest] = [
        WrongRequest("`idToken` for `id_token`", ["idToken"]) { #"{"idToken":"\#($0)","nonce":"n-1"}"# },
        WrongRequest("`token` for `id_token`") { #"{"token":"\#($0)","nonce":"n-1"}"# },
        WrongRequest("`Nonce` for `nonce`", ["Nonce"]) { #"{"id_token":"\#($0)","Nonce":"n-1"}"# },
        WrongRequest("`appid` for `app_id`", ["appid"]) { #"{"id_token":"\#($0)","nonce":"n-1","appid":"42"}"# },
        WrongRequest("a member that is like no other", ["extra"]) { #"{"id_token":"\#($0)","nonce":"n-1","extra":1}"# },
        WrongRequest("a member with other characters", ["x-<y>"]) { #"{"id_token":"\#($0)","x-<y>":1}"# },
        WrongRequest("no `id_token`") { _ in #"{"nonce":"n-1"}"# },
        WrongRequest("`id_token` is a number") { _ in #"{"id_token":1,"nonce":"n-1"}"# },
        WrongRequest("`id_token` is empty") { _ in #"{"id_token":"","nonce":"n-1"}"# },
        WrongRequest("`nonce` is empty") { #"{"id_token":"\#($0)","nonce":""}"# },
        WrongRequest("`nonce` has white space", ["n 1"]) { #"{"id_token":"\#($0)","nonce":"n 1"}"# },
        WrongRequest("`nonce` is a number") { #"{"id_token":"\#($0)","nonce":7}"# },
        WrongRequest("`nonce` and `raw_nonce`") { #"{"id_token":"\#($0)","nonce":"n-1","raw_nonce":"n-1"}"# },
        WrongRequest("`issued_nonce` is false") { #"{"id_token":"\#($0)","issued_nonce":false}"# },
        WrongRequest("no nonce and no subject") { #"{"id_token":"\#($0)"}"# },
        WrongRequest("`subject` is empty") { #"{"id_token":"\#($0)","subject":""}"# },
        WrongRequest("`key_thumbprint` is no thumbprint", ["abcde"]) {
            #"{"id_token":"\#($0)","nonce":"n-1","key_thumbprint":"abcde"}"#
        },
        WrongRequest("`app_id` of no configured app", ["987"]) {
            #"{"id_token":"\#($0)","nonce":"n-1","app_id":"987"}"#
        },
        WrongRequest("`app_id` is a number") { #"{"id_token":"\#($0)","nonce":"n-1","app_id":42}"# },
        WrongRequest("the permission `emails`", ["emails"]) {
            #"{"id_token":"\#($0)","nonce":"n-1","permissions":["emails"]}"#
        },
        WrongRequest("the permission `birthday`") {
            #"{"id_token":"\#($0)","nonce":"n-1","permissions":["birthday"]}"#
        },
        WrongRequest("the permission `user_posts`", ["user_posts"]) {
            #"{"id_token":"\#($0)","nonce":"n-1","permissions":["user_posts"]}"#
        },
        WrongRequest("a permission with other characters", ["e mail"]) {
            #"{"id_token":"\#($0)","nonce":"n-1","permissions":["e mail"]}"#
        },
        WrongRequest("`permissions` is a text") { #"{"id_token":"\#($0)","nonce":"n-1","permissions":"email"}"# },
        WrongRequest("an access token, where they are refused") { _ in #"{"access_token":"EAAB0123456789012345678901"}"#
        },
        WrongRequest("a JWT as `access_token`") { #"{"access_token":"\#($0)"}"# },
        WrongRequest("`nonce` beside an access token") { _ in
            #"{"access_token":"EAAB0123456789012345678901","nonce":"n-1"}"#
        },
    ]

    static let tokens: [WrongRequest] = [
        pasted("a token behind `Bearer `") { "Bearer \($0)" },
        pasted("a line break behind the token") { "\($0)\\n" },
        pasted("white space before the token") { " \($0)" },
        pasted("a token on two lines") { "\($0.prefix(60))\\n\($0.dropFirst(60))" },
        pasted("a token in quotation marks") { "\\\"\($0)\\\"" },
        pasted("a printed Swift optional") { "Optional(\\\"\($0)\\\")" },
        pasted("`%2E` for full stops") { $0.replacing(".", with: "%2E") },
        pasted("a token in plain base64") { "\($0)==" },
        pasted("a token without its middle") { "\($0.prefix(20))...\($0.suffix(20))" },
        pasted("the JSON around a token") { "{\\\"id_token\\\":\\\"\($0)\\\"}" },
        pasted("the beginning of a token") { String($0.prefix(50)) },
        pasted("two tokens") { "\($0) \($0)" },
        pasted("a token without its signature") { $0.split(separator: ".").dropLast().joined(separator: ".") },
        pasted("a token with a stop at the end") { "\($0)." },
        pasted("a longer text than any token") { "\($0)\(String(repeating: "a", count: 32_768))" },
        pasted("an access token as `id_token`") { _ in "EAABwzLixnjYBO0123456789abcdefghijklmnop" },
        pasted("a token with `alg` none") {
            "eyJhbGciOiJub25lIn0." + $0.split(separator: ".").dropFirst().joined(separator: ".")
        },
        pasted("a token with one changed character") { $0.replacing(".", with: ".").dropLast(5) + "AAAAA" },
        WrongRequest("the nonce of another login", ["n-2"]) { #"{"id_token":"\#($0)","nonce":"n-2"}"# },
        WrongRequest("a nonce that the app does not hash", ["n-1"]) { #"{"id_token":"\#($0)","raw_nonce":"n-1"}"# },
        WrongRequest("the subject of another person", ["999"]) { #"{"id_token":"\#($0)","subject":"999"}"# },
        WrongRequest("the app of another token") { #"{"id_token":"\#($0)","nonce":"n-1","app_id":"42"}"# },
        WrongRequest("a nonce that was issued elsewhere") { #"{"id_token":"\#($0)","issued_nonce":true}"# },
    ]

    /// A body of another form or type at `/verify`.
    private static func typed(_ name: String, _ body: String, words: [String] = [], _ fields: String...) -> WrongRequest
    {
        WrongRequest(name, "POST", "/verify", fields, words: words, body: body)
    }

    static let texts: [WrongRequest] = [
        WrongRequest("an empty body") { _ in "" },
        WrongRequest("a comma before the brace") { _ in #"{"id_token":"x",}"# },
        WrongRequest("single quotation marks") { _ in "{'id_token':'x'}" },
        WrongRequest("a body that ends too early") { _ in #"{"id_token":"x""# },
        WrongRequest("two bodies", ["zz"]) { _ in #"{} zz"# },
        WrongRequest("a member twice") { _ in #"{"nonce":"a","nonce":"b"}"# },
        WrongRequest("a list") { _ in "[]" }, typed("a form (`curl -d`)", "id_token=x", form),
        typed("no `Content-Type`", "{}"),
        typed("another charset", "{}", "Content-Type: application/json; charset=latin1"),
        typed("a type with other characters", "{}", words: ["<b>"], "Content-Type: <b>\"x\""),
        typed("a compressed body", "{}", "Content-Type: application/json", "Content-Encoding: gzip"),
        WrongRequest("JSON at `/introspect`", "POST", "/introspect", [json, key], hasKeys: true, body: "{}"),
    ]

    private static let key = "X-Api-Key: secret"
    private static let form = "Content-Type: application/x-www-form-urlencoded"
    private static let json = "Content-Type: application/json"

    /// A request with one bearer token at `/auth`.
    private static func auth(_ name: String, _ query: String, words: [String] = []) -> WrongRequest {
        WrongRequest(name, "GET", "/auth?\(query)", ["Authorization: Bearer a.b.c"], words: words)
    }

    static let routes: [WrongRequest] = [
        WrongRequest("`GET /verify`", "GET", "/verify", []),
        WrongRequest("`DELETE /nonces`", "DELETE", "/nonces", []),
        WrongRequest("`POST /readyz`", "POST", "/readyz", []),
        WrongRequest("`BREW /verify`", "BREW", "/verify", [], words: ["BREW"]),
        WrongRequest("`/verify/`", "POST", "/verify/"),
        WrongRequest("`/v1/verify`", "POST", "/v1/verify"),
        WrongRequest("`/api/v2/verify/`", "POST", "/api/v2/verify/"),
        WrongRequest("`/Verify`", "POST", "/Verify"),
        WrongRequest("`/verfy`", "POST", "/verfy", words: ["verfy"]),
        WrongRequest("`/users/1/permissions` without secrets", "GET", "/users/1/permissions", []),
        WrongRequest("`/`", "GET", "/", []),
        WrongRequest("`/metrics` at the service's listener", "GET", "/metrics", []),
        WrongRequest("no key", "POST", "/verify", hasKeys: true, body: "{}"),
        keyed("a wrong key", ["X-Api-Key: nope"], words: ["nope"]),
        keyed("two keys", [key, "Authorization: Bearer secret"]),
        WrongRequest("`/introspect` without configured keys", "POST", "/introspect", [form], body: "token=x"),
        introspected("`/introspect` without `token`", "a=b"),
        introspected("`issued_nonce` at `/introspect`", "token=x&issued_nonce=true"),
        revoked("`/revocations` without `user_id`", "{}"),
        revoked("`userId` at `/revocations`", #"{"userId":"1"}"#, words: ["userId"]),
        WrongRequest("`/nonces` without `app_id`, with several apps", "POST", "/nonces", body: "{}"),
        WrongRequest("`expires_in` as a text", "POST", "/nonces", body: #"{"app_id":"42","expires_in":"60"}"#),
        WrongRequest("`appId` at `/nonces`", "POST", "/nonces", words: ["appId"], body: #"{"appId":"42"}"#),
        WrongRequest("`/auth` without a token", "GET", "/auth", []),
        WrongRequest(
            "`/auth` with two tokens",
            "GET",
            "/auth",
            ["Authorization: Bearer a", "Authorization: Bearer b"]
        ),
        WrongRequest("`/auth` with `Basic`", "GET", "/auth", ["Authorization: Basic eDp5"], words: ["eDp5"]),
        WrongRequest(
            "`/auth` with quotation marks",
            "GET",
            "/auth",
            ["Authorization: Bearer \"a.b.c\""],
            words: ["a.b.c"]
        ),
        auth("a client's query at `/auth`", "id=5", words: ["id=5"]),
        auth("`permission` at `/auth`", "permission=email"),
        auth("`permissions` without a name at `/auth`", "permissions="),
        auth("the permission `emails` at `/auth`", "permissions=emails", words: ["emails"]),
        auth("an `app_id` of no app at `/auth`", "app_id=7"),
    ]

    private static func keyed(_ name: String, _ fields: [String], words: [String] = []) -> WrongRequest {
        WrongRequest(name, "POST", "/verify", [json] + fields, words: words, hasKeys: true, body: "{}")
    }

    private static func introspected(_ name: String, _ body: String) -> WrongRequest {
        WrongRequest(name, "POST", "/introspect", [form, key], hasKeys: true, body: body)
    }

    private static func revoked(_ name: String, _ body: String, words: [String] = []) -> WrongRequest {
        WrongRequest(name, "POST", "/revocations", [json, key], words: words, hasKeys: true, body: body)
    }

    static let all = bodies + tokens + texts + routes
}

@Suite("Wrong requests", .live)
struct WrongRequestTests {
    /// Every answer, and the page that shows its hints.
    private static let files = ("Tests/Mistakes.txt", "Sources/LLService/LLService.docc/Mistakes.md")

    /// An answer to a wrong request.
    private struct Answer {
        let request, code, detail, hint: String
    }

    private static func answers() async throws -> [Answer] {
        let lines = Locked<[String]>([])
        var logger = Logger(label: "test") { label in
            LineLogHandler(label: label, level: LogLevelSwitch(.trace), format: .json) { line in
                lines.withLock { $0.append(String(decoding: line, as: UTF8.self)) }
            }
        }
        logger.logLevel = .trace
        let nonces = try NonceIssuer(secret: "5c0f0d2ab3f14e67a1b7c9d2e8f40316")
        let keys = try ClientKeys(parsing: Array("backend \(ClientKeysTests.secret)".utf8), place: "clients")
        let open = try await InProcessService(gatewayIsEnabled: true, nonces: nonces, logger: logger)
        let keyed = try await InProcessService(clients: keys, gatewayIsEnabled: true, nonces: nonces, logger: logger)
        var claims = Tokens.claims()
        (claims.name, claims.email) = ("Jane Quinn Doe", "jane.doe@example.com")
        let token = try Tokens.mint(claims)
        var answers: [Answer] = []
        for request in WrongRequest.all {
            let service = request.hasKeys ? keyed : open
            let answer = try service.answer(
                request.method,
                request.target,
                fields: request.fields,
                body: request.body(token)
            )
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
