import Testing

@testable import LLService

@Suite("The file of the apps' secrets")
struct AppSecretsTests {
    private static let secret = "0123456789abcdef0123456789abcdef"

    @Test(
        "A malformed file is refused with the line at fault and without any part of a secret",
        arguments: [
            ("", "secrets"), ("# none\n\n", "secrets"), ("1", "line 1"), ("\(secret)", "line 1"),
            ("1 \(secret) x", "line 1"), ("1 short-\(secret.prefix(7))", "line 1"), ("1 \(secret)|", "line 1"),
            ("1 \(secret)\u{e4}", "line 1"), ("\n3 \(secret)", "line 2"), ("\(secret) 1", "line 1"),
            ("1 \(secret)\n1 \(secret)", "line 2"), ("1 \(secret)\n1 other-\(secret)", "line 2"),
            ("1 \(secret)\n2 \(secret)", "line 2"), ("1 \(String(repeating: secret, count: 5))", "line 1"),
        ]
    )
    func malformed(_ text: String, _ place: String) throws {
        let error = #expect(throws: ConfigurationError.self) {
            try AppSecrets(parsing: Array(text.utf8), place: "secrets", appIDs: ["1", "2"])
        }
        let sentence = try #require(error?.description)
        #expect(sentence.contains(place) && !sentence.contains("01234567"))
    }

    @Test("A secret is found by its app, or without an app if it is the only one")
    func choosing() throws {
        let one = try AppSecrets(parsing: Array("1 \(Self.secret)".utf8), place: "secrets", appIDs: ["1"])
        for app in [nil, Array("1".utf8)] { #expect(try one.secret(of: app).appID == "1") }
        #expect(throws: AppSecrets.Missing.unknown) { try one.secret(of: Array("2".utf8)) }
        let two = try AppSecrets(parsing: Array("2 \(Self.secret)".utf8), place: "secrets", appIDs: ["1", "2"])
        #expect(throws: AppSecrets.Missing.unnamed) { try two.secret(of: nil) }
        #expect(throws: AppSecrets.Missing.noSecret) { try two.secret(of: Array("1".utf8)) }
        #expect(throws: AppSecrets.Missing.unknown) { try two.secret(of: []) }
    }
}
