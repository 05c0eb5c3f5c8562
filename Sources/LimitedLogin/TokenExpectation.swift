internal import LLBytes

/// The caller's knowledge about the login that a token should belong to.
public struct TokenExpectation: Equatable, Sendable, Redacted {
    /// The tie between the token and the login.
    public var binding: TokenBinding
    // The texts are bytes, because the service compares them with those of a request.
    package var appIDBytes: [UInt8]?
    package var keyThumbprintBytes: [UInt8]?
    package var accessTokenBytes: [UInt8]?

    /// An expectation.
    public init(binding: TokenBinding, appID: String? = nil, keyThumbprint: String? = nil, accessToken: String? = nil) {
        self.binding = binding
        (appIDBytes, keyThumbprintBytes) = (Self.bytes(appID), Self.bytes(keyThumbprint))
        accessTokenBytes = Self.bytes(accessToken)
    }

    package init(_ binding: TokenBinding = TokenBinding()) { self.binding = binding }

    /// The one app that the token must be for, one of the policy's; nil for any of them.
    public var appID: String? { Self.text(appIDBytes) }
    /// The RFC 7638 thumbprint of the device's key, 43 digits of base64url. The token's `cnf.jkt` must be equal to it
    /// (RFC 9449 section 6.1). Nil if it is not known.
    public var keyThumbprint: String? { Self.text(keyThumbprintBytes) }
    /// The access token that came with the token. The token's `at_hash` must be its hash (OpenID Connect Core section
    /// 3.1.3.6). Nil if there is none.
    public var accessToken: String? { Self.text(accessTokenBytes) }

    var requiresAppAlone: Bool { binding.isUnbound && keyThumbprintBytes == nil && accessTokenBytes == nil }

    private static func text(_ bytes: [UInt8]?) -> String? { bytes.map { String(decoding: $0, as: UTF8.self) } }
    private static func bytes(_ text: String?) -> [UInt8]? { text.map { Array($0.utf8) } }
}

/// The tie between a token and one login: the login itself, or a refresh of it.
public struct TokenBinding: Equatable, Sendable, Redacted {
    /// The question to the verifier's ``NonceIssuer`` about the nonce.
    package enum Issue: Equatable, Sendable {
        /// A nonce of the issuer must not have expired; any other nonce is only compared.
        case recognized
        /// The nonce must be one of the issuer's, any one if none is given, and must not have expired.
        case required
        /// Nothing: every nonce is only compared.
        case ignored
    }

    /// The nonce of the login; nil if none is given. The verdict refuses an invalid one.
    package var nonce: [UInt8]?
    /// True if the token has the lower-case hexadecimal SHA-256 of the nonce.
    package var isRaw: Bool
    package var issue: Issue
    /// The user of a login that is refreshed; nil if a login begins.
    package var subject: [UInt8]?

    package init(nonce: [UInt8]? = nil, isRaw: Bool = false, issue: Issue = .recognized, subject: [UInt8]? = nil) {
        (self.nonce, self.isRaw, self.issue, self.subject) = (nonce, isRaw, issue, subject)
    }

    /// The `nonce` claim is exactly this nonce, which your session holds: the proof of this login.
    ///
    /// If the verifier's own ``NonceIssuer`` issued it for this app, it must not have expired either.
    public static func nonce(_ nonce: Nonce) -> TokenBinding { TokenBinding(nonce: Array(nonce.value.utf8)) }

    /// The `nonce` claim is the lower-case hexadecimal SHA-256 of this nonce.
    public static func rawNonce(_ nonce: Nonce) -> TokenBinding {
        TokenBinding(nonce: Array(nonce.value.utf8), isRaw: true)
    }

    /// The `nonce` claim is one that the verifier's own ``NonceIssuer`` issued for this app, and it has not expired.
    ///
    /// It does not prove whose login began: a stolen token passes too. It is for servers without a session before the login;
    /// all others give the nonce of their session with ``nonce(_:)``.
    public static let issuedNonce = TokenBinding(issue: .required)

    /// A refresh of a session that already exists: the `sub` claim is exactly the session's user.
    ///
    /// It proves that Facebook issued a fresh token for the same person and app, but not that this caller asked for it: it
    /// may prolong a session, and never start one. ``refreshing(_:)`` proves more.
    public static func refresh(ofSessionOf user: String) -> TokenBinding { TokenBinding(subject: Array(user.utf8)) }

    /// No tie, which only a policy with optional binding accepts. It proves no login at this service.
    public static let unbound = TokenBinding()

    /// The same login, refreshed: the `sub` claim is exactly this user, and the nonce is checked as well.
    ///
    /// Facebook's SDK since 18.1 refreshes in the background and keeps the login's nonce. An issued nonce was used at that
    /// login and may have expired since.
    public func refreshing(_ subject: String) -> TokenBinding {
        var binding = self
        binding.subject = Array(subject.utf8)
        return binding
    }

    /// True if this prolongs a session; false if it begins one.
    public var isRefresh: Bool { subject != nil }

    package var requiresNonce: Bool { nonce != nil || issue == .required }
    package var isUnbound: Bool { !requiresNonce && subject == nil }
}

/// A nonce in the form that Facebook's SDK accepts: not empty and without white space of any kind.
///
/// The backend makes one for each login and gives it to the app; Facebook returns it in the token unchanged.
public struct Nonce: Equatable, Hashable, Sendable, Redacted {
    /// The nonce itself.
    public let value: String

    /// Takes a nonce made elsewhere; nil if it is empty or has white space.
    public init?(_ value: String) {
        guard Self.isValid(value.utf8.span) else { return nil }
        self.value = value
    }

    private init(unchecked value: String) { self.value = value }

    /// Makes a nonce from 256 bits of the system's cryptographic random generator: 43 base64url digits.
    public static func generate() -> Nonce {
        var generator = SystemRandomNumberGenerator()
        let bytes = (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        return Nonce(unchecked: Base64URL.encode(bytes))
    }

    /// The number of characters below which a nonce is weak: 16, since 16 base64url digits have 96 random bits. Facebook's
    /// sample code uses `123`.
    package static let weakCharacterCount = 16

    package static func isWeak(_ nonce: [UInt8]) -> Bool {
        // UTF-8 continues a character with bytes of the form 10xxxxxx.
        nonce.count { $0 & 0xC0 != 0x80 } < weakCharacterCount
    }

    /// True if both are the same bytes (`String` would also equate other spellings of a character).
    public static func == (left: Nonce, right: Nonce) -> Bool { left.value.utf8.elementsEqual(right.value.utf8) }

    /// True if these UTF-8 bytes are a nonce. Apple's platforms count the zero-width space as white space too.
    package static func isValid(_ bytes: Span<UInt8>) -> Bool {
        guard !bytes.isEmpty else { return false }
        for index in 0..<bytes.count {
            let byte = bytes[index]
            if byte == 0x20 || (0x09...0x0D).contains(byte) { return false }
            // Hardly any nonce goes beyond ASCII.
            if byte >= 0x80 { return !hasWhiteSpace(bytes) }
        }
        return true
    }

    private static func hasWhiteSpace(_ bytes: Span<UInt8>) -> Bool {
        var copy: [UInt8] = []
        copy.append(bytes)
        let text = String(decoding: copy, as: UTF8.self)
        return text.unicodeScalars.contains { $0.properties.isWhitespace || $0 == "\u{200B}" }
    }
}
