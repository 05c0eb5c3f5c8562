import Foundation
import LLTestSupport
import Testing

@Suite("Permissions, from the service and from the command line", .live)
struct GraphLifeTests {
    private static let secret = "0123456789abcdef0123456789abcdef"
    private static let user = "2954873201847263"

    private static func environment(_ issuer: IssuerProcess, _ secrets: String) -> [String: String] {
        [
            "LIMITED_LOGIN_APP_SECRETS_FILE": secrets, "LIMITED_LOGIN_GRAPH_URL": "http://\(issuer.address)",
            "LIMITED_LOGIN_UNINSTALL_URL": "http://\(issuer.address)/platform/uninstall/",
        ]
    }

    @Test("The command line lists and revokes, with the documented exit codes")
    func commandLine() throws {
        let issuer = try IssuerProcess(arguments: ["--app-secret", Self.secret])
        let folder = try ShortFolder()
        let secrets = try folder.write("secrets", "\(RunningService.appID) \(Self.secret)\n")
        var environment = Self.environment(issuer, secrets)
        environment["LIMITED_LOGIN_APP_IDS"] = RunningService.appID
        _ = try issuer.post("/tokens?declined=user_friends&expired=user_link", #"{"email":"a@b.example"}"#)
        func run(_ arguments: [String], _ more: [String: String] = [:]) throws -> FinishedRun {
            try FinishedRun(["permissions"] + arguments, environment: environment.merging(more) { $1 })
        }
        let list = try run(["list", Self.user, "--need", "email,user_friends,user_link,user_birthday"])
        #expect(list.exitCode == 0, "\(list.errors)")
        #expect(
            list.output == """
                granted: email, openid, public_profile
                declined: user_friends
                expired: user_link
                worth asking for: user_link, user_birthday
                needed but declined: user_friends
                not for Limited Login to ask: none

                """
        )
        let json = try run(["list", Self.user, "--app-id", RunningService.appID, "--json", "--need", "user_link"])
        let absent = #""missing":["user_link"],"declined_requested":[],"outside_limited_login":[]}"#
        #expect(json.output.contains(absent), "\(json.errors)")
        #expect(try run(["revoke", Self.user, "email"]).output == "revoked: email\n")
        #expect(try run(["list", Self.user]).output.contains("granted: openid, public_profile\n"))
        #expect(try run(["revoke", Self.user, "--login"]).output == "revoked: the login\n")
        #expect(try run(["list", Self.user]).output.hasPrefix("granted: none\n"))

        let unknown = try run(["list", "77"])
        #expect(unknown.exitCode == 1)
        #expect(unknown.errors.contains("graph_unknown_user") && unknown.errors.contains("fbtrace_id StandIn"))
        let away = try run(["list", Self.user], ["LIMITED_LOGIN_GRAPH_URL": "http://127.0.0.1:1"])
        #expect(away.exitCode == 3)
        #expect(away.errors.contains("graph_unreachable"))
    }

    @Test("The stand-in's Graph answers a missing or a wrong proof as Facebook's does")
    func standIn() throws {
        let issuer = try IssuerProcess()
        let token = try issuer.token()
        let form = "id_token=\(token)&app_id="
        func get(_ fields: String = "", _ path: String = "/v26.0/\(Self.user)/permissions") throws -> String {
            try issuer.exchange("GET \(path) HTTP/1.1\r\nHost: i\r\n\(fields)\r\n").text
        }
        #expect(try get().contains("\"code\":2500"))
        #expect(try get("Authorization: Bearer 1|wrong\r\n").contains("\"code\":190"))
        let bearer = "Authorization: Bearer \(RunningService.appID)|stand-in-app-secret\r\n"
        #expect(try get(bearer).contains("appsecret_proof"))
        #expect(try issuer.post("/platform/uninstall/", form + RunningService.appID).text == "{\"success\":true}")
        #expect(try issuer.post("/platform/uninstall/", form + "42").text.contains("\"code\":190"))
        let old = try issuer.token(#"{"iat":1700000000}"#)
        let expired = try issuer.post("/platform/uninstall/", "id_token=\(old)&app_id=\(RunningService.appID)")
        #expect(expired.text.contains("\"error_subcode\":463"))
        let forged = token.dropLast(8) + "AAAAAAAA"
        let refused = try issuer.post("/platform/uninstall/", "id_token=\(forged)&app_id=\(RunningService.appID)")
        #expect(refused.text.contains("Bad signature"))
    }
}
