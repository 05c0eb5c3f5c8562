internal import LLBytes
internal import LLJOSE

/// Signed requests for tests, as Facebook makes them.
package enum TestSignedRequest {
    /// The secrets of three apps, in the order of their configuration.
    package static let secrets: [(appID: String, secret: String)] = [
        (appID: "111", secret: "the-secret-of-the-first-app"),
        (appID: "222", secret: "0123456789abcdef0123456789abcdef"),
        (appID: "333", secret: "the-secret-of-the-third-app"),
    ]

    /// Facebook's payload for user 218471.
    package static func payload(issuedAt: Int64) -> String {
        #"{"algorithm":"HMAC-SHA256","expires":\#(issuedAt + 3_600),"issued_at":\#(issuedAt),"user_id":"218471"}"#
    }

    /// Callbacks of every known shape (Meta, "Data Deletion Request Callback" and "Deauthorize Callback").
    package static func callbacks(issuedAt now: Int64) -> [String] {
        let user = #""user":{"country":"in","locale":"en_US"}"#
        return [
            payload(issuedAt: now),
            #"{"algorithm":"HMAC-SHA256","issued_at":\#(now),"user_id":"218471"}"#,
            #"{"algorithm":"HMAC-SHA256","expires":0,"issued_at":\#(now),"user_id":"218471"}"#,
            #"{"algorithm":"HMAC-SHA256","issued_at":\#(now),"expires":\#(now + 3_600),\#(user),"user_id":"218471"}"#,
            #"{"algorithm":"HMAC-SHA256","issued_at":\#(now),\#(user),"user_id":218471}"#,
            #"{"user_id":"218471","profile_id":"1","issued_at":\#(now),"algorithm":"hmac-sha256"}"#,
            // A nested object may have a login's members: they are not the request's.
            #"{"algorithm":"HMAC-SHA256","issued_at":\#(now),"user_id":"218471","user":{"code":"in","page":1},"app_data":"code"}"#,
        ]
    }

    /// Callbacks about a page that removes an app. They name no person.
    package static func pageRemovals(issuedAt now: Int64) -> [String] {
        ["0", "\"0\""].map {
            #"{"algorithm":"HMAC-SHA256","issued_at":\#(now),"profile_id":"1","user":{"country":"in"},"user_id":\#($0)}"#
        }
    }

    /// A signed request with this payload, by default with the secret of app 222.
    package static func make(_ payload: String, secret: String = secrets[1].secret) throws -> String {
        try make(encoded: Base64URL.encode(Array(payload.utf8)), secret: secret)
    }

    /// The same for a payload that is encoded already.
    package static func make(encoded payload: String, secret: String = secrets[1].secret) throws -> String {
        let code = try HMACSHA256.authenticationCode(for: Array(payload.utf8).span, key: Array(secret.utf8).span)
        return code.base64URL + "." + payload
    }
}

/// A forged signed request, and the reason of its refusal.
package struct SignedRequestForgery: Sendable, CustomStringConvertible {
    /// The reason of a refusal. The library has a sentence for each.
    package enum Fault: CaseIterable, Sendable {
        case malformed, signature, algorithm, login, pageTab, instantGame, user, time, expiry
    }

    package let name: String
    package let fault: Fault
    /// Makes the text. `issuedAt` is a moment that the service accepts.
    package let text: @Sendable (_ issuedAt: Int64) throws -> String

    package var description: String { name }

    private init(_ name: String, _ fault: Fault, _ text: @escaping @Sendable (Int64) throws -> String) {
        (self.name, self.fault, self.text) = (name, fault, text)
    }

    /// A payload with a valid signature. `NOW` in it is the moment.
    private static func signed(_ name: String, _ fault: Fault, _ payload: String) -> Self {
        Self(name, fault) { try TestSignedRequest.make(payload.replacing("NOW", with: "\($0)")) }
    }

    /// The good payload with another text in place of this one, and a valid signature.
    private static func replaced(_ name: String, _ fault: Fault, _ old: String, _ new: String) -> Self {
        Self(name, fault) { now in
            let good = TestSignedRequest.payload(issuedAt: now)
            func filled(_ text: String) -> String {
                text.replacing("NOW", with: "\(now)").replacing("END", with: "\(now + 3_600)")
            }
            return try TestSignedRequest.make(good.replacing(filled(old), with: filled(new)))
        }
    }

    /// The payload of a good request of so many seconds later.
    private static func moved(_ name: String, _ fault: Fault, by seconds: Int64) -> Self {
        Self(name, fault) { try TestSignedRequest.make(TestSignedRequest.payload(issuedAt: $0 + seconds)) }
    }

    /// A genuine text, changed after it was signed.
    private static func changed(
        _ name: String,
        _ fault: Fault,
        _ change: @escaping @Sendable (_ text: String, _ signature: Substring, _ payload: Substring) -> String
    ) -> Self {
        Self(name, fault) {
            let text = try TestSignedRequest.make(TestSignedRequest.payload(issuedAt: $0))
            let parts = text.split(separator: ".")
            return change(text, parts[0], parts[1])
        }
    }

    /// A good payload under the signature that `code` makes of it and of its encoded form.
    private static func signature(
        _ name: String,
        _ code: @escaping @Sendable (_ payload: String, _ encoded: String) throws -> String
    ) -> Self {
        Self(name, .signature) {
            let payload = TestSignedRequest.payload(issuedAt: $0)
            let encoded = Base64URL.encode(Array(payload.utf8))
            return try code(payload, encoded) + "." + encoded
        }
    }

    /// The signature of a text, which stands before it.
    private static func signature(of text: String, secret: String? = nil) throws -> String {
        let secret = secret ?? TestSignedRequest.secrets[1].secret
        return String(try TestSignedRequest.make(encoded: text, secret: secret).prefix { $0 != "." })
    }

    package static let all: [Self] = forms + signatures + contents + otherPurposes

    /// Texts that Facebook signs for logins, page tabs and Instant Games. A login has a code or a token, with some or all
    /// members of a good callback.
    package static let otherPurposes: [Self] = [
        // The cookie of the web SDK, a canvas page, and the dialog's answer.
        signed("a cookie", .login, #"{"algorithm":"HMAC-SHA256","code":"AQBx","issued_at":NOW,"user_id":"218471"}"#),
        replaced("a canvas page", .login, #","user_id""#, #","oauth_token":"EAA","user":{"age":{"min":21}},"user_id""#),
        replaced("a token behind the rest", .login, "}", #","oauth_token":"EAA"}"#),
        replaced("an access token", .login, "}", #","access_token":"EAA"}"#),
        replaced("a code of null", .login, "}", #","code":null}"#),
        replaced("an escaped name", .login, "}", #","\u0063o\u0064e":""}"#),
        replaced("a page tab", .pageTab, "}", #","page":{"id":"1","liked":true,"admin":false},"app_data":"x"}"#),
        replaced("a player", .instantGame, "}", #","player_id":"1"}"#),
        replaced("a player's payload", .instantGame, "}", #","request_payload":"n"}"#),
        replaced("a player without a user", .instantGame, "user_id", "player_id"),
        replaced("a player's other id", .instantGame, "{", #"{"asid":"218471","#),
    ]

    private static let forms: [Self] = [
        changed("nothing", .malformed) { _, _, _ in "" }, changed("a full stop", .malformed) { _, _, _ in "." },
        changed("no full stop", .malformed) { _, signature, payload in "\(signature)\(payload)" },
        changed("no signature", .malformed) { _, _, payload in ".\(payload)" },
        changed("no payload", .malformed) { _, signature, _ in "\(signature)." },
        changed("three parts", .malformed) { text, _, _ in "\(text).e30" },
        changed("too long", .malformed) { text, _, _ in text + String(repeating: "A", count: 8_192) },
        changed("white space before it", .malformed) { text, _, _ in " \(text)" },
        changed("a percent escape", .malformed) { _, signature, payload in "\(signature)%2E\(payload)" },
        changed("base64 in place of base64url", .malformed) { text, _, _ in "+/+/\(text.dropFirst(4))" },
        // The 43 digits hold 258 bits and a signature has 256. The last two bits must be zero, and here they are not.
        changed("unused bits in the signature", .malformed) { _, signature, payload in
            "\(signature.dropLast())B.\(payload)"
        },
        changed("two equals signs for one", .malformed) { _, signature, payload in "\(signature)==.\(payload)" },
        changed("padding where none is due", .malformed) { text, _, _ in "\(text)====" },
    ]

    private static let signatures: [Self] = [
        signature("a signature of zeros") { _, _ in "AAAA" },
        signature("another secret") { try signature(of: $1, secret: "the-secret-of-another-app") },
        signature("an empty secret") { try signature(of: $1, secret: "") },
        signature("the app's id for a secret") { try signature(of: $1, secret: "222") },
        signature("the signature of another payload") { payload, _ in
            try signature(of: Base64URL.encode(Array(payload.replacing("1847", with: "1848").utf8)))
        },
        signature("the signature of the decoded payload") { payload, _ in try signature(of: payload) },
        signature("the SHA-256 of the payload") { try SHA256.digest(of: Array($1.utf8).span).base64URL },
        changed("the parts the wrong way round", .signature) { _, signature, payload in "\(payload).\(signature)" },
        changed("a shortened signature", .signature) { text, _, _ in String(text.dropFirst(4)) },
    ]

    private static let contents: [Self] = [
        signed("no JSON", .malformed, "algorithm=HMAC-SHA256&user_id=218471"),
        signed("an array", .malformed, #"["HMAC-SHA256"]"#), replaced("two objects", .malformed, "}", "}{}"),
        replaced("a byte-order mark", .malformed, "{", "\u{FEFF}{"),
        replaced("a member twice", .malformed, "}", #","user_id":"1"}"#),
        replaced("a member twice, once escaped", .malformed, "}", #","user\u005fid":"1"}"#),
        replaced("a moment twice", .malformed, "}", #","issued_at":NOW}"#), signed("nothing in it", .algorithm, "{}"),
        signed("no algorithm", .algorithm, #"{"issued_at":NOW,"user_id":"1"}"#),
        replaced("another algorithm", .algorithm, "SHA256", "SHA1"),
        replaced("the algorithm none", .algorithm, "HMAC-SHA256", "none"),
        replaced("an algorithm and a space", .algorithm, "SHA256", "SHA256 "),
        replaced("an algorithm of another type", .algorithm, #""HMAC-SHA256""#, "256"),
        replaced("no user", .user, #","user_id":"218471""#, ""), replaced("an empty user", .user, "218471", ""),
        replaced("a user of letters", .user, "218471", "21847l"),
        replaced("a user with a sign", .user, "218471", "+218471"),
        replaced("a user with a fraction", .user, #""218471""#, "218471.0"),
        replaced("a user too long", .user, "218471", String(repeating: "1", count: 21)),
        replaced("a leading zero", .user, "218471", "0218471"), replaced("a user of null", .user, #""218471""#, "null"),
        replaced("a list of users", .user, #""218471""#, #"["218471"]"#),
        signed("no moment", .time, #"{"algorithm":"HMAC-SHA256","user_id":"1"}"#),
        replaced("a moment as text", .time, #""issued_at":NOW"#, #""issued_at":"NOW""#),
        replaced("a moment before 1970", .time, #""issued_at":NOW"#, #""issued_at":-1"#),
        replaced("a moment beyond all", .time, #""issued_at":NOW"#, #""issued_at":9007199254740993"#),
        moved("a day and a minute ago", .time, by: -86_460), moved("ahead by more than the skew", .time, by: 300),
        moved("an end in the past", .expiry, by: -3_661), replaced("an end as text", .expiry, "END", #""END""#),
        replaced("an end of null", .expiry, "END", "null"), replaced("an end before 1970", .expiry, "END", "-1"),
    ]
}
