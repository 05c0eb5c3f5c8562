import LLHTTP
import LLJOSE
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
        #expect(failure?.error == answer.expected)
        #expect(failure?.retryAfterSeconds == answer.retryAfterSeconds)
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
        #expect(permissions.granted.map(\.name) == ["email", "public_profile", "user_actions.fitness"])
        #expect(permissions.declined.map(\.name) == ["user_friends"])
        #expect(permissions.expired.map(\.name) == ["user_birthday"])
        let needed = ["email", "user_link", "user_friends", "user_birthday"].compactMap { GraphPermission($0) }
        #expect(permissions.missing(among: needed).map(\.name) == ["user_link", "user_birthday"])
        #expect(permissions.declined(among: needed).map(\.name) == ["user_friends"])
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
        try client.revoke(GraphPermission("email"), of: user, app: app)
        try client.revoke(nil, of: user, app: app)
        let lines = issuer.requests.map(\.line)
        #expect(lines.first?.hasPrefix("DELETE /v26.0/2954873201847263/permissions/email?appsecret_proof=") == true)
        #expect(lines.last?.hasPrefix("DELETE /v26.0/2954873201847263/permissions?appsecret_proof=") == true)
        #expect(issuer.connectionCount == 2)
    }

    @Test(
        "A negative answer to a revocation is an error, and any other answer is unreadable",
        arguments: [
            ("false", Rejection.Code.graphRefused), ("{\"success\":false}", .graphRefused),
            ("{\"success\":\"false\"}", .graphRefused),
            ("0", .graphRefused), ("null", .graphRefused), ("", .graphUnreadableAnswer), ("{}", .graphUnreadableAnswer),
            ("\"yes\"", .graphUnreadableAnswer), ("[true]", .graphUnreadableAnswer), ("<html>", .graphUnreadableAnswer),
            ("{\"success\":[]}", .graphUnreadableAnswer), ("{\"success\":true", .graphUnreadableAnswer),
        ]
    )
    func notRevoked(_ body: String, _ expected: Rejection.Code) throws {
        let issuer = try ScriptedIssuer { _, peer in try peer.answer(body) }
        defer { issuer.stop() }
        let failure = #expect(throws: GraphFailure.self) { try client(issuer).revoke(nil, of: user, app: app) }
        #expect(failure?.error == expected)
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
            ("400 Bad", "{\"error\":\"invalid_token\"}", .graphError),
            ("500 X", "", .graphUnavailable), ("500 X", "{\"error\":{\"code\":2}}", .graphUnavailable),
            ("200 OK", "[]", .graphUnreadableAnswer),
        ]
    )
    func notUninstalled(_ status: String, _ body: String, _ expected: Rejection.Code) throws {
        let issuer = try ScriptedIssuer { _, peer in try peer.answer(status: status, body) }
        defer { issuer.stop() }
        let failure = #expect(throws: GraphFailure.self) { try client(issuer).uninstall(idToken: "a", appID: "1") }
        #expect(failure?.error == expected)
        #expect(issuer.requestCount == 1)
    }

    @Test("A request is repeated after a transient fault, even a revocation", arguments: [1, 2])
    func retry(_ code: Int) throws {
        let issuer = try ScriptedIssuer { request, peer in
            if request.number < 3 {
                try peer.answerAndStay(status: "500 X", "{\"error\":{\"code\":\(code)}}")
            } else {
                try peer.answerAndStay("true")
            }
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
                return pause(bounds.withLock { $0.count })
            }
        )
        let failure = #expect(throws: GraphFailure.self) { try client.permissions(of: user, app: app) }
        #expect(failure?.error == .graphUnavailable)
        #expect(bounds.withLock { $0 } == [200_000_000, 400_000_000])
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

    @Test(
        "Facebook's trace id is passed on only if it has the form of one",
        arguments: [
            ("\"AbC-_123+/=\"", "AbC-_123+/="), ("\"a b\"", nil), ("\"\\u000a\"", nil), ("\"<b>\"", nil), ("\"\"", nil),
            ("1", nil),
            ("\"" + String(repeating: "a", count: 65) + "\"", nil),
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

/// The first pause is the shortest possible, the second the longest.
private func pause(_ count: Int) -> UInt64 { count < 2 ? 0 : .max }
