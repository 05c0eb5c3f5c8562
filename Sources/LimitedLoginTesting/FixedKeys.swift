public import LimitedLogin

/// A provider of keys that never change, or of none, in the place of a `JWKSetCache`.
public struct FixedKeys: JSONWebKeySetProvider {
    /// What the provider of ``unavailable`` throws.
    public struct Unavailable: Error, Equatable {}

    /// A provider whose source is down: a `LoginVerifier` throws `VerificationUnavailable`, and your server answers 503.
    public static let unavailable = FixedKeys(keySet: nil)

    private let keySet: JSONWebKeySet?

    private init(keySet: JSONWebKeySet?) { self.keySet = keySet }

    /// A provider of this set.
    public init(_ keySet: JSONWebKeySet) { self.init(keySet: keySet) }

    /// A provider of these keys.
    public init(_ keys: TestKey...) { self.init(keySet: TestKey.keySet(keys)) }

    /// The set, whatever key is asked for.
    public func keySet(containing keyID: String) async throws(Unavailable) -> JSONWebKeySet {
        guard let keySet else { throw Unavailable() }
        return keySet
    }
}
