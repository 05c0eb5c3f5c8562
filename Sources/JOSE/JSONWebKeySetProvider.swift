/// Gives the keys that verify now: a cache that keeps an issuer's JWK Set at hand, or a fixed set in a test.
public protocol JSONWebKeySetProvider: Sendable {
    /// Why there are no keys to give.
    associatedtype Failure: Error

    /// The keys that verify now, for a token of this key ID. It may wait, within a bound, for a key that was only just
    /// published; the set answered may lack the key all the same, and then no such key is published.
    /// - Throws: when nobody can tell: there are no usable keys, or the key is unknown and its source cannot be asked.
    func keySet(containing keyID: String) async throws(Failure) -> JSONWebKeySet
}

extension JSONWebKeySet: JSONWebKeySetProvider {
    /// The set itself.
    public func keySet(containing keyID: String) async throws(Never) -> JSONWebKeySet { self }
}
