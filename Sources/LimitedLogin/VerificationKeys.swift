package import JOSE
internal import OpenSSL

/// The keys of a JWK Set made ready to verify: one worker's own, never shared, found by key ID.
public final class VerificationKeys {
    /// Whether no key can verify anything.
    public var isEmpty: Bool { true }

    /// Makes each usable key ready. A key OpenSSL refuses is left out, as the set's other unusable keys are.
    package init(_ set: JSONWebKeySet) {}
}
