public import LimitedLogin

/// A provider of fixed keys, or of none; it replaces a `JWKSetCache` in tests.
public struct FixedKeys: JSONWebKeySetProvider {
    /// The error of the provider ``unavailable``.
    public struct Unavailable: Error, Equatable {}

    /// A provider with a source that is down: a `LoginVerifier` throws `Unavailable`, and your server
    /// answers 503.
    public static let unavailable = FixedKeys(keySet: nil)

    private let keySet: JSONWebKeySet?

    private init(keySet: JSONWebKeySet?) { self.keySet = keySet }

    /// A provider of this set.
    public init(_ keySet: JSONWebKeySet) { self.init(keySet: keySet) }

    /// A provider of these keys.
    public init(_ keys: TestKey...) { self.init(keySet: TestKey.keySet(keys)) }

    /// The same set for every key ID.
    public func keySet(containing keyID: String) async throws(Unavailable) -> JSONWebKeySet {
        guard let keySet else { throw Unavailable() }
        return keySet
    }
}
