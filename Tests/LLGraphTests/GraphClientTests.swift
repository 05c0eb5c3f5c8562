import LLHTTP
import LLService
import LLTestSupport
import LimitedLogin
import Testing

@Suite("The Graph client", .live)
struct GraphClientTests {
    let certificates: TestCertificates
    let user: GraphUserID
    let app: AppSecret

    init() throws {
        certificates = try TestCertificates.shared.get()
        user = try #require(GraphUserID("2954873201847263"))
        app = try #require(AppSecret(appID: "123456789012345", secret: "0123456789abcdef0123456789abcdef"))
    }

    /// A client with pauses of zero length.
    private func client(_ issuer: ScriptedIssuer, timeout: Duration = .seconds(20)) throws -> GraphClient {
        let base = String(issuer.url.dropLast("/keys".count))
        return GraphClient(
            configuration: try GraphConfiguration(url: base + "/", version: "v26.0", uninstallURL: base + "/gone/"),
            client: HTTPSClient(trust: .authorities(file: certificates.authorityFile)),
            callTimeout: timeout,
            random: { _ in 0 }
        )
    }

    @Test("Every answer that is no list of permissions ends in the error that names it", arguments: GraphAnswerCase.all)
    func answers(_ answer: GraphAnswerCase) throws {
        let issuer = try ScriptedIssuer { _, peer in try answer.script(peer) }
        defer { issuer.stop() }
        let client = try client(issuer)
        let failure = #expect(throws: GraphFailure.self) { try client.permissions(of: user, app: app) }
        #expect(failure?.error == answer.expected && failure?.retryAfterSeconds == answer.retryAfterSeconds)
        #expect(issuer.requestCount == answer.attempts)
        // The error passes on no text of the answer, except the trace id for Facebook's support.
        #expect(failure.map { "\($0)".contains("secret words") } == false)
    }

    @Test("There are at least 40 scripted answers, and they cover each error of Graph")
    func coverage() {
        #expect(GraphAnswerCase.all.count >= 40)
        let met = Set(GraphAnswerCase.all.map(\.expected))
        // These three have tests of their own.
        #expect(Set(Rejection.Code.ofGraph).subtracting(met) == [.graphRefused, .graphTimedOut, .graphTLSFailed])
    }

    @Test("Permissions are sorted by status, unknown ones are ignored, and the request is exact")
    func permissions() throws {
        let issuer = try ScriptedIssuer(.tls(certificates.good)) { _, peer in
            try peer.answerAndStay(
                """
                {"data":[{"permission":"user_friends","status":"declined"},{"permission":"email","status":"granted"},\
                {"permission":"public_profile","status":"granted","more":[{}]},{"permission":"email","status":"granted"},\
                {"permission":"user_birthday","status":"expired"},{"permission":"user_link","status":"pending"},\
                {"permission":"user_actions.fitness","status":"granted"},{"permission":"../x","status":"granted"}],"paging":{"cursors":{"before":"a","after":"b"}}}
                """
            )
        }
        defer { issuer.stop() }
        let permissions = try client(issuer).permissions(of: user, app: app)
        #expect(permissions.granted == ["email", "public_profile", "user_actions.fitness"])
        #expect(permissions.declined == ["user_friends"] && permissions.expired == ["user_birthday"])
        let needed = ["email", "user_link", "user_friends", "user_likes"]
        #expect(permissions.missing(among: needed, ofLimitedLogin: true) == ["user_link"])
        #expect(permissions.missing(among: needed, ofLimitedLogin: false) == ["user_likes"])
        #expect(permissions.declined(among: needed) == ["user_friends"])
        let request = try #require(issuer.requests.first)
        let token = "123456789012345|0123456789abcdef0123456789abcdef"
        let key = Array("0123456789abcdef0123456789abcdef".utf8)
        let proof = try HMACSHA256.authenticationCode(for: Array(token.utf8).span, key: key.span).hexadecimal
        #expect(request.line == "GET /v26.0/2954873201847263/permissions?appsecret_proof=\(proof) HTTP/1.1")
        #expect(request.value(of: "authorization") == "Bearer \(token)")
    }

    @Test("Both positive answers to a revocation are accepted", arguments: ["true", "{\"success\":true}", " true\n"])
    func revoked(_ body: String) throws {
        let issuer = try ScriptedIssuer { _, peer in try peer.answerAndStay(body) }
        defer { issuer.stop() }
        let client = try client(issuer)
        try client.revoke("email", of: user, app: app)
        try client.revoke(nil, of: user, app: app)
        // Whoever forgets to check a name revokes no other one.
        for name in ["", "a/b", "../x"] {
            #expect(throws: GraphFailure.self) { try client.revoke(name, of: user, app: app) }
        }
        let lines = issuer.requests.map(\.line)
        #expect(lines.first?.hasPrefix("DELETE /v26.0/2954873201847263/permissions/email?appsecret_proof=") == true)
        #expect(lines.last?.hasPrefix("DELETE /v26.0/2954873201847263/permissions?appsecret_proof=") == true)
        #expect(issuer.connectionCount == 2)
    }

    /// Status and body of an answer, the error, and true if Graph may have ended the login all the same.
    static let failedRevocations: [(String, String, Rejection.Code, Bool)] =
        ["false", #"{"success":false}"#, #"{"success":"false"}"#, "0", "null"].map {
            ("200 OK", $0, .graphRefused, false)
        }
        + ["", "{}", #""yes""#, "[true]", "<html>", #"{"success":[]}"#, #"{"success":true"#].map {
            ("200 OK", $0, .graphUnreadableAnswer, true)
        } + [
            ("400 X", #"{"error":{"code":190,"error_subcode":458}}"#, .graphAppNotInstalled, true),
            ("500 X", #"{"error":{"code":1}}"#, .graphUnknownFault, true),
            ("400 X", #"{"error":{"code":9,"is_transient":true}}"#, .graphUnavailable, true),
            ("503 X", "", .graphUnavailable, true),
            ("400 X", #"{"error":{"code":190}}"#, .graphAccessTokenRefused, false),
            ("400 X", #"{"error":{"code":100,"error_subcode":33}}"#, .graphUnknownUser, false),
            ("400 X", #"{"error":{"code":4}}"#, .graphAppThrottled, false),
            ("429 X", "", .graphRateLimited, false), ("404 X", "<html>", .graphUnreadableAnswer, false),
            ("302 Found", "", .graphUnreadableAnswer, false),
        ]

    @Test("A failed revocation is an error that tells if Graph may have ended the login", arguments: failedRevocations)
    func notRevoked(_ status: String, _ body: String, _ expected: Rejection.Code, _ mayBeDone: Bool) throws {
        let issuer = try ScriptedIssuer { _, peer in try peer.answer(status: status, body) }
        defer { issuer.stop() }
        let failure = #expect(throws: GraphFailure.self) { try client(issuer).revoke(nil, of: user, app: app) }
        #expect(failure?.error == expected && failure?.mayBeDone == mayBeDone)
    }

    @Test("If the first attempt may have ended the login, no answer to the second undoes that")
    func secondAttempt() throws {
        let issuer = try ScriptedIssuer { request, peer in
            let body = request.number == 1 ? "" : #"{"error":{"code":190}}"#
            try peer.answer(status: request.number == 1 ? "500 X" : "400 X", body)
        }
        defer { issuer.stop() }
        let failure = #expect(throws: GraphFailure.self) { try client(issuer).revoke(nil, of: user, app: app) }
        #expect(failure?.error == .graphAccessTokenRefused && failure?.mayBeDone == true && issuer.requestCount == 2)
    }

    @Test(
        "Every plausible positive answer to an uninstallation is accepted, and the token is sent in the form",
        arguments: [
            "", "true", "1", "\"true\"", "{}", "{\"success\":true}", "{\"success\":1}", "for (;;);{\"payload\":null}",
        ]
    )
    func uninstalled(_ body: String) throws {
        let issuer = try ScriptedIssuer { _, peer in try peer.answer(body) }
        defer { issuer.stop() }
        try client(issuer).uninstall(idToken: "a.b.c", appID: "123456789012345")
        let request = try #require(issuer.requests.first)
        #expect(request.line == "POST /gone/ HTTP/1.1")
        #expect(String(decoding: request.body, as: UTF8.self) == "id_token=a.b.c&app_id=123456789012345")
        #expect(request.value(of: "authorization") == nil)
    }

    @Test(
        "A failed uninstallation is an error, and is never requested again",
        arguments: [
            ("200 OK", "false", Rejection.Code.graphRefused), ("200 OK", "{\"success\":false}", .graphRefused),
            ("200 OK", "<html>log in</html>", .graphUnreadableAnswer), ("302 Found", "", .graphUnreadableAnswer),
            ("200 OK", "{\"error\":{\"code\":190,\"error_subcode\":458}}", .graphAppNotInstalled),
            ("200 OK", "for (;;);{\"error\":1357004}", .graphError),
            ("400 Bad", "{\"error\":\"invalid_token\"}", .graphError), ("500 X", "", .graphUnavailable),
            ("500 X", "{\"error\":{\"code\":2}}", .graphUnavailable), ("200 OK", "[]", .graphUnreadableAnswer),
        ]
    )
    func notUninstalled(_ status: String, _ body: String, _ expected: Rejection.Code) throws {
        let issuer = try ScriptedIssuer { _, peer in try peer.answer(status: status, body) }
        defer { issuer.stop() }
        let failure = #expect(throws: GraphFailure.self) { try client(issuer).uninstall(idToken: "a", appID: "1") }
        #expect(failure?.error == expected && issuer.requestCount == 1)
    }

    @Test("A request is repeated after a transient fault, even a revocation", arguments: [1, 2])
    func retry(_ code: Int) throws {
        let issuer = try ScriptedIssuer { request, peer in
            if request.number == 3 { return try peer.answerAndStay("true") }
            try peer.answerAndStay(status: "500 X", "{\"error\":{\"code\":\(code)}}")
        }
        defer { issuer.stop() }
        try client(issuer).revoke(nil, of: user, app: app)
        #expect(issuer.requestCount == 3)
    }

    @Test("The pauses are random, grow, and never outlast the deadline")
    func pauses() throws {
        let issuer = try ScriptedIssuer { _, peer in try peer.answerAndStay(status: "500 X") }
        defer { issuer.stop() }
        let bounds = Locked<[UInt64]>([])
        let client = GraphClient(
            configuration: try GraphConfiguration(url: "http://127.0.0.1:\(issuer.port)"),
            client: HTTPSClient(),
            callTimeout: .seconds(300),
            random: { bound in
                bounds.withLock { $0.append(bound) }
                // The first pause is the shortest possible, the second the longest.
                return bounds.withLock { $0.count < 2 ? 0 : .max }
            }
        )
        let failure = #expect(throws: GraphFailure.self) { try client.permissions(of: user, app: app) }
        #expect(failure?.error == .graphUnavailable && bounds.withLock { $0 } == [200_000_000, 400_000_000])
        // The second pause would have outlasted the call.
        #expect(issuer.requestCount == 2)
    }

    @Test("A call ends at its timeout if the answer drips or never comes", arguments: [true, false])
    func timeout(_ drips: Bool) throws {
        let issuer = try ScriptedIssuer(drips ? .plain : .silent) { _, peer in
            try peer.drip("HTTP/1.1 200 OK\r\nX: " + String(repeating: "y", count: 4096), every: .milliseconds(20))
        }
        defer { issuer.stop() }
        let began = MonotonicClock.now()
        let failure = #expect(throws: GraphFailure.self) {
            try client(issuer, timeout: .milliseconds(300)).permissions(of: user, app: app)
        }
        #expect(failure?.error == .graphTimedOut)
        // Without the timeout the HTTPS client's own limit would end the call after 10 s.
        #expect(MonotonicClock.now().duration(since: began) < .seconds(5))
    }

    @Test("An untrusted certificate is a TLS fault; a reset and a closed port are network faults")
    func connections() throws {
        let untrusted = try ScriptedIssuer(.tls(certificates.untrusted)) { _, peer in try peer.answer("true") }
        let resetting = try ScriptedIssuer(.resetting) { _, _ in }
        let closed = try ScriptedIssuer(.plain) { _, _ in }
        closed.stop()
        defer {
            untrusted.stop()
            resetting.stop()
        }
        for (issuer, expected) in [
            (untrusted, Rejection.Code.graphTLSFailed), (resetting, .graphUnreachable), (closed, .graphUnreachable),
        ] {
            let failure = #expect(throws: GraphFailure.self) { try client(issuer).permissions(of: user, app: app) }
            #expect(failure?.error == expected)
        }
        #expect(untrusted.requestCount == 0)
    }

    @Test("A cancelled client ends a call under way at once")
    func cancelled() throws {
        let issuer = try ScriptedIssuer(.plain) { _, peer in peer.waitUntilClosed() }
        defer { issuer.stop() }
        let client = try client(issuer)
        issuer.setScript { _, peer in
            client.cancel()
            peer.waitUntilClosed()
        }
        let failure = #expect(throws: GraphFailure.self) { try client.permissions(of: user, app: app) }
        #expect(failure?.error == .graphUnreachable)
    }

    // Calls with a person's access token.

    private static let token = GraphAccessToken(Array("EAAtoken&=%0123456789".utf8))

    @Test("A token is escaped in the query, and friends are requested by id alone")
    func requests() throws {
        let issuer = try ScriptedIssuer { _, peer in try peer.answerAndStay(#"{"data":{}}"#) }
        defer { issuer.stop() }
        let client = try client(issuer)
        #expect(try client.inspection(of: Self.token, app: app) == Array(#"{"data":{}}"#.utf8))
        _ = try client.me(["id", "friends"], with: Self.token, app: app)
        let paths = issuer.requests.map(\.path)
        #expect(paths.first?.hasPrefix("/v26.0/debug_token?input_token=EAAtoken%26%3D%250123456789&appsecret") == true)
        #expect(paths.last?.hasPrefix("/v26.0/me?fields=id%2Cfriends.limit%282000%29%7Bid%7D&appsecret_proof=") == true)
        #expect(issuer.requests.last?.value(of: "authorization") == "Bearer EAAtoken&=%0123456789")
        #expect("\(Self.token)\(String(reflecting: Self.token))".contains("EAA") == false)
    }

    @Test(
        "Only Graph's own message marks a token as another app's",
        arguments: [
            (100, "(#100) The App_id in the input_token did not match the Viewing App", true),
            (100, "The app_id in the INPUT_TOKEN did not match the viewing app.", true),
            (100, "Invalid appsecret_proof provided in the API argument", false),
            (190, "did not match the Viewing App", false), (100, "", false),
        ]
    )
    func otherApps(_ code: Int, _ message: String, _ isOther: Bool) throws {
        let issuer = try ScriptedIssuer { _, peer in
            try peer.answer(status: "400 X", #"{"error":{"message":"\#(message)","code":\#(code)}}"#)
        }
        defer { issuer.stop() }
        let client = try client(issuer)
        if isOther {
            #expect(try client.inspection(of: Self.token, app: app) == nil)
        } else {
            #expect(throws: GraphFailure.self) { try client.inspection(of: Self.token, app: app) }
        }
    }

    @Test("An answer with 2,000 friends fits, and an answer beyond the limit is refused")
    func sizes() throws {
        let friends = (0..<2_000).map { "{\"id\":\"\(10_000_000_000_000_000 + $0)\"}" }.joined(separator: ",")
        let fits = #"{"id":"1","friends":{"data":[\#(friends)]}}"#
        let tooLong = #"{"id":"1","x":"\#(String(repeating: "y", count: 262_144))"}"#
        let issuer = try ScriptedIssuer { request, peer in
            try peer.answer(request.number == 1 ? fits : tooLong)
        }
        defer { issuer.stop() }
        let client = try client(issuer)
        #expect(try client.me(["id"], with: Self.token, app: app).count == fits.utf8.count)
        let failure = #expect(throws: GraphFailure.self) { try client.me(["id"], with: Self.token, app: app) }
        #expect(failure?.error == .graphUnreadableAnswer)
    }

    @Test(
        "Facebook's trace id is passed on only if it has the form of one",
        arguments: [
            ("\"AbC-_123+/=\"", "AbC-_123+/="), ("\"a b\"", nil), ("\"\\u000a\"", nil), ("\"<b>\"", nil), ("\"\"", nil),
            ("1", nil), ("\"" + String(repeating: "a", count: 65) + "\"", nil),
        ]
    )
    func traceID(_ json: String, _ expected: String?) throws {
        let issuer = try ScriptedIssuer { _, peer in
            try peer.answer(status: "400 X", "{\"error\":{\"code\":10,\"fbtrace_id\":\(json)}}")
        }
        defer { issuer.stop() }
        let failure = #expect(throws: GraphFailure.self) { try client(issuer).permissions(of: user, app: app) }
        #expect(failure?.traceID == expected)
    }
}
