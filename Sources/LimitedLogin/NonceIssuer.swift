internal import LLBytes
internal import LLJOSE

/// Issues nonces for login attempts, and recognises them later without storing them: for a ``LoginVerifier``, a
/// ``TokenVerifier`` or a ``NonceExpectation``.
///
/// A nonce has a version, the times of issue and expiry, 128 random bits, and a tag. The tag is the HMAC-SHA256 of all
/// these and the app ID under a secret, cut to 128 bits. Any server with the same secret recognises it. Without the
/// secret it is impossible to make one, to prolong one, or to use one for another app.
///
/// A recognised nonce may have been used before. Remember it until ``IssuedNonce/expiresAt``, and refuse it the second time.
public struct NonceIssuer: Sendable {
    /// The greatest lifetime of a nonce: one day. A login takes minutes.
    public static let greatestLifetime = Duration.seconds(86_400)
    /// The default lifetime of a nonce: ten minutes.
    public static let defaultLifetime = Duration.seconds(600)
    /// 16 bytes: two equal nonces become likely only after 2⁶⁴ of them.
    package static let randomByteCount = 16

    /// The first issues nonces; all recognise them.
    private let secrets: [NonceSecret]

    /// An issuer of nonces.
    /// - Parameters:
    ///   - secret: Issues nonces and recognises them: 32 to 128 visible ASCII characters from a cryptographic random
    ///     generator, such as the output of `openssl rand -hex 32`.
    ///   - former: Only recognises nonces: the previous secret, or the next one, while servers change from one to the other.
    /// - Throws: ``InvalidConfiguration`` if one of them is no such secret.
    public init(secret: String, former: String? = nil) throws(InvalidConfiguration) {
        self.init(secret: try NonceSecret(text: secret), former: try former.map(NonceSecret.init(text:)))
    }

    package init(secret: NonceSecret, former: NonceSecret? = nil) { secrets = [secret] + (former.map { [$0] } ?? []) }

    /// Issues a nonce for one login, good for the tokens of this app, for 1 s to one day from `now`.
    /// - Returns: Nil if the lifetime or the time is out of range, or if the system gives no random bytes.
    public func issue(appID: String, lifetime: Duration = defaultLifetime, now: NumericDate) -> IssuedNonce? {
        guard let random = try? RandomBytes.make(count: Self.randomByteCount) else { return nil }
        // In range: a date is 0 to 2⁵³ seconds, and beyond 2⁴⁸ milliseconds the next step refuses it.
        let milliseconds = UInt64(now.secondsSince1970 * 1_000)
        return issue(appID: appID, lifetime: lifetime, now: milliseconds, randomBytes: random)
    }

    /// Issues a nonce; times are in milliseconds since 1970. Its date is later than `now` if the memory of used nonces is
    /// complete only from then on.
    package func issue(
        appID: String,
        lifetime: Duration,
        now: UInt64,
        dated date: UInt64? = nil,
        randomBytes: [UInt8]
    ) -> IssuedNonce? {
        guard (.seconds(1)...Self.greatestLifetime).contains(lifetime), now < NonceFormat.milliseconds - 86_400_000,
            (date ?? now) < NonceFormat.milliseconds, randomBytes.count == Self.randomByteCount
        else { return nil }
        // No overflow: both summands are below 2⁴⁸.
        let expiry = now + lifetime.wholeNanoseconds / 1_000_000
        var bytes: [UInt8] = [NonceFormat.version]
        NonceFormat.append(date ?? now, to: &bytes)
        NonceFormat.append(expiry, to: &bytes)
        bytes += randomBytes
        guard let tag = Self.tag(bytes.span, appID.utf8.span, secrets[0]) else { return nil }
        bytes.append(tag.bytes.span, 0..<NonceFormat.tagByteCount)
        guard let nonce = Nonce(Hexadecimal.encode(bytes)) else { return nil }
        return IssuedNonce(
            nonce: nonce,
            appID: appID,
            issuedAt: NumericDate(milliseconds: now),
            expiresAt: NumericDate(milliseconds: expiry)
        )
    }

    /// Recognises a nonce that was issued for the app with one of the secrets, whatever its age; nil for any other text.
    package func recognize(_ nonce: Span<UInt8>, appID: Span<UInt8>) -> RecognizedNonce? {
        guard let bytes = NonceFormat.bytes(of: nonce) else { return nil }
        let body = bytes.span.extracting(0..<NonceFormat.bodyByteCount)
        let tag = bytes.span.extracting(NonceFormat.bodyByteCount..<NonceFormat.byteCount)
        // Every secret is tried, so that the time does not reveal which of them issued the nonce.
        var isOurs = false
        for secret in secrets {
            guard let expected = Self.tag(body, appID, secret) else { continue }
            isOurs = ConstantTime.areEqual(tag, expected.bytes.span.extracting(0..<NonceFormat.tagByteCount)) || isOurs
        }
        guard isOurs else { return nil }
        return RecognizedNonce(
            issuedAtMilliseconds: NonceFormat.milliseconds(in: body, at: 1),
            expiresAtMilliseconds: NonceFormat.milliseconds(in: body, at: 7),
            identity: bytes
        )
    }

    /// The tag over the domain, the length of the app ID, the app ID, and the body. The length separates the app ID
    /// from the body.
    private static func tag(_ body: Span<UInt8>, _ appID: Span<UInt8>, _ secret: NonceSecret) -> SHA256Digest? {
        var message = NonceFormat.domain
        for shift in [24, 16, 8, 0] { message.append(UInt8(truncatingIfNeeded: appID.count >> shift)) }
        message.append(appID)
        message.append(body)
        return try? HMACSHA256.authenticationCode(for: message.span, key: secret.bytes.span)
    }
}

/// A nonce that a ``NonceIssuer`` issued.
public struct IssuedNonce: Equatable, Sendable, Redacted {
    /// The nonce to give to the app: 90 lower-case hexadecimal digits, so that it fits Facebook's `auth_nonce` too, which
    /// is alphanumeric (Meta, "Re-authentication").
    public let nonce: Nonce
    /// The app that logs in with it.
    public let appID: String
    /// The time of issue, to the millisecond.
    public let issuedAt: NumericDate
    /// The time from which it is refused, to the millisecond.
    public let expiresAt: NumericDate
}

/// The facts in an issued nonce with a good tag.
package struct RecognizedNonce: Equatable, Sendable, Redacted {
    package let issuedAtMilliseconds: UInt64
    package let expiresAtMilliseconds: UInt64
    /// The nonce's own bytes, which no other nonce has.
    package let identity: [UInt8]

    var expiresAt: NumericDate { NumericDate(milliseconds: expiresAtMilliseconds) }
}

/// The bytes of an issued nonce: version (1), time of issue (6), expiry (6), random (16), tag (16). The times are in
/// milliseconds since 1970, most significant byte first.
/// It is written in lower-case hexadecimal, so each nonce has exactly one spelling.
enum NonceFormat {
    static let version: UInt8 = 2
    static let bodyByteCount = 29
    static let tagByteCount = 16
    static let byteCount = bodyByteCount + tagByteCount
    /// Six bytes hold numbers of milliseconds below this.
    static let milliseconds: UInt64 = 1 << 48

    /// True if a text may be a nonce of an issuer. Most other nonces have another length.
    static func hasLength(_ text: [UInt8]) -> Bool { text.count == 2 * byteCount }

    static func bytes(of text: Span<UInt8>) -> [UInt8]? {
        var digits: [UInt8] = []
        digits.append(text)
        // With capitals a nonce would have another spelling.
        guard hasLength(digits), !digits.contains(where: { ASCII.lowercased($0) != $0 }),
            let bytes = Hexadecimal.decode(digits), bytes[0] == version
        else { return nil }
        return bytes
    }

    /// The prefix of the tag's message, so that no other use of the secret can yield a tag.
    static let domain = Array("limited-login nonce v1\0".utf8)

    /// The six bytes at `offset`; the body has ``bodyByteCount`` bytes, so both offsets are within it.
    static func milliseconds(in body: Span<UInt8>, at offset: Int) -> UInt64 {
        (offset..<offset + 6).reduce(0) { $0 << 8 | UInt64(body[$1]) }
    }

    static func append(_ value: UInt64, to bytes: inout [UInt8]) {
        for shift: UInt64 in [40, 32, 24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: value >> shift)) }
    }
}

/// The secret under which a ``NonceIssuer`` issues and recognises nonces. It never shows its bytes.
package struct NonceSecret: Sendable, Equatable, Redacted {
    /// 32, the output of SHA-256: a shorter key weakens the code (RFC 2104 section 3).
    package static let leastByteCount = 32
    let bytes: [UInt8]

    package init(bytes: [UInt8]) throws(InvalidConfiguration) {
        guard bytes.count >= Self.leastByteCount else {
            throw InvalidConfiguration("the secret has fewer than 32 bytes; 'limited-login nonce secret' makes one")
        }
        // More would add no strength.
        try InvalidConfiguration.unless(bytes.count <= 128, "the secret has more than 128 bytes")
        // Of 32 random bytes fewer are different once in 10²⁰ times; a typed secret, or one left at zeros, often has fewer.
        try InvalidConfiguration.unless(
            Set(bytes).count >= 8,
            "the secret is the same few bytes again and again; take it from a random generator"
        )
        self.bytes = bytes
    }

    /// Takes a secret in its written form: visible ASCII characters; their bytes are the secret.
    package init(text: String) throws(InvalidConfiguration) {
        guard text.utf8.allSatisfy(ASCII.isVisible) else {
            throw InvalidConfiguration("the secret must be visible ASCII characters without white space")
        }
        try self.init(bytes: Array(text.utf8))
    }

    package var description: String { "a secret of \(bytes.count) bytes" }
}
