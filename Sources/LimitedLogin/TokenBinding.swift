/// What ties a token to one login.
public enum TokenBinding: Equatable, Sendable {
    /// The `nonce` claim is exactly this nonce: the proof of a fresh login.
    case nonce(Nonce)
    /// The `nonce` claim is the lower-case hexadecimal SHA-256 of this nonce: the scheme of clients that hand
    /// Facebook the hash and keep the nonce to themselves.
    case rawNonce(Nonce)
    /// The `nonce` claim is one that the verifier's own ``NonceIssuer`` issued for this app, and its time is not over:
    /// the proof of a login that began lately, once the nonce is kept from being used twice.
    case issuedNonce
    /// The `sub` claim is exactly this user: a refresh of a session that already exists.
    ///
    /// SDK 18.1 and later refreshes tokens in the background with nonces the backend never saw. Such a binding
    /// proves that Facebook issued a fresh token for the same person and app. It does not prove that this caller
    /// asked for it: whoever holds a live token of that person could present it, so it may prolong a session but
    /// never start one.
    case subject(String)
    /// Nothing. Only a policy whose binding is optional accepts it; a token then proves who logged in somewhere
    /// within its life, not that it was here.
    case unbound
}

/// The kind of a `TokenBinding`, for callers that hold its value as bytes.
package enum BindingKind: Equatable, Sendable {
    case nonce
    case rawNonce
    case issuedNonce
    case subject
    case unbound
}
