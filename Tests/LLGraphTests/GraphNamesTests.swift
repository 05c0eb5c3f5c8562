import LLBytes
import LLService
import Testing

@Suite("Names from a caller reach Graph only in the right form")
struct GraphNamesTests {
    @Test("A user id is 1 to 20 digits without a leading zero")
    func users() {
        let longest = String(repeating: "9", count: 20)
        for text in ["1", "10", "2954873201847263", longest] { #expect(GraphUserID(text)?.text == text) }
        for text in [
            "", "me", "1/x", "1?a", "%31", "1 ", "-1", "+1", "1\n", "１", longest + "9", "..", "1.0", "0", "00", "01",
            "000444", "-0",
        ] { #expect(GraphUserID(text) == nil, "\(text)") }
    }

    @Test("A permission has 1 to 64 characters: words of [a-z_] with full stops between them")
    func permissions() {
        let long = String(repeating: "a", count: 62)
        for text in ["email", "user_friends", "_", "user_actions.fitness", "a.b.c", long + "aa", long + ".b"] {
            #expect(PermissionName.isValid(text), "\(text)")
        }
        for text in [
            "", "Email", ".", "..", "...", ".a", "a.", "a..b", "./a", "a/..", "a/b", "a?b", "%65", "%2e", "é", "a b",
            "a1", long + "aaa", long + "aa.",
        ] { #expect(!PermissionName.isValid(text), "\(text)") }
    }

    @Test("A secret has 16 to 128 characters of [A-Za-z0-9_-]")
    func secrets() {
        for (secret, isOne) in [
            ("0123456789abcdef", true), ("0123456789abcde", false), (String(repeating: "A", count: 128), true),
            (String(repeating: "A", count: 129), false), ("0123456789abcde|", false), ("0123456789 abcdef", false),
            ("0123456789abcdé0", false), ("0123456789abcd\r\n", false),
        ] { #expect((AppSecret(appID: "1", secret: secret) != nil) == isOne, "\(secret)") }
    }

    @Test("The description of a secret does not contain it")
    func redacted() throws {
        let text = "0123456789abcdef"
        let secret = try #require(AppSecret(appID: "1", secret: text))
        var dumped = ""
        dump(secret, to: &dumped)
        for shown in ["\(secret)", String(reflecting: secret), String(reflecting: [secret]), dumped] {
            #expect(!shown.contains(text))
        }
    }

    @Test("A version is v and two numbers")
    func versions() {
        for text in ["v26.0", "v1.10", "v0.0"] { #expect(GraphConfiguration.isVersion(text)) }
        for text in ["", "26.0", "v26", "v26.", "v.0", "v26.0.1", "v26.0/", "v２.0", "V26.0", "v12345.0"] {
            #expect(!GraphConfiguration.isVersion(text), "\(text)")
        }
    }
}
