import Foundation
import LLJOSE
import LLStandIn
import LLTestSupport
import Testing

@Suite("verify names a remedy for a bad token", .live)
struct RemedyTests {
    /// One bad token, the flags of verify, and the expected code and words of the remedy.
    struct Case: CustomTestStringConvertible, Sendable {
        let name: String
        let code: String
        let remedy: String
        var flags = ["--nonce", "n-1"]
        let token: @Sendable () throws -> String

        var testDescription: String { name }
    }

    private static let now = Int64(Date().timeIntervalSince1970)

    /// A token signed by the published key, with these members in place of the usual ones; nil leaves one out.
    private static func token(_ changes: [(String, String?)] = [], header: String? = nil) throws -> String {
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

    private static func header(_ members: String) -> String {
        "{\"kid\":\"\(StandInKeys.current.keyID)\"\(members.isEmpty ? "" : ",")\(members)}"
    }

    static let malformed: [Case] = [
        Case(name: "nothing", code: "malformed_token", remedy: "AuthenticationToken.current.tokenString") { " " },
        Case(name: "a whole header field", code: "malformed_token", remedy: "begins with eyJ") {
            "Bearer \(try token())"
        },
        Case(name: "quotation marks", code: "malformed_token", remedy: "quotation marks") { "\"\(try token())\"" },
        Case(name: "a file's path", code: "malformed_token", remedy: "--token-file") { "/tmp/token" },
        Case(name: "a file's path from here", code: "malformed_token", remedy: "--token-file") { "./tokens/good.jwt" },
        Case(name: "a printed optional", code: "malformed_token", remedy: "Unwrap") { "Optional(\(try token()))" },
        Case(name: "a wrapped token", code: "malformed_token", remedy: "Join the lines") {
            let whole = try token()
            return "\(whole.prefix(100))\n\(whole.dropFirst(100))"
        },
        Case(name: "percent-encoding", code: "malformed_token", remedy: "Undo the percent-encoding") {
            try token().replacing(".", with: "%2E")
        },
        Case(name: "plain base64", code: "malformed_token", remedy: "plain base64") { "\(try token())==" },
        Case(name: "a middle cut out", code: "malformed_token", remedy: "cut out its middle") {
            "\(try token().prefix(40))...\(try token().suffix(40))"
        },
        Case(name: "the first two parts", code: "malformed_token", remedy: "ends too early") {
            try token().split(separator: ".").prefix(2).joined(separator: ".")
        },
        Case(name: "the beginning", code: "malformed_token", remedy: "ends too early") {
            String(try token().prefix(50))
        },
        Case(name: "two tokens", code: "malformed_token", remedy: "white space within") {
            "\(try token()) \(try token())"
        },
        Case(name: "no signature", code: "malformed_token", remedy: "up to its last character") {
            try token().split(separator: ".").prefix(2).joined(separator: ".") + "."
        },
        Case(name: "four parts", code: "malformed_token", remedy: "two tokens pasted") { "\(try token()).x" },
        Case(name: "the JSON around it", code: "malformed_token", remedy: "not the JSON around it") {
            "{\"id_token\":\"\(try token())\"}"
        },
        Case(name: "far too long", code: "token_too_long", remedy: "user_friends") {
            "\(try token())\(String(repeating: "a", count: 33_000))"
        },
        Case(name: "a damaged header", code: "malformed_token", remedy: "unchanged") { "x\(try token())" },
        Case(name: "an access token", code: "not_an_id_token", remedy: "not AccessToken.current.tokenString") {
            "EAABwzLixnjYBO0123456789abcdefghijklmnopqrstuvwxyz"
        },
        Case(name: "an encrypted token", code: "not_an_id_token", remedy: "neither encrypts") {
            "eyJh.eyJh.eyJh.eyJh.eyJh"
        },
        Case(name: "a token of OAuth", code: "not_an_id_token", remedy: "another kind of token") {
            try token(header: header(#""alg":"RS256","typ":"at+jwt""#))
        },
        Case(name: "alg none", code: "unsupported_algorithm", remedy: "without a signature") {
            try token(header: header(#""alg":"none""#))
        },
        Case(name: "a shared secret", code: "unsupported_algorithm", remedy: "shared secret") {
            try token(header: header(#""alg":"HS256""#))
        },
        Case(
            name: "another algorithm",
            code: "unsupported_algorithm",
            remedy: "unproven, that \"https://appleid.apple.com\""
        ) {
            try token([("iss", "\"https://appleid.apple.com\"")], header: header(#""alg":"ES256""#))
        },
        Case(name: "crit", code: "unsupported_critical_header", remedy: "demand no extension") {
            try token(header: header(#""alg":"RS256","crit":["exp"]"#))
        },
        Case(name: "no key id", code: "missing_key_id", remedy: "find out who made this one") {
            try token(header: #"{"alg":"RS256"}"#)
        },
    ]

    static let claims: [Case] = [
        Case(name: "a key nobody publishes", code: "unknown_key", remedy: "limited-login keys") {
            try token(header: #"{"alg":"RS256","kid":"other"}"#)
        },
        Case(name: "Google's token", code: "unknown_key", remedy: "LIMITED_LOGIN_JWKS_URLS") {
            try token([("iss", "\"https://accounts.google.com\"")], header: #"{"alg":"RS256","kid":"google"}"#)
        },
        Case(name: "one changed character", code: "invalid_signature", remedy: "was changed") {
            let other = try token([("sub", "\"4321\"")]).split(separator: ".")
            let parts = try token().split(separator: ".")
            return "\(parts[0]).\(other[1]).\(parts[2])"
        },
        Case(name: "another issuer", code: "invalid_issuer", remedy: "LIMITED_LOGIN_ISSUERS") {
            try token([("iss", "\"https://example.com\"")])
        },
        Case(name: "a slash too many", code: "invalid_issuer", remedy: "a slash at its end") {
            try token([("iss", "\"https://www.facebook.com/\"")])
        },
        Case(
            name: "another app",
            code: "invalid_audience",
            remedy: "You configured 123456789012345."
        ) { try token([("aud", "\"987\"")]) },
        Case(name: "several apps", code: "invalid_audience", remedy: "for several") {
            try token([("aud", "[\"\(RunningService.appID)\",\"987\"]")])
        },
        Case(name: "expired", code: "expired", remedy: "2 hours ago") {
            try token([("iat", "\(now - 10_900)"), ("exp", "\(now - 7_300)")])
        },
        Case(name: "from the future", code: "not_yet_valid", remedy: "clock right") {
            try token([("iat", "\(now + 4_000)"), ("exp", "\(now + 7_600)")])
        },
        Case(
            name: "too old",
            code: "too_old",
            remedy: "LIMITED_LOGIN_MAX_TOKEN_AGE_SECONDS above 300",
            flags: ["--nonce", "n-1", "--max-token-age-seconds", "300"]
        ) { try token([("iat", "\(now - 1_000)")]) },
        Case(name: "no expiry", code: "missing_claim", remedy: "mend its claim exp") { try token([("exp", nil)]) },
        Case(name: "an expiry in words", code: "malformed_claim", remedy: "sound exp") {
            try token([("exp", "\"soon\"")])
        },
        Case(name: "no nonce", code: "missing_claim", remedy: "LoginConfiguration") { try token([("nonce", nil)]) },
        Case(name: "an empty nonce", code: "nonce_mismatch", remedy: "LoginConfiguration(tracking:nonce:)") {
            try token([("nonce", "\"\"")])
        },
        Case(name: "another login", code: "nonce_mismatch", remedy: "the very login", flags: ["--nonce", "n-2"]) {
            try token()
        },
        Case(name: "a hashed nonce", code: "nonce_mismatch", remedy: "as raw_nonce", flags: ["--nonce", "secret"]) {
            try token([("nonce", "\"2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b\"")])
        },
        Case(name: "a nonce not hashed", code: "nonce_mismatch", remedy: "as nonce", flags: ["--raw-nonce", "n-1"]) {
            try token()
        },
        Case(
            name: "a nonce of two words",
            code: "invalid_nonce",
            remedy: "without white space",
            flags: ["--nonce", "a b"]
        ) {
            try token()
        },
        Case(
            name: "refreshed silently",
            code: "nonce_mismatch",
            remedy: "give subject alone",
            flags: ["--nonce", "of-the-login", "--subject", "1234"]
        ) { try token([("nonce", "\"6F1B5A3C-0D2E-4F6A-9B7C-8D9E0F1A2B3C\"")]) },
        Case(
            name: "another person's refresh",
            code: "subject_mismatch",
            remedy: "new login",
            flags: ["--nonce", "n-1", "--subject", "99"]
        ) { try token() },
        Case(
            name: "another device",
            code: "key_thumbprint_mismatch",
            remedy: "another device's",
            flags: ["--nonce", "n-1", "--key-thumbprint", otherThumbprint]
        ) { try token([("cnf", "{\"jkt\":\"0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I\"}")]) },
        Case(
            name: "no device",
            code: "key_thumbprint_mismatch",
            remedy: "older than 18.1",
            flags: ["--subject", "1234", "--key-thumbprint", otherThumbprint]
        ) { try token() },
        Case(
            name: "no thumbprint",
            code: "invalid_request",
            remedy: "43 digits",
            flags: ["--nonce", "n-1", "--key-thumbprint", "abc"]
        ) { try token() },
        Case(
            name: "another access token",
            code: "at_hash_mismatch",
            remedy: "the very login",
            flags: ["--nonce", "n-1", "--access-token-file", accessToken]
        ) { try token([("at_hash", "\"AAAAAAAAAAAAAAAAAAAAAA\"")]) },
        Case(name: "another person", code: "subject_mismatch", remedy: "new login", flags: ["--subject", "99"]) {
            try token()
        },
        Case(
            name: "not limited",
            code: "tracking_not_allowed",
            remedy: "LoginConfiguration(tracking: .limited)",
            flags: ["--nonce", "n-1", "--tracking", "limited"]
        ) { try token([("at_hash", "\"abc\"")]) },
    ]

    private static let otherThumbprint = "2oiHBxiRrPn1mgPqWLfGSB9M1lRrDCUwmk3SyfjAY1c"

    /// The path of a file with an access token.
    private static let accessToken: String = {
        let file = FileManager.default.temporaryDirectory.appending(path: "access-token-\(UUID().uuidString)")
        try? Data("jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y\n".utf8).write(to: file)
        return file.path
    }()

    /// The path of a file with the published keys.
    private static let keys: String = {
        let file = FileManager.default.temporaryDirectory.appending(path: "cure-keys-\(UUID().uuidString).json")
        try? Data(TokenMinter.jsonWebKeySet([StandInKeys.current])).write(to: file)
        return file.path
    }()

    private static func verify(_ token: String, _ flags: [String]) throws -> FinishedRun {
        try FinishedRun(
            ["verify", "-", "--jwks", keys] + flags,
            environment: ["LIMITED_LOGIN_APP_IDS": RunningService.appID, "TZ": "UTC"],
            input: token
        )
    }

    @Test("Each bad token has its code and a sentence that names the remedy", arguments: malformed + claims)
    func remedy(_ bad: Case) throws {
        let token = try bad.token()
        let run = try Self.verify(token, bad.flags)
        let isOfQuestion = ["invalid_nonce", "invalid_request"].contains(bad.code)
        #expect(run.exitCode == (isOfQuestion ? 2 : 1), "\(run.output)\(run.errors)")
        let lines = run.output.split(separator: "\n")
        #expect(lines.contains { $0.hasPrefix("refused: \(bad.code)") }, "\(run.output)")
        let remedies = lines.filter { $0.hasPrefix("what to do: ") }
        #expect(remedies.count == 1)
        let remedy = try #require(remedies.first).dropFirst("what to do: ".count)
        #expect(remedy.contains(bad.remedy), "\(remedy)")
        // The service's hint is one sentence. The token and the configuration add at most one more.
        #expect(remedy.hasSuffix(".") || remedy.hasSuffix("?"))
        #expect(remedy.dropLast().components(separatedBy: ". ").count <= 2, "\(remedy)")
        let json = try Self.verify(token, bad.flags + ["--json"])
        let object = try #require(try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any])
        // The second run may begin in another minute than the first.
        let untimed = { (text: String) in text.filter { !$0.isNumber } }
        #expect(untimed(try #require(object["cure"] as? String)) == untimed(String(remedy)))
        #expect(object["code"] as? String == bad.code)
    }

    @Test("There are at least 40 bad tokens with at least 20 different remedies and 17 codes")
    func variety() throws {
        let cases = Self.malformed + Self.claims
        #expect(cases.count >= 40)
        #expect(Set(cases.map(\.remedy)).count >= 20)
        #expect(Set(cases.map(\.code)).count >= 17)
    }

    @Test("A hostile claim sends no control characters to the terminal")
    func hostileClaims() throws {
        let token = try Self.token([("aud", #""\u001b[2J\u009b\n987""#)])
        let run = try Self.verify(token, ["--unbound"])
        #expect(run.exitCode == 1)
        #expect(
            !run.output.unicodeScalars.contains { ($0.value < 0x20 && $0 != "\n") || (0x7f...0x9f).contains($0.value) }
        )
        let good = try Self.token([("name", #""\u001b[31mJane\u0007""#)])
        let accepted = try Self.verify(good, ["--unbound"])
        #expect(accepted.exitCode == 0)
        #expect(!accepted.output.contains("\u{1b}"))
    }
}
