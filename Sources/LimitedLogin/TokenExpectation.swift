internal import LLBytes

/// What the caller knows about the login a token should belong to.
public struct TokenExpectation: Equatable, Sendable {
    /// What ties the token to the login.
    public var binding: TokenBinding
    /// The one app the token must be for, one of the policy's; nil for any of them.
    public var appID: String?
    /// The RFC 7638 thumbprint of the device's key, 43 digits of base64url, which the token's `cnf.jkt` must be
    /// (RFC 9449 section 6.1); nil where it is not known.
    public var keyThumbprint: String?
    /// The access token that came with the token, which its `at_hash` must be of (OpenID Connect Core section 3.1.3.6);
    /// nil where there is none.
    public var accessToken: String?

    /// An expectation.
    public init(
        binding: TokenBinding,
        appID: String? = nil,
        keyThumbprint: String? = nil,
        accessToken: String? = nil
    ) {
        self.binding = binding
        self.appID = appID
        self.keyThumbprint = keyThumbprint
        self.accessToken = accessToken
    }

    /// The same as bytes.
    var question: TokenQuestion {
        var question = TokenQuestion(binding.kind, Array(binding.value.utf8), appID: Array((appID ?? "").utf8))
        question.subject = Array((binding.refreshedSubject ?? "").utf8)
        question.keyThumbprint = Array((keyThumbprint ?? "").utf8)
        question.accessToken = Array((accessToken ?? "").utf8)
        return question
    }
}

/// What ties a token to one login: the login itself, or a refresh of it.
public struct TokenBinding: Equatable, Sendable {
    let kind: BindingKind
    /// The nonce or the user; empty where there is none.
    let value: String
    /// The user of a login that was begun with the nonce and is refreshed.
    var refreshedSubject: String?

    private init(_ kind: BindingKind, _ value: String = "") {
        self.kind = kind
        self.value = value
    }

    /// The `nonce` claim is exactly this nonce: the proof of a fresh login.
    public static func nonce(_ nonce: Nonce) -> TokenBinding { TokenBinding(.nonce, nonce.value) }

    /// The `nonce` claim is the lower-case hexadecimal SHA-256 of this nonce: the scheme of clients that hand
    /// Facebook the hash and keep the nonce to themselves.
    public static func rawNonce(_ nonce: Nonce) -> TokenBinding { TokenBinding(.rawNonce, nonce.value) }

    /// The `nonce` claim is one that the verifier's own ``NonceIssuer`` issued for this app, and its time is not over:
    /// the proof of a login that began lately, once the nonce is kept from being used twice.
    public static let issuedNonce = TokenBinding(.issuedNonce)

    /// The `sub` claim is exactly this user: a refresh of a session that already exists.
    ///
    /// It proves that Facebook issued a fresh token for the same person and app. It does not prove that this caller
    /// asked for it: every holder of a live token of that person could present it, so it may prolong a session but
    /// never start one. ``refreshing(_:)`` proves more.
    public static func subject(_ subject: String) -> TokenBinding { TokenBinding(.subject, subject) }

    /// Nothing. Only a policy whose binding is optional accepts it; a token then proves who logged in somewhere
    /// within its life, not that it was here.
    public static let unbound = TokenBinding(.unbound)

    /// The same login, refreshed: the `sub` claim is exactly this user, and the nonce holds as well.
    ///
    /// Facebook's SDK since 18.1 refreshes in the background and keeps the login's nonce. An issued nonce then need only
    /// have been issued here for this app: it was used at the login and may have expired since.
    public func refreshing(_ subject: String) -> TokenBinding {
        // With the user alone, or nothing, there is no nonce to keep.
        guard kind != .subject, kind != .unbound else { return .subject(subject) }
        var binding = self
        binding.refreshedSubject = subject
        return binding
    }

    /// Whether this prolongs a session rather than begins one.
    public var isRefresh: Bool { kind == .subject || refreshedSubject != nil }
}

/// The kind of a `TokenBinding`, for callers that hold its value as bytes.
package enum BindingKind: Equatable, Sendable {
    case nonce
    case rawNonce
    case issuedNonce
    case subject
    case unbound
}

/// What a token must be besides genuine, as bytes; what is empty is not asked for.
package struct TokenQuestion: Sendable {
    /// What ties the token to a login; `.unbound` where the caller cannot know.
    package var binding: BindingKind
    /// The nonce, raw nonce or subject that the binding compares with, escapes decoded.
    package var bindingValue: [UInt8]
    /// The one app the token must be for; empty for any configured one.
    package var appID: [UInt8]
    /// The user of a login that is refreshed; only beside a nonce.
    package var subject: [UInt8] = []
    /// The RFC 7638 thumbprint of the device's key.
    package var keyThumbprint: [UInt8] = []
    /// The access token that came with the token.
    package var accessToken: [UInt8] = []
    /// What is told of the token; others may be missing where it is one that is remembered.
    package var texts: TokenReading.Texts

    package init(
        _ binding: BindingKind = .unbound,
        _ bindingValue: [UInt8] = [],
        appID: [UInt8] = [],
        texts: TokenReading.Texts = TokenReading.Texts()
    ) {
        self.binding = binding
        self.bindingValue = bindingValue
        self.appID = appID
        self.texts = texts
    }

    /// Whether the login is refreshed: a session is prolonged rather than begun.
    package var isRefresh: Bool { binding == .subject || !subject.isEmpty }

    /// Whether nothing but the app must hold.
    var isUnbound: Bool {
        if case .unbound = binding { subject.isEmpty && keyThumbprint.isEmpty && accessToken.isEmpty } else { false }
    }
}

/// A nonce as Facebook's SDK takes it: not empty and without white space of any kind.
///
/// The backend makes one for each login and gives it to the app; Facebook echoes it in the token unchanged.
/// It is the only tie between a token and a login, so every nonce should be accepted once.
public struct Nonce: Equatable, Hashable, Sendable {
    /// The nonce itself.
    public let value: String

    /// Takes a nonce made elsewhere; nil when it is empty or holds white space.
    public init?(_ value: String) {
        guard Self.isValid(value.utf8.span) else { return nil }
        self.value = value
    }

    private init(unchecked value: String) {
        self.value = value
    }

    /// Makes a nonce from 256 bits of the system's cryptographic random generator: 43 base64url digits.
    public static func generate() -> Nonce {
        var generator = SystemRandomNumberGenerator()
        let bytes = (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        return Nonce(unchecked: String(decoding: Base64URL.encode(bytes), as: UTF8.self))
    }

    /// Whether two nonces are the same bytes (`String` alone would also equate other spellings of a character).
    public static func == (left: Nonce, right: Nonce) -> Bool {
        left.value.utf8.elementsEqual(right.value.utf8)
    }

    /// Whether these UTF-8 bytes are a nonce.
    ///
    /// White space is what Unicode gives that property, and the zero-width space that Apple's platforms count
    /// among it: U+0009 to U+000D, U+0020, U+0085, U+00A0, U+1680, U+2000 to U+200B, U+2028, U+2029, U+202F,
    /// U+205F and U+3000.
    package static func isValid(_ bytes: Span<UInt8>) -> Bool {
        guard !bytes.isEmpty else { return false }
        for index in 0..<bytes.count {
            let byte = bytes[index]
            if byte == 0x20 || (0x09...0x0D).contains(byte) { return false }
            if byte >= 0xC2, startsWideSpace(bytes, at: index, byte) { return false }
        }
        return true
    }

    /// Whether a white space of two or three UTF-8 bytes starts at `index`.
    private static func startsWideSpace(_ bytes: Span<UInt8>, at index: Int, _ first: UInt8) -> Bool {
        let second = index + 1 < bytes.count ? bytes[index + 1] : 0
        let third = index + 2 < bytes.count ? bytes[index + 2] : 0
        return switch (first, second) {
        case (0xC2, 0x85), (0xC2, 0xA0): true
        case (0xE1, 0x9A): third == 0x80
        case (0xE2, 0x80): (0x80...0x8B).contains(third) || third == 0xA8 || third == 0xA9 || third == 0xAF
        case (0xE2, 0x81): third == 0x9F
        case (0xE3, 0x80): third == 0x80
        default: false
        }
    }
}
