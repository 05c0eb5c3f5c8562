internal import LLBytes
internal import LLJOSE

/// Issues nonces for login attempts, and recognises them later without storing them.
///
/// A nonce has a version, the times of issue and expiry, 128 random bits, and a tag. The tag is the HMAC-SHA256 of all
/// these and the app ID under a secret, cut to 128 bits. Any server with the same secret recognises it. Without the
/// secret it is impossible to make one, to prolong one, or to use one for another app. It reveals neither the app ID
/// nor any fact about a person.
///
/// A recognised nonce may have been used before; the issuer cannot tell. Remember the nonce until
/// ``IssuedNonce/expiresAt``, and refuse it the second time.
public struct NonceIssuer: Sendable {
    /// The greatest lifetime of a nonce: one day. A login takes minutes.
    public static let greatestLifetime = Duration.seconds(86_400)
    /// The default lifetime of a nonce: ten minutes.
    public static let defaultLifetime = Duration.seconds(600)
    /// The number of random bytes in a nonce. 16: two equal nonces become likely only after 2⁶⁴ of them.
    package static let randomByteCount = 16

    private let secret: NonceSecret
    private let former: NonceSecret?

    /// An issuer of nonces. It never shows its secrets.
    /// - Parameters:
    ///   - secret: Issues nonces and recognises them. It has 32 to 128 visible ASCII characters from a cryptographic
    ///     random generator; their bytes are the secret. The output of `openssl rand -hex 32` is such a secret.
    ///   - former: Only recognises nonces. It is the previous secret, or the next one, while servers change from one to
    ///     the other.
    /// - Throws: ``InvalidConfiguration`` if one of them is no such secret.
    public init(secret: String, former: String? = nil) throws(InvalidConfiguration) {
        self.init(secret: try NonceSecret(text: secret), former: try former.map(NonceSecret.init(text:)))
    }

    package init(secret: NonceSecret, former: NonceSecret? = nil) {
        self.secret = secret
        self.former = former
    }

    /// Issues a nonce for one login, good for the tokens of this app, for 1 s to one day from `now`.
    /// - Returns: Nil if the lifetime or the time is out of range, or if the system gives no random bytes.
    public func issue(appID: String, lifetime: Duration = defaultLifetime, now: NumericDate) -> IssuedNonce? {
        guard let random = try? RandomBytes.make(count: Self.randomByteCount) else { return nil }
        // In range: a date is 0 to 2⁵³ seconds, and beyond 2⁴⁸ milliseconds the next step refuses it.
        let milliseconds = UInt64(now.secondsSince1970 * 1_000)
        return issue(appID: appID, lifetime: lifetime, now: milliseconds, randomBytes: random)
    }

    /// Issues a nonce from sixteen random bytes, `now` in milliseconds since 1970. The date in the nonce is later than that if
    /// the memory of used nonces is complete only from then on.
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
        bytes.reserveCapacity(NonceFormat.byteCount)
        NonceFormat.append(date ?? now, to: &bytes)
        NonceFormat.append(expiry, to: &bytes)
        bytes += randomBytes
        guard let tag = Self.tag(bytes.span, Array(appID.utf8).span, secret) else { return nil }
        bytes.append(tag.bytes.span, 0..<NonceFormat.tagByteCount)
        guard let nonce = Nonce(Hexadecimal.encode(bytes)) else { return nil }
        return IssuedNonce(
            nonce: nonce,
            appID: appID,
            issuedAt: NumericDate(milliseconds: now),
            expiresAt: NumericDate(milliseconds: expiry)
        )
    }

    /// Recognises a nonce that this issuer (or one with the same secret) issued for the app; nil for any other text.
    ///
    /// A recognised nonce belongs to some login. Compare it with the nonce in your session to know that it is this one.
    public func recognize(_ nonce: String, appID: String, now: NumericDate) -> Recognition? {
        guard let nonce = Nonce(nonce),
            let facts = recognize(nonce.value.utf8.span, appID: Array(appID.utf8).span)
        else { return nil }
        let issued = IssuedNonce(nonce: nonce, appID: appID, issuedAt: facts.issuedAt, expiresAt: facts.expiresAt)
        return now < issued.expiresAt ? .current(issued) : .expired(issued)
    }

    /// A nonce of this issuer, and whether it may still be used.
    @nonexhaustive  // SE-0487
    public enum Recognition: Equatable, Sendable {
        /// Its time is not over. It may have been used before.
        case current(IssuedNonce)
        /// Its time is over: refuse it at a login.
        case expired(IssuedNonce)
    }

    package func recognize(_ nonce: Span<UInt8>, appID: Span<UInt8>) -> RecognizedNonce? {
        guard let bytes = NonceFormat.bytes(of: nonce) else { return nil }
        let body = bytes.span.extracting(0..<NonceFormat.bodyByteCount)
        let tag = bytes.span.extracting(NonceFormat.bodyByteCount..<NonceFormat.byteCount)
        // Both secrets are always tried, so that the time does not reveal which of them issued the nonce.
        var isOurs = Self.isTag(tag, of: body, appID, secret)
        if let former { isOurs = Self.isTag(tag, of: body, appID, former) || isOurs }
        guard isOurs else { return nil }
        return RecognizedNonce(
            issuedAtMilliseconds: NonceFormat.milliseconds(in: body, at: NonceFormat.issueOffset),
            expiresAtMilliseconds: NonceFormat.milliseconds(in: body, at: NonceFormat.expiryOffset),
            identity: bytes
        )
    }

    private static func isTag(
        _ tag: Span<UInt8>,
        of body: Span<UInt8>,
        _ appID: Span<UInt8>,
        _ secret: NonceSecret
    ) -> Bool {
        guard let expected = self.tag(body, appID, secret) else { return false }
        return ConstantTime.areEqual(tag, expected.bytes.span.extracting(0..<NonceFormat.tagByteCount))
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

    var issuedAt: NumericDate { NumericDate(milliseconds: issuedAtMilliseconds) }
    var expiresAt: NumericDate { NumericDate(milliseconds: expiresAtMilliseconds) }
}

/// The bytes of an issued nonce: version (1), time of issue (6), expiry (6), random (16), tag (16). The times are in
/// milliseconds since 1970, most significant byte first.
/// It is written in lower-case hexadecimal, so each nonce has exactly one spelling.
enum NonceFormat {
    static let version: UInt8 = 2
    static let issueOffset = 1
    static let expiryOffset = 7
    static let bodyByteCount = 29
    static let tagByteCount = 16
    static let byteCount = 45
    static let textByteCount = 90
    /// Six bytes hold numbers of milliseconds below this.
    static let milliseconds: UInt64 = 1 << 48

    /// True if a text may be a nonce of an issuer. Most other nonces have another length.
    static func hasLength(_ text: [UInt8]) -> Bool { text.count == textByteCount }

    static func bytes(of text: Span<UInt8>) -> [UInt8]? {
        guard text.count == textByteCount else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(byteCount)
        for index in stride(from: 0, to: textByteCount, by: 2) {
            guard let high = digit(text[index]), let low = digit(text[index + 1]) else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes[0] == version ? bytes : nil
    }

    /// The value of a digit in lower case; in upper case a nonce would have another spelling.
    private static func digit(_ byte: UInt8) -> UInt8? { byte &- 0x41 < 26 ? nil : Hexadecimal.value(byte) }

    /// The prefix of the tag's message, so that no other use of the secret can yield a tag.
    static let domain = Array("limited-login nonce v1\0".utf8)

    /// The six bytes at `offset`; the body has ``bodyByteCount`` bytes, so both offsets are within it.
    static func milliseconds(in body: Span<UInt8>, at offset: Int) -> UInt64 {
        var value: UInt64 = 0
        for index in offset..<offset + 6 { value = value << 8 | UInt64(body[index]) }
        return value
    }

    static func append(_ value: UInt64, to bytes: inout [UInt8]) {
        for shift: UInt64 in [40, 32, 24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: value >> shift)) }
    }
}

/// The secret under which a ``NonceIssuer`` issues and recognises nonces. The secret is enough to make nonces.
/// It never shows its bytes: its description gives only their number, and its mirror, which `dump` shows, is empty.
package struct NonceSecret: Sendable, Equatable, Redacted {
    /// The least number of bytes: 32, the output of SHA-256. A shorter key weakens the code (RFC 2104 section 3).
    package static let leastByteCount = 32
    /// The greatest number of bytes: 128. More would add no strength.
    package static let greatestByteCount = 128
    /// The least number of different bytes: 8. Of 32 random bytes fewer are different once in 10²⁰ times; a typed
    /// secret, or one left at zeros, often has fewer.
    static let leastDistinctByteCount = 8

    let bytes: [UInt8]

    /// Takes a secret of 32 to 128 bytes from a cryptographic random generator.
    package init(bytes: [UInt8]) throws(InvalidConfiguration) {
        guard bytes.count >= Self.leastByteCount else { throw .secretTooShort }
        guard bytes.count <= Self.greatestByteCount else { throw .secretTooLong }
        guard Set(bytes).count >= Self.leastDistinctByteCount else { throw .secretNotRandom }
        self.bytes = bytes
    }

    /// Takes a secret in its written form: 32 to 128 visible ASCII characters; their bytes are the secret.
    package init(text: String) throws(InvalidConfiguration) {
        let bytes = Array(text.utf8)
        guard bytes.allSatisfy(ASCII.isVisible) else { throw .secretNotVisible }
        try self.init(bytes: bytes)
    }

    package var description: String { "a secret of \(bytes.count) bytes" }
}
