import Testing

@testable import LLService

@Suite("The secrets of webhooks")
struct WebhookSecretsTests {
    private static let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

    @Test("The signature equals the public example of Standard Webhooks")
    func vector() throws {
        let secrets = try WebhookSecrets(parsing: Array(Self.secret.utf8), place: "file")
        let signature = try secrets.signature(
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
            timestamp: 1_614_265_330,
            body: Array(#"{"test": 2432232314}"#.utf8)
        )
        #expect(signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
    }

    @Test(
        "A malformed file is refused with the line at fault and without any part of a secret",
        arguments: [
            ("", "file"), ("# none\n\n", "file"), ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "line 1"), ("whsec_", "line 1"),
            ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS", "line 1"), ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa==", "line 1"),
            ("whsec_MfKQ9r8GKYqrTwjU", "line 1"), (" \(secret)", "line 1"), ("\(secret) ", "line 1"),
            ("WHSEC_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "line 1"), ("\(secret)\n\(secret)", "line 2"),
            ("\(secret)\nx", "line 2"), ("  \n\(secret)", "line 1"), ("\(secret)\n # old", "line 2"),
            ("whsec_-_KQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "line 1"),
            ("whsec_\(String(repeating: "AAAA", count: 22))", "line 1"),
            ("\(secret)\nwhsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSx\nwhsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSy", "line 3"),
        ]
    )
    func malformed(text: String, place: String) throws {
        let error = #expect(throws: ConfigurationError.self) {
            try WebhookSecrets(parsing: Array(text.utf8), place: "file")
        }
        let sentence = try #require(error?.description)
        #expect(sentence.contains(place) && !sentence.contains("9r8GKY"))
    }

    @Test("Comments, empty lines and carriage returns are ignored, and no description shows a secret")
    func redacted() throws {
        let text = "# ours\r\n\r\n\(Self.secret)\r\nwhsec_AfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwAfKQ9r8GKYo=\n"
        let secrets = try WebhookSecrets(parsing: Array(text.utf8), place: "file")
        var dumped = ""
        dump(secrets, to: &dumped)
        for text in ["\(secrets)", String(reflecting: secrets), dumped] { #expect(text.utf8.count < 100) }
    }

    @Test("The error names a file that is too large")
    func unreadable() {
        let error = #expect(throws: ConfigurationError.self) { try FileLine.text(ofFile: #filePath, limit: 100) }
        #expect(error?.description == "\(#filePath): the file cannot be read: the file is larger than 100 bytes")
    }
}
