internal import LLBytes
internal import LLJOSE

/// The rules of a verdict: apps, issuers, clock skew, age, binding and tracking. No member turns a check off.
public struct VerificationPolicy: Sendable {
    /// The policy on the binding of a token to a login.
    @nonexhaustive  // SE-0487
    public enum Binding: Sendable {
        /// A nonce, raw nonce or subject must be given.
        case required
        /// A token may be judged without a login.
        case optional
    }

    /// The tracking that a login may have been made with.
    @nonexhaustive  // SE-0487
    public enum Tracking: Sendable {
        /// Facebook Login and Limited Login.
        case any
        /// Only Limited Login.
        case limited
    }

    /// Both issuers that Facebook has used: today's, and the one before September 2021.
    public static let defaultIssuers = ["https://www.facebook.com", "https://facebook.com"]
    /// One minute: synchronised clocks differ by milliseconds, and bad ones by seconds.
    public static let defaultClockSkew = Duration.seconds(60)

    /// The apps that tokens may be for: a token's `aud` is one of them, byte for byte. At least one; each 1 to 128 visible
    /// ASCII characters other than `\`.
    public let appIDs: [String]
    /// The trusted issuers: a token's `iss` is one of them, byte for byte. At least one; each an `https` URL, or an `http`
    /// URL of a loopback host, of at most 1,024 bytes.
    public let issuers: [String]
    /// The accepted difference between the clocks of issuer and verifier: 0 to 300 s.
    public let clockSkew: Duration
    /// The greatest age of a token since `iat`, 1 to 2,147,483,647 s; nil leaves it to `exp` alone.
    public let maximumTokenAge: Duration?
    /// The policy on the binding of a token to a login.
    public let binding: Binding
    /// The accepted tracking.
    public let tracking: Tracking
    private let skew: Double
    private let greatestAge: Double?

    /// Makes a policy from these values, if each is in its range.
    public init(
        appIDs: [String],
        issuers: [String] = defaultIssuers,
        clockSkew: Duration = defaultClockSkew,
        maximumTokenAge: Duration? = nil,
        binding: Binding = .required,
        tracking: Tracking = .any
    ) throws(InvalidConfiguration) {
        try InvalidConfiguration.unless(
            !appIDs.isEmpty,
            "At least one app ID is needed: a token without a known audience could be meant for any app."
        )
        for appID in appIDs {
            try InvalidConfiguration.unless(
                Self.isAppID(appID),
                "\(appID.debugDescription) is no app ID: give 1 to 128 visible ASCII characters without white space or \\."
            )
        }
        try InvalidConfiguration.unless(
            !issuers.isEmpty,
            "At least one issuer is needed; Facebook's is https://www.facebook.com."
        )
        for issuer in issuers {
            try InvalidConfiguration.unless(
                Self.isIssuer(issuer),
                "\(issuer.debugDescription) is no issuer: give an https URL (http only for a loopback host)."
            )
        }
        let limit = VerificationLimits.clockSkewSeconds
        try InvalidConfiguration.unless(
            (.zero ... .seconds(limit)).contains(clockSkew),
            "A clock skew of \(clockSkew) is out of range: 0 to \(limit) s."
        )
        try InvalidConfiguration.unless(
            maximumTokenAge.map { (.seconds(1) ... .seconds(Int32.max)).contains($0) } ?? true,
            "A greatest token age of \(maximumTokenAge ?? .zero) is out of range: 1 to \(Int32.max) s."
        )
        self.appIDs = appIDs
        self.issuers = issuers
        self.clockSkew = clockSkew
        self.maximumTokenAge = maximumTokenAge
        (skew, greatestAge) = (clockSkew.asSeconds, maximumTokenAge?.asSeconds)
        self.binding = binding
        self.tracking = tracking
    }

    package static func isAppID(_ text: String) -> Bool {
        // With a reverse solidus, an ID could be the JSON spelling of another one. Facebook's have at most 20 digits.
        isVisibleASCII(text) && !text.utf8.contains(UInt8(ascii: "\\")) && text.utf8.count <= 128
    }

    /// OpenID Connect Core section 2 requires an `https` URL; loopback is for stand-ins on the same machine.
    private static func isIssuer(_ text: String) -> Bool {
        guard isVisibleASCII(text), text.utf8.count <= 1_024 else { return false }
        if text.hasPrefix("https://") { return text.utf8.count > "https://".utf8.count }
        return ["http://127.0.0.1", "http://localhost", "http://[::1]"].contains { loopback in
            let rest = text.utf8.dropFirst(loopback.utf8.count)
            return text.hasPrefix(loopback)
                && (rest.isEmpty || rest.first == UInt8(ascii: ":") || rest.first == UInt8(ascii: "/"))
        }
    }

    private static func isVisibleASCII(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy(ASCII.isVisible)
    }
}

/// The times of a token. All sums are of doubles up to 2⁵³ + 2³¹: they neither overflow nor saturate.
extension VerificationPolicy {
    func isExpired(_ expiresAt: NumericDate, _ now: NumericDate) -> Bool {
        now.secondsSince1970 >= expiresAt.secondsSince1970 + skew
    }

    func isAhead(_ moment: NumericDate, _ now: NumericDate) -> Bool {
        moment.secondsSince1970 > now.secondsSince1970 + skew
    }

    func isTooOld(_ issuedAt: NumericDate, _ now: NumericDate) -> Bool {
        guard let greatestAge else { return false }
        return now.secondsSince1970 - issuedAt.secondsSince1970 > greatestAge + skew
    }
}

/// The reason why a policy or a secret is refused.
public struct InvalidConfiguration: Error, Equatable, Sendable, CustomStringConvertible {
    /// The fault and its remedy. It never quotes a secret.
    public let description: String

    init(_ description: String) { self.description = description }

    static func unless(_ isFit: Bool, _ fault: @autoclosure () -> String) throws(InvalidConfiguration) {
        guard isFit else { throw InvalidConfiguration(fault()) }
    }
}

/// A few configured byte strings. Look-ups take bytes and allocate nothing.
struct ByteStringSet: Sendable {
    private let members: [[UInt8]]

    /// The set of these strings; empty ones are left out, because an empty string is never a member.
    init(_ members: [String]) { self.members = members.filter { !$0.isEmpty }.map { Array($0.utf8) } }

    func contains(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
        for member in members where bytes.equal(range, member.span) { return true }
        return false
    }
}

package enum VerificationLimits {
    /// The greatest length of a token, in bytes. 32 KiB: most have about 1 KiB, but `user_friends` names each friend,
    /// so that 1,000 friends make 28 KB. A longer token is refused without any work.
    package static let tokenByteCount = 32_768
    /// The greatest length of `sub`, in bytes. OpenID Connect Core section 2: 255 ASCII characters.
    static let subjectByteCount = 255
    /// The greatest clock skew, in seconds. 300: more would noticeably lengthen the life of a stolen token.
    package static let clockSkewSeconds = 300

    /// The bounds of the header: 6 KiB (real ones have about 100 bytes), few members and no deep nesting, because it is read
    /// before the signature.
    static let header = JSONLimits(byteCount: 6_144, memberCount: 32, nodeCount: 512)
    static let payload = JSONLimits(byteCount: tokenByteCount, nodeCount: 4_096)
}

/// Seconds since 1970-01-01T00:00:00Z without leap seconds (RFC 7519 section 2, NumericDate).
public struct NumericDate: Comparable, Hashable, Sendable {
    /// The seconds: finite, from 0 to 2⁵³; fractions are allowed.
    public let secondsSince1970: Double

    package static let beginning = NumericDate(milliseconds: 0)

    /// The last time: 2⁵³ seconds, the greatest number up to which a double holds every integer.
    package static let greatestSeconds: Double = 9_007_199_254_740_992

    /// A time; nil outside 0 to 2⁵³ seconds, and for NaN.
    public init?(secondsSince1970: Double) {
        guard secondsSince1970 >= 0, secondsSince1970 <= Self.greatestSeconds else { return nil }
        self.secondsSince1970 = secondsSince1970
    }

    /// A time in whole seconds; nil outside 0 to 2⁵³.
    public init?(secondsSince1970: some BinaryInteger) {
        guard secondsSince1970 >= 0, secondsSince1970 <= Int64(1) << 53 else { return nil }
        self.secondsSince1970 = Double(secondsSince1970)
    }

    /// A time in milliseconds. Only the lowest 48 bits count, so it is always in range.
    init(milliseconds: UInt64) { secondsSince1970 = Double(milliseconds & 0xFFFF_FFFF_FFFF) / 1_000 }

    /// The whole seconds, rounded down. In range: the value is from 0 to 2⁵³.
    public var wholeSeconds: Int64 { Int64(secondsSince1970) }

    /// The unit that the number seems to count in place of seconds; nil for a time that seconds may mean. 10¹¹ seconds, 10¹⁴
    /// milliseconds and 10¹⁷ microseconds are all in the year 5138.
    var mistakenUnit: StaticString? {
        if secondsSince1970 < 1e11 { return nil }
        return secondsSince1970 < 1e14 ? "milliseconds" : "microseconds"
    }

    /// True if this is at most `seconds` ago, and not ahead.
    func isRecent(within seconds: Int, clockSkew: Duration, now: NumericDate) -> Bool {
        !isAhead(of: now, clockSkew: clockSkew)
            && now.secondsSince1970 - secondsSince1970 <= Double(seconds)
    }

    /// True if this is later by more than the skew, which is limited to 0 to 300 s.
    func isAhead(of other: NumericDate, clockSkew: Duration) -> Bool {
        secondsSince1970 > other.secondsSince1970 + Self.skew(clockSkew)
    }

    /// A clock skew within its range, 0 to 300 s.
    static func skew(_ skew: Duration) -> Double {
        min(max(.zero, skew), .seconds(VerificationLimits.clockSkewSeconds)).asSeconds
    }

    /// True if the left time is before the right one.
    public static func < (left: NumericDate, right: NumericDate) -> Bool {
        left.secondsSince1970 < right.secondsSince1970
    }
}

extension Duration {
    // The quotient of two durations is not exact: 9,700 s by 1 s is not 9,700.
    var asSeconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}

extension JSONObject {
    func date(_ node: Int) -> NumericDate? {
        // An integer is compared exactly: as a double, 2⁵³ + 1 would be equal to 2⁵³.
        if let integer = document.integer(node, in: bytes.span) { return NumericDate(secondsSince1970: integer) }
        guard let value = document.double(node, in: bytes.span), value < NumericDate.greatestSeconds else { return nil }
        return NumericDate(secondsSince1970: value)
    }

    func date(_ name: StaticString, of node: Int? = nil) -> NumericDate? { member(name, of: node).flatMap { date($0) } }
}

extension NumericDate {
    /// The current time by the system's clock.
    public static var now: NumericDate {
        // If the clock gives no time, the result is 1970; no token is valid then.
        NumericDate(secondsSince1970: systemSeconds()) ?? .beginning
    }

    /// Seconds since 1970 by the system's clock; negative before 1970. It is the standard clock of a ``LoginVerifier``.
    public static func systemSeconds() -> Double { Double(WallClock.unixNanoseconds()) / 1_000_000_000 }
}

/// The JSON is a number of seconds since 1970.
extension NumericDate: Codable {
    /// Reads a time; throws for a number outside 0 to 2⁵³.
    public init(from decoder: any Decoder) throws {
        let seconds = try decoder.singleValueContainer().decode(Double.self)
        guard let date = NumericDate(secondsSince1970: seconds) else {
            throw DecodingError.unfit("no number of seconds since 1970", decoder)
        }
        self = date
    }

    /// Writes the seconds.
    public func encode(to encoder: any Encoder) throws {
        var value = encoder.singleValueContainer()
        try value.encode(secondsSince1970)
    }
}

extension DecodingError {
    static func unfit(_ description: String, _ decoder: any Decoder) -> DecodingError {
        .dataCorrupted(Context(codingPath: decoder.codingPath, debugDescription: description))
    }
}
