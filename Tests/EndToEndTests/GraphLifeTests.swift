import Foundation
import LLTestSupport
import Testing

@Suite("Access tokens and permissions, from the service and from the command line", .live)
struct GraphLifeTests {
    private static let secret = "0123456789abcdef0123456789abcdef"
    private static let user = "2954873201847263"
    private static let person =
        #"{"user":"77","scopes":["public_profile","email"],"name":"Zoe Quartz","email":"zoe.quartz@example.com"}"#
    private let folder: ShortFolder
    private let issuer: IssuerProcess
    private let environment: [String: String]

    init() throws {
        folder = try ShortFolder()
        issuer = try IssuerProcess("--app-secret", Self.secret)
        environment = [
            "app_ids": RunningService.appID, "access_tokens": "accept", "graph_url": "http://\(issuer.address)",
            "app_secrets_file": try folder.write("secrets", "\(RunningService.appID) \(Self.secret)\n"),
        ]
    }

    private func run(
        _ arguments: [String],
        _ changes: [String: String] = [:],
        input: String = ""
    ) throws -> FinishedRun {
        try FinishedRun(arguments, environment: environment.merging(changes) { $1 }, input: input)
    }

    @Test("verify and the service judge an access token by Graph; verify recognises it by its shape or by an option")
    func verify() throws {
        let good = try issuer.accessToken(Self.person)
        let object = try run(["verify", "-", "--subject", "77", "--json"], input: good + "\n").object
        #expect(object["accepted"] as? Bool == true)
        #expect((object["access_token"] as? [String: Any])?["user_id"] as? String == "77")
        #expect((object["checks"] as? [[String: String]])?.allSatisfy { $0["outcome"] == "passed" } == true)
        let (away, off) = (["graph_url": "http://127.0.0.1:1"], ["access_tokens": "refuse"])
        let (revoked, foreign) = (try issuer.accessToken("{}", "?revoked"), try issuer.accessToken(#"{"app":"42"}"#))
        let rows: [(token: String, flags: [String], changes: [String: String], code: Int32, words: [String])] = [
            (good, [], [:], 0, ["ok       Graph reads the token", "name: Zoe Quartz"]),
            (revoked, [], [:], 1, ["refused: access_token_revoked", "log in again"]),
            (foreign, [], [:], 1, ["refused: invalid_audience", "LIMITED_LOGIN_APP_IDS"]),
            (good, ["--subject", "78"], [:], 1, ["refused: subject_mismatch", "that subject"]),
            (good, [], off, 1, ["refused: access_token_not_allowed"]), (good, ["--nonce", "n"], [:], 2, []),
            (good, [], away, 3, ["graph_unreachable"]),
        ]
        for (token, flags, changes, code, words) in rows {
            let file = try folder.write("token", token)
            let run = try run(["verify", "--access-token-file", file] + flags, changes)
            #expect(run.exitCode == code, "\(run)")
            for word in words { #expect((run.output + run.errors).contains(word), "\(run)") }
        }
        let service = try RunningService(issuer, environment)
        let (endless, dead) = (try issuer.accessToken(#"{"expiry":0}"#), try issuer.accessToken(Self.person, "?dead"))
        for (token, code) in [
            (good, nil), (endless, nil), (revoked, "access_token_revoked"), (dead, "access_token_invalid"),
        ] as [(String, String?)] {
            let answer = try service.exchange(RunningService.request(#"{"access_token":"\#(token)"}"#))
            #expect(answer.status == (code == nil ? 200 : 401) && answer.code == code, "\(answer.text)")
        }
    }

    @Test("permissions lists and revokes, with the documented exit codes; explain tells the remedy of Graph's errors")
    func permissions() throws {
        _ = try issuer.post("/tokens?declined=user_friends&expired=user_link", #"{"email":"a@b.example"}"#)
        func permissions(_ words: String..., changes: [String: String] = [:]) throws -> FinishedRun {
            try run(["permissions"] + words, changes)
        }
        let list = try permissions("list", Self.user, "--need", "email,user_friends,user_link,user_birthday")
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
        let json = try permissions("list", Self.user, "--app-id", RunningService.appID, "--json", "--need", "user_link")
        let absent = #""missing":["user_link"],"declined_requested":[],"outside_limited_login":[]}"#
        #expect(json.output.contains(absent), "\(json.errors)")
        let file = try folder.write("token", issuer.accessToken(Self.person))
        for (words, output, verdict) in [
            (["email"], "revoked: email\n", "name: Zoe"), (["--login"], "revoked: the login\n", "access_token_revoked"),
        ] {
            #expect(try run(["permissions", "revoke", "77"] + words).output == output)
            let judged = try run(["verify", "--access-token-file", file]).output
            #expect(judged.contains(verdict) && !judged.contains("email: zoe"), "\(judged)")
        }
        #expect(try permissions("list", "77").output.hasPrefix("granted: none\n"))
        let unknown = try permissions("list", "78")
        #expect(unknown.exitCode == 1)
        #expect(unknown.errors.contains("graph_unknown_user") && unknown.errors.contains("fbtrace_id StandIn"))
        #expect(try permissions("list", "77", changes: ["graph_url": "http://127.0.0.1:1"]).exitCode == 3)
        let answer = #"{"error":{"message":"about Jane","type":"OAuthException","code":190,"error_subcode":463}}"#
        let told = try FinishedRun(["explain", "graph-error", "-"], input: answer)
        #expect(told.exitCode == 0 && told.output.hasPrefix("log in again: "), "\(told.errors)")
        #expect(told.output.contains("graph_session_expired") && !told.output.contains("Jane"))
    }
}
