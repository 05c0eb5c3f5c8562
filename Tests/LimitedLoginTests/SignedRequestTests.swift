import Bytes
import LimitedLogin
import OpenSSL
import TestSupport
import Testing

@Suite("A signed request")
struct SignedRequestTests {
    private static let now = Login.sharedNow
    private static let secrets: [(appID: String, secret: String)] = [
        (appID: "111", secret: "first secret"), (appID: "222", secret: "0123456789abcdef0123456789abcdef"),
        (appID: "333", secret: "third secret"),
    ]
    private static let payload =
        #"{"algorithm":"HMAC-SHA256","expires":1700003600,"issued_at":1699999990,"user_id":"218471"}"#

    /// A request with this payload, signed under the secret of app 222 unless another is given.
    private static func make(_ payload: String = payload, secret: String = secrets[1].secret) throws -> String {
        let encoded = Base64URL.encode(Array(payload.utf8))
        return try make(encoded: String(decoding: encoded, as: UTF8.self), secret: secret)
    }

    private static func make(encoded payload: String, secret: String = secrets[1].secret) throws -> String {
        let code = try HMACSHA256.authenticationCode(for: Array(payload.utf8).span, key: Array(secret.utf8).span)
        return String(decoding: code.base64URL, as: UTF8.self) + "." + payload
    }

    private static func verify(_ text: String, at now: NumericDate = now) throws(SignedRequestRejection)
        -> SignedRequest
    {
        try SignedRequest(verifying: text, secrets: secrets, now: now)
    }

    private static func rejection(_ text: String, at now: NumericDate = now) -> SignedRequestRejection? {
        do throws(SignedRequestRejection) {
            _ = try verify(text, at: now)
            return nil
        } catch {
            return error
        }
    }

    @Test("Tells app, user and moment of a good one, whichever app's secret made it")
    func accepted() throws {
        for (appID, secret) in Self.secrets {
            let request = try Self.verify(Self.make(secret: secret))
            #expect(request.appID == appID && request.userID == "218471")
            #expect(request.issuedAt.secondsSince1970 == 1_699_999_990)
        }
    }

    @Test(
        "What Facebook may spell otherwise is accepted",
        arguments: [
            #"{"algorithm":"hmac-sha256","issued_at":1699999990,"user_id":"218471"}"#,
            #"{"user_id":218471,"issued_at":1699999990.5,"algorithm":"Hmac-Sha256"}"#,
            #"{"\u0061lgorithm":"HMAC\u002dSHA256","issued_at":1699999990,"user_id":"218\u0034\u00371"}"#,
            #" { "algorithm" : "HMAC-SHA256", "issued_at" : 1699999990, "user_id" : "218471", "x": [1, {"y": null}] } "#,
        ]
    )
    func spellings(payload: String) throws {
        #expect(try Self.verify(Self.make(payload)).userID == "218471")
    }

    @Test("Padding that completes four digits is accepted, in both parts, and signed as it stands")
    func padding() throws {
        // The signature's 32 bytes take 43 digits and one equals sign.
        let request = try Self.make()
        let dot = try #require(request.firstIndex(of: "."))
        let padded = request[..<dot] + "=" + request[dot...]
        #expect(try Self.verify(String(padded)).userID == "218471")
        let encoded = Base64.encode(Array(Self.payload.utf8)).replacing("+", with: "-").replacing("/", with: "_")
        #expect(try Self.verify(Self.make(encoded: encoded)).userID == "218471")
    }

    @Test("The published vector's signature holds, and its content is refused")
    func publishedVector() {
        let text =
            "vlXgu64BQGFSQrY0ZcJBZASMvYvTHu9GQ0YM9rjPSso.eyJhbGdvcml0aG0iOiJITUFDLVNIQTI1NiIsIjAiOiJwYXlsb2FkIn0"
        #expect(throws: SignedRequestRejection.invalidUser) {
            try SignedRequest(verifying: text, secrets: [("1", "secret")], now: Self.now)
        }
        #expect(throws: SignedRequestRejection.invalidSignature) {
            try SignedRequest(verifying: text, secrets: [("1", "Secret")], now: Self.now)
        }
    }

    /// A forgery: what becomes of the text, and what it is refused for.
    struct Forgery: Sendable, CustomTestStringConvertible {
        let name: String
        let rejection: SignedRequestRejection
        let text: @Sendable () throws -> String

        init(_ name: String, _ rejection: SignedRequestRejection, _ text: @escaping @Sendable () throws -> String) {
            self.name = name
            self.rejection = rejection
            self.text = text
        }

        var testDescription: String { name }
    }

    private static func signed(_ name: String, _ rejection: SignedRequestRejection, _ payload: String) -> Forgery {
        Forgery(name, rejection) { try make(payload) }
    }

    private static let forgeries: [Forgery] = [
        // The form.
        Forgery("nothing", .malformed) { "" },
        Forgery("a full stop", .malformed) { "." },
        Forgery("no full stop", .malformed) { try make().replacing(".", with: "") },
        Forgery("no signature", .malformed) { "." + (try make().split(separator: ".").last ?? "") },
        Forgery("no payload", .malformed) { (try make().split(separator: ".").first ?? "") + "." },
        Forgery("three parts", .malformed) { try make() + ".e30" },
        Forgery("a full stop before it", .malformed) { "." + (try make()) },
        Forgery("too long", .malformed) { try make() + String(repeating: "A", count: 8_192) },
        Forgery("white space before it", .malformed) { " " + (try make()) },
        Forgery("white space behind it", .malformed) { try make() + "\n" },
        Forgery("a percent escape", .malformed) { try make().replacing(".", with: "%2E") },
        Forgery("base64 in place of base64url", .malformed) { "+/+/" + (try make().dropFirst(4)) },
        Forgery("unused bits in the signature", .malformed) {
            let text = try make()
            let dot = text.firstIndex(of: ".") ?? text.startIndex
            let last = text.index(before: dot)
            let others = ["B", "C", "D"].map { text[..<last] + $0 + text[dot...] }
            return String(others[0])
        },
        Forgery("two equals signs for one", .malformed) { try make().replacing(".", with: "==.") },
        Forgery("an equals sign within", .malformed) { "=" + (try make().dropFirst()) },
        Forgery("padding where none is due", .malformed) { try make() + "====" },
        // The signature.
        Forgery("an empty signature in digits", .invalidSignature) {
            "AAAA." + (try make().split(separator: ".").last ?? "")
        },
        Forgery("another secret", .invalidSignature) { try make(secret: "other") },
        Forgery("an empty secret", .invalidSignature) { try make(secret: "") },
        Forgery("the secret in other letters", .invalidSignature) { try make(secret: "First secret") },
        Forgery("an altered payload", .invalidSignature) {
            let text = try make()
            let other = String(
                decoding: Base64URL.encode(Array(payload.replacing("218471", with: "218472").utf8)),
                as: UTF8.self
            )
            return String(text.prefix { $0 != "." }) + "." + other
        },
        Forgery("the signature of the decoded payload", .invalidSignature) {
            let key = Array(secrets[1].secret.utf8)
            let code = try HMACSHA256.authenticationCode(for: Array(payload.utf8).span, key: key.span)
            return String(decoding: code.base64URL + [0x2E] + Base64URL.encode(Array(payload.utf8)), as: UTF8.self)
        },
        Forgery("a shortened signature", .invalidSignature) { String(try make().dropFirst(4)) },
        Forgery("a lengthened signature", .invalidSignature) { "AAAA" + (try make()) },
        Forgery("the SHA-256 of the payload", .invalidSignature) {
            let encoded = Base64URL.encode(Array(payload.utf8))
            let digest = try SHA256.digest(of: encoded.span)
            return String(decoding: digest.base64URL + [0x2E] + encoded, as: UTF8.self)
        },
        // The content.
        signed("no JSON", .malformed, "algorithm=HMAC-SHA256&user_id=218471"),
        signed("an array", .malformed, #"["HMAC-SHA256"]"#),
        signed("two objects", .malformed, payload + payload),
        signed("a byte-order mark", .malformed, "\u{FEFF}" + payload),
        signed("a member twice", .malformed, payload.dropLast() + #","user_id":"1"}"#),
        signed("a member twice, once escaped", .malformed, payload.dropLast() + #","user\u005fid":"1"}"#),
        signed("nothing in it", .unsupportedAlgorithm, "{}"),
        signed("no algorithm", .unsupportedAlgorithm, #"{"issued_at":1699999990,"user_id":"1"}"#),
        signed("another algorithm", .unsupportedAlgorithm, payload.replacing("SHA256", with: "SHA1")),
        signed("no algorithm at all", .unsupportedAlgorithm, payload.replacing("HMAC-SHA256", with: "none")),
        signed("an algorithm and a space", .unsupportedAlgorithm, payload.replacing("SHA256", with: "SHA256 ")),
        signed(
            "an algorithm of another type",
            .unsupportedAlgorithm,
            payload.replacing(#""HMAC-SHA256""#, with: "256")
        ),
        signed("no user", .invalidUser, #"{"algorithm":"HMAC-SHA256","issued_at":1699999990}"#),
        signed("an empty user", .invalidUser, payload.replacing("218471", with: "")),
        signed("a user of letters", .invalidUser, payload.replacing("218471", with: "21847l")),
        signed("a user with a sign", .invalidUser, payload.replacing("218471", with: "+218471")),
        signed("a negative user", .invalidUser, payload.replacing(#""218471""#, with: "-218471")),
        signed("a user with a fraction", .invalidUser, payload.replacing(#""218471""#, with: "218471.0")),
        signed("a user with an exponent", .invalidUser, payload.replacing(#""218471""#, with: "2e5")),
        signed("a user of other digits", .invalidUser, payload.replacing("218471", with: "２１８")),
        signed("a user too long", .invalidUser, payload.replacing("218471", with: String(repeating: "1", count: 21))),
        signed("a user of null", .invalidUser, payload.replacing(#""218471""#, with: "null")),
        signed("a list of users", .invalidUser, payload.replacing(#""218471""#, with: #"["218471"]"#)),
        signed("no moment", .outOfTime, #"{"algorithm":"HMAC-SHA256","user_id":"1"}"#),
        signed("a moment as text", .outOfTime, payload.replacing("1699999990", with: #""1699999990""#)),
        signed("a moment before 1970", .outOfTime, payload.replacing("1699999990", with: "-1")),
        signed("a moment beyond all", .outOfTime, payload.replacing("1699999990", with: "9007199254740993")),
        signed("a day and a second ago", .outOfTime, payload.replacing("1699999990", with: "1699913599")),
        signed("ahead by more than the skew", .outOfTime, payload.replacing("1699999990", with: "1700000061")),
    ]

    @Test("Each forgery is refused for its own reason", arguments: forgeries)
    func refused(forgery: Forgery) throws {
        #expect(Self.rejection(try forgery.text()) == forgery.rejection)
    }

    @Test("There are forgeries enough, and every reason has one")
    func coverage() {
        #expect(Self.forgeries.count >= 40)
        let reasons: Set<String> = Set(Self.forgeries.map(\.rejection.description))
        #expect(reasons.count == 5)
    }

    @Test("A day's age and the skew are just allowed", arguments: [1_699_913_600, 1_700_000_000, 1_700_000_060])
    func bounds(issuedAt: Int) throws {
        let text = try Self.make(Self.payload.replacing("1699999990", with: "\(issuedAt)"))
        #expect(Self.rejection(text) == nil)
    }

    @Test("Without secrets nothing is accepted; the first app with a shared secret is told")
    func sharedSecret() throws {
        #expect(throws: SignedRequestRejection.invalidSignature) {
            try SignedRequest(verifying: Self.make(), secrets: [], now: Self.now)
        }
        #expect(throws: SignedRequestRejection.invalidSignature) {
            try SignedRequest(verifying: Self.make(secret: ""), secrets: [("1", "")], now: Self.now)
        }
        let shared = [(appID: "1", secret: "same"), (appID: "2", secret: "same")]
        #expect(try SignedRequest(verifying: Self.make(secret: "same"), secrets: shared, now: Self.now).appID == "1")
    }

    @Test("No bit, byte, prefix or suffix of a good one can be changed")
    func mutations() throws {
        let good = Array(try Self.make().utf8)
        func isAccepted(_ bytes: [UInt8]) -> Bool {
            (try? SignedRequest(verifying: bytes.span, secrets: Self.secrets, clockSkewSeconds: 60, now: Self.now))
                != nil
        }
        #expect(isAccepted(good))
        var accepted = 0
        var count = 0
        func judge(_ mutant: [UInt8]) {
            count += 1
            if isAccepted(mutant) { accepted += 1 }
        }
        for offset in good.indices {
            for bit in 0..<8 {
                var mutant = good
                mutant[offset] ^= 1 << UInt8(bit)
                judge(mutant)
            }
            for byte in Array("AZaz09-_.=+/ \0%".utf8) {
                var replaced = good
                replaced[offset] = byte
                if replaced != good { judge(replaced) }
                judge(Array(good[..<offset]) + [byte] + good[offset...])
            }
            var shorter = good
            shorter.remove(at: offset)
            judge(shorter)
            judge(Array(good[..<offset]))
            if offset > 0 { judge(Array(good[offset...])) }
        }
        // The one spelling that is the same: the signature's padding.
        #expect(count > 6_000 && accepted == 1)
    }
}
