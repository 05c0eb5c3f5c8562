import Testing

@testable import LimitedLogin

@Suite("A policy")
struct PolicyTests {
    @Test(
        "An app ID is visible ASCII of at most 128 bytes, without a backslash",
        arguments: ["", " ", "1 2", "1\n", "é", "1\u{0}", #"12\u0033"#, String(repeating: "1", count: 129)]
    )
    func appIDs(appID: String) {
        let error = #expect(throws: InvalidConfiguration.self) { try VerificationPolicy(appIDs: ["1", appID]) }
        #expect(error?.description.contains(" is no app ID: ") == true)
    }

    @Test("Each app is known and no text that only resembles one")
    func apps() {
        // The apps have several lengths, and some are the beginning or the end of others.
        let apps = (0..<20).map { String(repeating: "1", count: $0 % 4) + String(7 * $0) }
        let set = ByteStringSet(apps.shuffled() + [""])
        let known = Set(apps)
        for app in apps + ["", "0", "1", "9", "99999999", String(repeating: "1", count: 128)] {
            let bytes = Array("1\(app)1".utf8)
            for range in [1..<bytes.count - 1, 0..<bytes.count - 1, 1..<bytes.count, 0..<bytes.count, 1..<1] {
                let text = String(decoding: bytes[range], as: UTF8.self)
                #expect(set.contains(bytes.span, range) == known.contains(text), "\(text)")
            }
        }
    }

    @Test(
        "An issuer is an https URL, or http on a loopback host",
        arguments: [
            "", "facebook.com", "http://www.facebook.com", "https://", "https://a b", "ftp://x",
            "http://127.0.0.1.evil", "http://localhost.evil", "HTTPS://x", "https://\u{E9}",
        ]
    )
    func invalidIssuers(issuer: String) {
        let error = #expect(throws: InvalidConfiguration.self) {
            try VerificationPolicy(appIDs: ["1"], issuers: [issuer])
        }
        #expect(error?.description.contains(" is no issuer: ") == true)
    }

    @Test(
        "Stand-ins on the same machine may be issuers",
        arguments: ["http://127.0.0.1", "http://localhost:8080", "http://[::1]:1/x", "https://issuer.example"]
    )
    func issuers(issuer: String) throws {
        #expect(try VerificationPolicy(appIDs: ["1"], issuers: [issuer]).issuers == [issuer])
    }

    @Test("A policy without an app or an issuer, or out of range, is refused with a sentence")
    func refusals() {
        let cases: [(words: String, make: () throws -> VerificationPolicy)] = [
            ("At least one app ID", { try VerificationPolicy(appIDs: []) }),
            ("At least one issuer", { try VerificationPolicy(appIDs: ["1"], issuers: []) }),
            ("0 to 300 s", { try VerificationPolicy(appIDs: ["1"], clockSkew: .seconds(301)) }),
            ("0 to 300 s", { try VerificationPolicy(appIDs: ["1"], clockSkew: .seconds(-1)) }),
            ("1 to 2147483647 s", { try VerificationPolicy(appIDs: ["1"], maximumTokenAge: .seconds(0)) }),
        ]
        for (words, make) in cases {
            let error = #expect(throws: InvalidConfiguration.self, performing: make)
            #expect(error?.description.contains(words) == true && error?.description.hasSuffix(".") == true)
        }
    }
}
