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

    /// What is expected besides the binding's own value, as bytes.
    var added: AddedExpectation {
        AddedExpectation(
            subject: Array((binding.refreshedSubject ?? "").utf8),
            keyThumbprint: Array((keyThumbprint ?? "").utf8),
            accessToken: Array((accessToken ?? "").utf8)
        )
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

/// What is expected of a token besides the value of its binding, as bytes; what is empty is not asked for.
package struct AddedExpectation: Sendable {
    /// The user of a login that is refreshed; only beside a nonce.
    package var subject: [UInt8]
    /// The RFC 7638 thumbprint of the device's key.
    package var keyThumbprint: [UInt8]
    /// The access token that came with the token.
    package var accessToken: [UInt8]

    /// Whether nothing else must hold.
    package var isEmpty: Bool { subject.isEmpty && keyThumbprint.isEmpty && accessToken.isEmpty }

    /// An expectation of these.
    package init(subject: [UInt8] = [], keyThumbprint: [UInt8] = [], accessToken: [UInt8] = []) {
        self.subject = subject
        self.keyThumbprint = keyThumbprint
        self.accessToken = accessToken
    }
}
