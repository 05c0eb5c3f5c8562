import Foundation
import LLStandIn
import LLTestSupport
import Testing

/// The command line's additions to the hints; the hints themselves are tested in the service's table of wrong requests.
@Suite("verify names a remedy for a bad token", .live)
struct RemedyTests {
    /// A token's changed claims, its header if it is another, the flags of `verify`, and the expected code and words.
    private typealias Case = (
        claims: [(String, String?)], header: String?, flags: [String], code: String, remedy: String
    )

    private static let now = Int64(Date().timeIntervalSince1970)
    private static let nonce = ["--nonce", "n-1"]

    /// A token signed by the published key, with these members in place of the usual ones; nil leaves one out.
    private static func token(_ changes: [(String, String?)], _ header: String?) throws -> String {
        var members = [
            ("iss", "\"https://www.facebook.com\""), ("aud", "\"\(RunningService.appID)\""), ("sub", "\"1234\""),
            ("iat", "\(now)"), ("exp", "\(now + 3600)"), ("jti", "\"j-1\""), ("nonce", "\"n-1\""),
        ]
        for (name, value) in changes {
            members.removeAll { $0.0 == name }
            if let value { members.append((name, value)) }
        }
        let payload = "{" + members.map { "\"\($0.0)\":\($0.1)" }.joined(separator: ",") + "}"
        let key = StandInKeys.current
        return try key.mint(header: header.map { Array($0.utf8) } ?? key.header, payload: Array(payload.utf8))
    }

    private static let cases: [Case] = [
        (
            [("iss", "\"https://appleid.apple.com\"")], #"{"kid":"k","alg":"ES256"}"#, nonce, "unsupported_algorithm",
            "unproven, that \"https://appleid.apple.com\""
        ),
        ([], #"{"alg":"RS256"}"#, nonce, "missing_key_id", "find out who made this one"),
        (
            [("iss", "\"https://accounts.google.com\"")], #"{"alg":"RS256","kid":"google"}"#, nonce, "unknown_key",
            "LIMITED_LOGIN_JWKS_URLS"
        ),
        ([("iss", "\"https://example.com\"")], nil, nonce, "invalid_issuer", "LIMITED_LOGIN_ISSUERS"),
        ([("iss", "\"https://www.facebook.com/\"")], nil, nonce, "invalid_issuer", "a slash at its end"),
        ([("aud", "\"987\"")], nil, nonce, "invalid_audience", "You configured 123456789012345."),
        ([("aud", #""\u001b[2J\u009b\n987""#)], nil, ["--unbound"], "invalid_audience", "You configured"),
        ([("iat", "\(now - 10_900)"), ("exp", "\(now - 7_300)")], nil, nonce, "expired", "2 hours ago"),
        ([("iat", "\(now + 4_000)"), ("exp", "\(now + 7_600)")], nil, nonce, "not_yet_valid", "clock right"),
        (
            [("iat", "\(now - 1_000)")], nil, nonce + ["--max-token-age-seconds", "300"], "too_old",
            "LIMITED_LOGIN_MAX_TOKEN_AGE_SECONDS above 300"
        ),
        ([], nil, ["--nonce", "n-2"], "nonce_mismatch", "the very login"),
        ([], nil, ["--nonce", "a b"], "invalid_nonce", "without white space"),
        ([], nil, nonce + ["--key-thumbprint", "abc"], "invalid_request", "43 digits"),
    ]

    @Test("Each bad token has its code and a sentence that names the remedy, as text and as JSON")
    func remedies() throws {
        let keys = String(decoding: TokenMinter.jwkSet([StandInKeys.current]), as: UTF8.self)
        let folder = try ShortFolder()
        let file = try folder.write("keys.json", keys)
        for (claims, header, flags, code, words) in Self.cases {
            let token = try Self.token(claims, header)
            func verify(_ more: [String] = []) throws -> FinishedRun {
                try FinishedRun(
                    ["verify", "-", "--jwks", file] + flags + more,
                    environment: ["LIMITED_LOGIN_APP_IDS": RunningService.appID, "TZ": "UTC"],
                    input: token
                )
            }
            let run = try verify()
            #expect(run.exitCode == (["invalid_nonce", "invalid_request"].contains(code) ? 2 : 1), "\(run.errors)")
            let lines = run.output.split(separator: "\n")
            #expect(lines.contains { $0.hasPrefix("refused: \(code)") }, "\(run.output)")
            let remedies = lines.filter { $0.hasPrefix("what to do: ") }
            #expect(remedies.count == 1)
            let remedy = try #require(remedies.first).dropFirst("what to do: ".count)
            #expect(remedy.contains(words) && remedy.hasSuffix("."), "\(remedy)")
            #expect(!run.output.unicodeScalars.contains { $0.properties.generalCategory == .control && $0 != "\n" })
            let json = try verify(["--json"])
            let object = try json.object
            // The second run may begin in another minute than the first.
            let untimed = { (text: String) in text.filter { !$0.isNumber } }
            #expect(untimed(try #require(object["cure"] as? String)) == untimed(String(remedy)))
            #expect(object["code"] as? String == code)
        }
    }
}
