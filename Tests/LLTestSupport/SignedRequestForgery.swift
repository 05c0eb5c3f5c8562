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
        self.name = name
        self.fault = fault
        self.text = text
    }

    /// A wrong payload with a valid signature.
    private static func signed(
        _ name: String,
        _ fault: Fault,
        _ payload: @escaping @Sendable (_ good: String, _ issuedAt: Int64) -> String
    ) -> Self {
        Self(name, fault) {
            try TestSignedRequest.make(payload(TestSignedRequest.payload(issuedAt: $0), $0))
        }
    }

    /// A genuine text, changed after it was signed.
    private static func changed(_ name: String, _ fault: Fault, _ change: @escaping @Sendable (String) -> String)
        -> Self
    {
        Self(name, fault) { change(try TestSignedRequest.make(TestSignedRequest.payload(issuedAt: $0))) }
    }

    /// A text signed with another secret.
    private static func otherSecret(_ name: String, _ secret: String) -> Self {
        Self(name, .signature) {
            try TestSignedRequest.make(TestSignedRequest.payload(issuedAt: $0), secret: secret)
        }
    }

    private static func halves(_ text: String) -> (signature: Substring, payload: Substring) {
        let parts = text.split(separator: ".")
        return (parts.first ?? "", parts.last ?? "")
    }

    package static let all: [Self] = forms + signatures + contents + otherPurposes

    /// Texts that Facebook signs for logins, page tabs and Instant Games. A login has a code or a token, with some or all
    /// members of a good callback.
    package static let otherPurposes: [Self] = [
        // The cookie of the web SDK.
        signed("a cookie", .login) { _, now in
            #"{"algorithm":"HMAC-SHA256","code":"AQBx","issued_at":\#(now),"user_id":"218471"}"#
        },
        // A canvas page, and the dialog's answer.
        signed("a canvas page", .login) { _, now in
            #"{"algorithm":"HMAC-SHA256","expires":\#(now + 7_200),"issued_at":\#(now),"oauth_token":"EAA","#
                + #""user":{"country":"in","locale":"en_US","age":{"min":21}},"user_id":"218471"}"#
        },
        signed("a token behind the rest", .login) { good, _ in good.dropLast() + #","oauth_token":"EAA"}"# },
        signed("an access token", .login) { good, _ in good.dropLast() + #","access_token":"EAA"}"# },
        signed("a code of null", .login) { good, _ in good.dropLast() + #","code":null}"# },
        signed("an escaped name", .login) { good, _ in good.dropLast() + #","\u0063o\u0064e":""}"# },
        signed("a page tab", .pageTab) { good, _ in
            good.dropLast() + #","page":{"id":"1","liked":true,"admin":false},"app_data":"x"}"#
        },
        signed("a player", .instantGame) { good, _ in good.dropLast() + #","player_id":"1"}"# },
        signed("a player's payload", .instantGame) { good, _ in good.dropLast() + #","request_payload":"n"}"# },
        signed("a player without a user", .instantGame) { _, now in
            #"{"algorithm":"HMAC-SHA256","issued_at":\#(now),"player_id":"1","request_payload":"n"}"#
        },
        signed("a player's other id", .instantGame) { good, _ in #"{"asid":"218471","# + good.dropFirst() },
    ]

    private static let forms: [Self] = [
        changed("nothing", .malformed) { _ in "" },
        changed("a full stop", .malformed) { _ in "." },
        changed("no full stop", .malformed) { $0.replacing(".", with: "") },
        changed("no signature", .malformed) { "." + halves($0).payload },
        changed("no payload", .malformed) { halves($0).signature + "." },
        changed("three parts", .malformed) { $0 + ".e30" },
        changed("too long", .malformed) { $0 + String(repeating: "A", count: 8_192) },
        changed("white space before it", .malformed) { " " + $0 },
        changed("a percent escape", .malformed) { $0.replacing(".", with: "%2E") },
        changed("base64 in place of base64url", .malformed) { "+/+/" + $0.dropFirst(4) },
        changed("unused bits in the signature", .malformed) {
            // The 43 digits hold 258 bits and a signature has 256. The last two bits must be zero, and here they are
            // not.
            let (signature, payload) = halves($0)
            return signature.dropLast() + "B." + payload
        },
        changed("two equals signs for one", .malformed) { $0.replacing(".", with: "==.") },
        changed("padding where none is due", .malformed) { $0 + "====" },
    ]

    private static let signatures: [Self] = [
        changed("a signature of zeros", .signature) { "AAAA." + halves($0).payload },
        otherSecret("another secret", "the-secret-of-another-app"),
        otherSecret("an empty secret", ""),
        otherSecret("the app's id for a secret", "222"),
        Self("an altered payload", .signature) {
            let good = TestSignedRequest.payload(issuedAt: $0)
            let signature = halves(try TestSignedRequest.make(good)).signature
            let altered = Base64URL.encode(Array(good.replacing("218471", with: "218472").utf8))
            return signature + "." + altered
        },
        Self("the signature of another moment", .signature) {
            let other = try TestSignedRequest.make(TestSignedRequest.payload(issuedAt: $0 - 1))
            let good = try TestSignedRequest.make(TestSignedRequest.payload(issuedAt: $0))
            return halves(other).signature + "." + halves(good).payload
        },
        Self("the signature of the decoded payload", .signature) {
            let payload = Array(TestSignedRequest.payload(issuedAt: $0).utf8)
            let key = Array(TestSignedRequest.secrets[1].secret.utf8)
            let code = try HMACSHA256.authenticationCode(for: payload.span, key: key.span)
            return code.base64URL + "." + Base64URL.encode(payload)
        },
        Self("the SHA-256 of the payload", .signature) {
            let encoded = Base64URL.encode(Array(TestSignedRequest.payload(issuedAt: $0).utf8))
            let digest = try SHA256.digest(of: encoded.utf8.span)
            return digest.base64URL + "." + encoded
        },
        changed("the parts the wrong way round", .signature) {
            let (signature, payload) = halves($0)
            return payload + "." + signature
        },
        changed("a shortened signature", .signature) { String($0.dropFirst(4)) },
    ]

    private static let contents: [Self] = [
        signed("no JSON", .malformed) { _, _ in "algorithm=HMAC-SHA256&user_id=218471" },
        signed("an array", .malformed) { _, _ in #"["HMAC-SHA256"]"# },
        signed("two objects", .malformed) { good, _ in good + good },
        signed("a byte-order mark", .malformed) { good, _ in "\u{FEFF}" + good },
        signed("a member twice", .malformed) { good, _ in good.dropLast() + #","user_id":"1"}"# },
        signed("a member twice, once escaped", .malformed) { good, _ in good.dropLast() + #","user\u005fid":"1"}"# },
        signed("a moment twice", .malformed) { good, now in good.dropLast() + #","issued_at":\#(now)}"# },
        signed("nothing in it", .algorithm) { _, _ in "{}" },
        signed("no algorithm", .algorithm) { _, now in #"{"issued_at":\#(now),"user_id":"1"}"# },
        signed("another algorithm", .algorithm) { good, _ in good.replacing("SHA256", with: "SHA1") },
        signed("the algorithm none", .algorithm) { good, _ in good.replacing("HMAC-SHA256", with: "none") },
        signed("an algorithm and a space", .algorithm) { good, _ in good.replacing("SHA256", with: "SHA256 ") },
        signed("an algorithm of another type", .algorithm) { good, _ in
            good.replacing(#""HMAC-SHA256""#, with: "256")
        },
        signed("no user", .user) { _, now in #"{"algorithm":"HMAC-SHA256","issued_at":\#(now)}"# },
        signed("an empty user", .user) { good, _ in good.replacing("218471", with: "") },
        signed("a user of letters", .user) { good, _ in good.replacing("218471", with: "21847l") },
        signed("a user with a sign", .user) { good, _ in good.replacing("218471", with: "+218471") },
        signed("a user with a fraction", .user) { good, _ in good.replacing(#""218471""#, with: "218471.0") },
        signed("a user too long", .user) { good, _ in
            good.replacing("218471", with: String(repeating: "1", count: 21))
        },
        signed("a leading zero", .user) { good, _ in good.replacing("218471", with: "0218471") },
        signed("a user of null", .user) { good, _ in good.replacing(#""218471""#, with: "null") },
        signed("a list of users", .user) { good, _ in good.replacing(#""218471""#, with: #"["218471"]"#) },
        signed("no moment", .time) { _, _ in #"{"algorithm":"HMAC-SHA256","user_id":"1"}"# },
        signed("a moment as text", .time) { good, now in
            good.replacing("\"issued_at\":\(now)", with: "\"issued_at\":\"\(now)\"")
        },
        signed("a moment before 1970", .time) { good, now in
            good.replacing("\"issued_at\":\(now)", with: "\"issued_at\":-1")
        },
        signed("a moment beyond all", .time) { good, now in
            good.replacing("\"issued_at\":\(now)", with: "\"issued_at\":9007199254740993")
        },
        signed("a day and a minute ago", .time) { _, now in TestSignedRequest.payload(issuedAt: now - 86_460) },
        signed("ahead by more than the skew", .time) { _, now in TestSignedRequest.payload(issuedAt: now + 300) },
        signed("an end in the past", .expiry) { _, now in TestSignedRequest.payload(issuedAt: now - 3_661) },
        signed("an end as text", .expiry) { good, now in
            good.replacing("\(now + 3_600)", with: "\"\(now + 3_600)\"")
        },
        signed("an end of null", .expiry) { good, now in good.replacing("\(now + 3_600)", with: "null") },
        signed("an end before 1970", .expiry) { good, now in good.replacing("\(now + 3_600)", with: "-1") },
    ]
}
