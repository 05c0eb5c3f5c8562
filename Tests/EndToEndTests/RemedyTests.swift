import Foundation
import LLStandIn
import LLTestSupport
import Testing

/// The command line's additions to the hints; the hints themselves are tested in the service's table of wrong requests.
@Suite("verify names a remedy for a bad token", .live)
struct RemedyTests {
    private static let now = Int64(Date().timeIntervalSince1970)
    private static let nonce = ["--nonce", "n-1"]
    private static let kid = #"{"alg":"RS256","kid":"google"}"#
    private static let es256 = #"{"alg":"ES256","kid":"k"}"#
    private static let limit = "LIMITED_LOGIN_MAX_TOKEN_AGE_SECONDS above 300"

    /// A token's changed claims, its header if it is another, the flags of `verify`, and the expected code and words.
    private typealias Case = (
        claims: [String: String], header: String?, flags: [String], code: String, words: String
    )

    private static let cases: [Case] = [
        (["iss": "\"https://a.example\""], es256, nonce, "unsupported_algorithm", "unproven, that"),
        ([:], #"{"alg":"RS256"}"#, nonce, "missing_key_id", "find out who made this one"),
        (["iss": "\"https://a.example\""], kid, nonce, "unknown_key", "LIMITED_LOGIN_JWKS_URLS"),
        (["iss": "\"https://example.com\""], nil, nonce, "invalid_issuer", "LIMITED_LOGIN_ISSUERS"),
        (["iss": "\"https://www.facebook.com/\""], nil, nonce, "invalid_issuer", "a slash at its end"),
        (["aud": "\"987\""], nil, nonce, "invalid_audience", "You configured 123456789012345."),
        (["aud": #""\u001b[2J\u009b\n987""#], nil, ["--unbound"], "invalid_audience", "You configured"),
        (["iat": "\(now - 10_900)", "exp": "\(now - 7_300)"], nil, nonce, "expired", "2 hours ago"),
        (["iat": "\(now + 4_000)", "exp": "\(now + 7_600)"], nil, nonce, "not_yet_valid", "clock right"),
        (["iat": "\(now - 1_000)"], nil, nonce + ["--max-token-age-seconds", "300"], "too_old", limit),
        ([:], nil, ["--nonce", "n-2"], "nonce_mismatch", "the very login"),
        ([:], nil, ["--nonce", "a b"], "invalid_nonce", "without white space"),
        ([:], nil, nonce + ["--key-thumbprint", "abc"], "invalid_request", "43 digits"),
    ]

    @Test("Each bad token has its code and a sentence that names the remedy")
    func remedies() throws {
        let key = StandInKeys.current
        let folder = try ShortFolder()
        let file = try folder.write("keys.json", String(decoding: TokenMinter.jwkSet([key]), as: UTF8.self))
        for (changes, header, flags, code, words) in Self.cases {
            let members = [
                "iss": "\"https://www.facebook.com\"", "aud": "\"\(RunningService.appID)\"", "sub": "\"1234\"",
                "iat": "\(Self.now)", "exp": "\(Self.now + 3_600)", "jti": "\"j-1\"", "nonce": "\"n-1\"",
            ].merging(changes) { $1 }
            let payload = "{" + members.map { "\"\($0)\":\($1)" }.joined(separator: ",") + "}"
            let run = try FinishedRun(
                ["verify", "-", "--jwks", file] + flags,
                environment: ["app_ids": RunningService.appID, "TZ": "UTC"],
                input: key.mint(header: header.map { Array($0.utf8) }, payload: Array(payload.utf8))
            )
            #expect(run.exitCode == (["invalid_nonce", "invalid_request"].contains(code) ? 2 : 1), "\(run.errors)")
            let lines = run.output.split(separator: "\n")
            #expect(lines.contains { $0.hasPrefix("refused: \(code)") }, "\(run.output)")
            let remedies = lines.filter { $0.hasPrefix("what to do: ") }
            #expect(remedies.count == 1 && remedies[0].contains(words) && remedies[0].hasSuffix("."), "\(remedies)")
            #expect(!run.output.unicodeScalars.contains { $0.properties.generalCategory == .control && $0 != "\n" })
        }
    }
}
