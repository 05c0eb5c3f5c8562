internal import LLBytes
internal import LLCrypto

/// Signed player info for tests, as Facebook makes it for Instant Games. The secrets are those of
/// ``TestSignedRequest``.
package enum TestPlayerInfo {
    package static let player = "5958184124215117"
    package static let nonce = "n0NceOfThisGame42"

    /// Facebook's payload (Instant Games SDK, "SignedPlayerInfo").
    package static func payload(issuedAt: Int64, nonce: String = nonce, member: String = "player_id") -> String {
        #"{"algorithm":"HMAC-SHA256","issued_at":\#(issuedAt),"\#(member)":"\#(player)","request_payload":"\#(nonce)"}"#
    }

    package static func make(issuedAt: Int64, nonce: String = nonce, member: String = "player_id") throws -> String {
        try TestSignedRequest.make(payload(issuedAt: issuedAt, nonce: nonce, member: member))
    }
}

/// A forged signed player info, and the code of its refusal.
package struct PlayerInfoForgery: Sendable, CustomStringConvertible {
    package let name: String
    package let code: String
    /// Makes the text. `issuedAt` is a moment that the service accepts.
    package let text: @Sendable (_ issuedAt: Int64) throws -> String

    package var description: String { name }

    /// A wrong payload with a valid signature.
    private static func signed(
        _ name: String,
        _ code: String = "invalid_signed_player_info",
        _ payload: @escaping @Sendable (_ good: String, _ issuedAt: Int64) -> String
    ) -> Self {
        Self(name: name, code: code) {
            try TestSignedRequest.make(payload(TestPlayerInfo.payload(issuedAt: $0), $0))
        }
    }

    /// A genuine text, changed after it was signed.
    private static func changed(_ name: String, _ change: @escaping @Sendable (String) -> String) -> Self {
        Self(name: name, code: "invalid_signed_player_info") { change(try TestPlayerInfo.make(issuedAt: $0)) }
    }

    /// A text signed with another secret.
    private static func otherSecret(_ name: String, _ secret: String) -> Self {
        Self(name: name, code: "invalid_signed_player_info") {
            try TestSignedRequest.make(TestPlayerInfo.payload(issuedAt: $0), secret: secret)
        }
    }

    package static let all: [Self] = forms + kinds + contents + nonces

    private static let forms: [Self] = [
        changed("a full stop") { _ in "." },
        changed("no full stop") { $0.replacing(".", with: "") },
        changed("no signature") { "." + ($0.split(separator: ".").last ?? "") },
        changed("three parts") { $0 + ".e30" },
        changed("too long") { $0 + String(repeating: "A", count: 8_192) },
        changed("white space behind it") { $0 + "\n" },
        changed("base64 in place of base64url") { "+/+/" + $0.dropFirst(4) },
        changed("a signature of zeros") { "AAAA." + ($0.split(separator: ".").last ?? "") },
        changed("the parts the wrong way round") { $0.split(separator: ".").reversed().joined(separator: ".") },
        otherSecret("another app's secret", "the-secret-of-another-app"),
        otherSecret("an empty secret", ""),
        otherSecret("the app's id for a secret", "222"),
        Self(name: "an altered player", code: "invalid_signed_player_info") {
            let signature = try TestPlayerInfo.make(issuedAt: $0).prefix { $0 != "." }
            let other = TestPlayerInfo.payload(issuedAt: $0).replacing(TestPlayerInfo.player, with: "1")
            return signature + "." + String(decoding: Base64URL.encode(Array(other.utf8)), as: UTF8.self)
        },
        Self(name: "the signature of the decoded payload", code: "invalid_signed_player_info") {
            let payload = Array(TestPlayerInfo.payload(issuedAt: $0).utf8)
            let key = Array(TestSignedRequest.secrets[1].secret.utf8)
            let code = try HMACSHA256.authenticationCode(for: payload.span, key: key.span)
            return String(decoding: code.base64URL + [0x2E] + Base64URL.encode(payload), as: UTF8.self)
        },
    ]

    /// Texts that Facebook signs for other purposes with the same secret.
    private static let kinds: [Self] = [
        signed("a deauthorize callback") { _, now in TestSignedRequest.payload(issuedAt: now) },
        signed("a callback with the nonce") { _, now in
            TestSignedRequest.payload(issuedAt: now).dropLast() + #","request_payload":"\#(TestPlayerInfo.nonce)"}"#
        },
        signed("a login's cookie") { _, now in
            #"{"algorithm":"HMAC-SHA256","code":"AQBx","issued_at":\#(now),"user_id":"218471"}"#
        },
        signed("a cookie with a player") { good, _ in good.dropLast() + #","code":"AQBx"}"# },
        signed("a canvas page with a player") { good, _ in good.dropLast() + #","oauth_token":"EAA"}"# },
        signed("an access token with a player") { good, _ in good.dropLast() + #","access_token":null}"# },
        signed("a page tab with a player") { good, _ in good.dropLast() + #","page":{"id":"1"}}"# },
        signed("a callback with a player") { good, _ in good.dropLast() + #","user_id":"218471"}"# },
    ]

    private static let contents: [Self] = [
        signed("no JSON") { _, _ in "player_id=5958184124215117" },
        signed("an array") { _, _ in "[]" },
        signed("a member twice") { good, _ in good.dropLast() + #","player_id":"1"}"# },
        signed("a member twice, once escaped") { good, _ in good.dropLast() + #","player\u005fid":"1"}"# },
        signed("no algorithm") { good, _ in good.replacing("algorithm", with: "alg") },
        signed("the algorithm none") { good, _ in good.replacing("HMAC-SHA256", with: "none") },
        signed("another algorithm") { good, _ in good.replacing("HMAC-SHA256", with: "HS256") },
        signed("no player") { good, _ in good.replacing("player_id", with: "player") },
        signed("a player and an asid") { good, _ in good.dropLast() + #","asid":"1"}"# },
        signed("a player as a number") { good, _ in
            good.replacing(#""\#(TestPlayerInfo.player)""#, with: TestPlayerInfo.player)
        },
        signed("a player of letters") { good, _ in good.replacing(TestPlayerInfo.player, with: "me") },
        signed("a player with a sign") { good, _ in good.replacing(TestPlayerInfo.player, with: "+1") },
        signed("a player too long") { good, _ in
            good.replacing(TestPlayerInfo.player, with: String(repeating: "1", count: 21))
        },
        signed("an empty player") { good, _ in good.replacing(TestPlayerInfo.player, with: "") },
        signed("player zero") { good, _ in good.replacing(TestPlayerInfo.player, with: "0") },
        signed("a leading zero") { good, _ in good.replacing(TestPlayerInfo.player, with: "01") },
        signed("a player of null") { good, _ in good.replacing(#""\#(TestPlayerInfo.player)""#, with: "null") },
        signed("no moment") { good, _ in good.replacing("issued_at", with: "issued") },
        signed("a moment as text") { good, now in good.replacing("\(now)", with: #""\#(now)""#) },
        signed("a moment in milliseconds") { good, now in good.replacing("\(now)", with: "\(now)000") },
        signed("an hour and a minute ago") { _, now in TestPlayerInfo.payload(issuedAt: now - 3_660) },
        signed("a day ago") { _, now in TestPlayerInfo.payload(issuedAt: now - 86_400) },
        signed("ahead by more than the skew") { _, now in TestPlayerInfo.payload(issuedAt: now + 300) },
        signed("at the beginning of time") { _, _ in TestPlayerInfo.payload(issuedAt: 0) },
    ]

    private static let nonces: [Self] = [
        signed("another session's nonce", "nonce_mismatch") { _, now in
            TestPlayerInfo.payload(issuedAt: now, nonce: "n0NceOfAnotherGame")
        },
        signed("an empty nonce", "nonce_mismatch") { _, now in TestPlayerInfo.payload(issuedAt: now, nonce: "") },
        signed("no nonce", "nonce_mismatch") { good, _ in good.replacing("request_payload", with: "payload") },
        signed("a nonce and more", "nonce_mismatch") { _, now in
            TestPlayerInfo.payload(issuedAt: now, nonce: TestPlayerInfo.nonce + " ")
        },
        signed("the nonce in capitals", "nonce_mismatch") { _, now in
            TestPlayerInfo.payload(issuedAt: now, nonce: TestPlayerInfo.nonce.uppercased())
        },
        signed("the nonce in a list", "nonce_mismatch") { good, _ in
            good.replacing(#""\#(TestPlayerInfo.nonce)""#, with: #"["\#(TestPlayerInfo.nonce)"]"#)
        },
        signed("a nonce of null", "nonce_mismatch") { good, _ in
            good.replacing(#""\#(TestPlayerInfo.nonce)""#, with: "null")
        },
        signed("a nonce of true", "nonce_mismatch") { good, _ in
            good.replacing(#""\#(TestPlayerInfo.nonce)""#, with: "true")
        },
    ]
}
