/// What ties a token to one login.
public enum TokenBinding: Equatable, Sendable {
    /// The `nonce` claim is exactly this nonce.
    case nonce(Nonce)
    /// The `nonce` claim is the lower-case hexadecimal SHA-256 of this nonce, as clients that hash it send it.
    case rawNonce(Nonce)
    /// The `sub` claim is exactly this user: a refresh of a session that already exists.
    case subject(String)
    /// Nothing. Only a policy whose binding is optional accepts it.
    case unbound
}

/// The kind of a `TokenBinding`, for callers that hold its value as bytes.
package enum BindingKind: Equatable, Sendable {
    case nonce, rawNonce, subject, unbound
}
