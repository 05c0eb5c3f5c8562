internal import LLBytes
package import LLJOSE

/// A signed request with a good signature: Facebook's message to the deauthorize and data-deletion callbacks.
///
/// It is HMAC-SHA256 over the encoded payload, under the app's secret (Meta, "Data Deletion Request Callback" and "Parsing
/// the Signed Request"). It may be a day old, and ahead of your clock by the skew.
///
/// Facebook signs for logins, page tabs and Instant Games in the same form and under the same secret. Those are
/// refused: the web SDK's cookie contains a login's signed request, so it would be enough to delete the person's data.
public struct SignedRequest: Equatable, Sendable, Redacted {
    /// The app with the secret that signed it.
    public let appID: String
    /// `user_id`: the person, under an ID that only this app knows; 1 to 20 digits without a leading zero.
    public let userID: String
    /// `issued_at`: the time at which Facebook made it.
    public let issuedAt: NumericDate

    /// The greatest length, in bytes. 8 KiB: real ones have about 200 bytes.
    package static let byteLimit = 8_192
    /// The greatest age, in seconds: one day, so that a request sent again later does not log the person out again.
    package static let greatestAgeSeconds = 86_400

    /// Verifies a signed request.
    /// - Parameters:
    ///   - text: The form field `signed_request`, as received.
    ///   - secrets: Each app's ID and secret. All of them are tried, so that the time does not reveal which one signed.
    ///   - clockSkew: The time by which `issued_at` may be ahead; less than 0 counts as 0, more than 300 s as 300 s.
    ///   - now: The time for which to judge.
    /// - Throws: ``Rejection``: answer 403, but 200 to ``Rejection/requestOfNoPerson`` at the deauthorize callback.
    ///   ``Unavailable`` if OpenSSL fails: answer 500.
    public init(
        verifying text: String,
        secrets: [(appID: String, secret: String)],
        clockSkew: Duration = VerificationPolicy.defaultClockSkew,
        now: NumericDate
    ) throws {
        self = try Rejection.asError { () throws(Rejection) in
            try SignedRequest(verifying: text.utf8.span, secrets: secrets, clockSkew: clockSkew, now: now)
        }
    }

    package init(
        verifying bytes: Span<UInt8>,
        secrets: [(appID: String, secret: String)],
        clockSkew: Duration,
        now: NumericDate
    ) throws(Rejection) {
        guard !bytes.isEmpty, bytes.count <= Self.byteLimit else { throw .requestMalformed }
        // The text is split at the first full stop. A second one is not a digit of base64url and is refused below.
        let stop = bytes.firstOffset(of: UInt8(ascii: "."), from: 0)
        guard stop > 0, stop + 1 < bytes.count else { throw .requestMalformed }
        var (signature, payload): ([UInt8], [UInt8]) = ([], [])
        guard Base64URL.decode(bytes, Base64.withoutPadding(bytes, 0..<stop), into: &signature),
            Base64URL.decode(bytes, Base64.withoutPadding(bytes, stop + 1..<bytes.count), into: &payload)
        else { throw .requestMalformed }
        // The signature is over the payload in its encoded form, with its padding.
        appID = try Self.signer(of: bytes.extracting(stop + 1..<bytes.count), signature.span, secrets)
        // No part of the payload is read before this line.
        guard let request = JSONObject(payload, limits: VerificationLimits.payload) else { throw .requestMalformed }
        guard let algorithm = request.string("algorithm"),
            algorithm.utf8.span.equalIgnoringCase(0..<algorithm.utf8.count, "hmac-sha256")
        else { throw .requestOfOtherAlgorithm }
        for (name, rejection) in Self.otherPurposes where request.member(name) != nil { throw rejection }
        guard let user = request.identifier("user_id"), user == Self.pageUser || DecimalNumber.isIdentifier(user.utf8)
        else { throw .requestOfInvalidUser }
        guard let issuedAt = request.date("issued_at"),
            issuedAt.isRecent(within: Self.greatestAgeSeconds, clockSkew: clockSkew, now: now)
        else { throw .requestOutOfTime }
        guard Self.isInForce(request, clockSkew, now) else { throw .requestExpired }
        guard user != Self.pageUser else { throw .requestOfNoPerson }
        userID = user
        self.issuedAt = issuedAt
    }

    /// Members at the top level that no callback has, with any value. A login's members are in the web SDK's cookie, in
    /// the dialog's answer and in a canvas page (Meta, "Using the signed_request"; php-graph-sdk, `hasOAuthData`).
    private static let otherPurposes: [(name: StaticString, Rejection)] = [
        ("code", .requestOfLogin), ("oauth_token", .requestOfLogin), ("access_token", .requestOfLogin),
        ("page", .requestOfPageTab), ("player_id", .requestOfInstantGame), ("asid", .requestOfInstantGame),
        ("request_payload", .requestOfInstantGame),
    ]

    /// The `user_id` of a page that removed the app.
    private static let pageUser = "0"

    /// True if `expires` is ahead, absent, or 0.
    private static func isInForce(_ request: borrowing JSONObject, _ clockSkew: Duration, _ now: NumericDate) -> Bool {
        guard request.member("expires") != nil else { return true }
        guard let end = request.date("expires") else { return false }
        return end.secondsSince1970 == 0 || !now.isAhead(of: end, clockSkew: clockSkew)
    }
}

extension SignedRequest {
    /// The app with the secret that made the signature.
    /// - Parameter authenticate: HMAC-SHA256 of a message under a key; a test counts its calls.
    package static func signer(
        of message: Span<UInt8>,
        _ signature: Span<UInt8>,
        _ secrets: [(appID: String, secret: String)],
        authenticate: (Span<UInt8>, Span<UInt8>) throws(OpenSSLError) -> SHA256Digest = HMACSHA256.authenticationCode
    ) throws(Rejection) -> String {
        guard signature.count == 32 else { throw .requestOfNoSecret }
        var signer: String?
        for (appID, secret) in secrets {
            let key = Array(secret.utf8)
            guard !key.isEmpty else { continue }
            guard let code = try? authenticate(message, key.span) else { throw .requestNotVerifiable }
            // There is no `break`: every secret is tried, even after a match.
            if ConstantTime.areEqual(code.bytes.span, signature) { signer = signer ?? appID }
        }
        guard let signer else { throw .requestOfNoSecret }
        return signer
    }
}
