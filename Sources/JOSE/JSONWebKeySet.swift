/// A JWK Set (RFC 7517 section 5): the keys this project can use, and the ones it cannot, with reasons.
public struct JSONWebKeySet: Equatable, Sendable {
    /// A key that was left out of the set, and why. One bad key never spoils the others.
    public struct IgnoredKey: Equatable, Sendable {
        /// The position in the `keys` array, from zero.
        public let index: Int
        /// `kid`, where it could be read.
        public let keyID: String?
        /// Why the key is of no use here.
        public let reason: JSONWebKeyError
    }

    /// The keys that may verify, in the order of the set.
    public let keys: [JSONWebKey]
    /// The keys left out, in the order of the set.
    public let ignoredKeys: [IgnoredKey]

    /// A set of these keys.
    public init(keys: [JSONWebKey]) {
        self.keys = keys
        self.ignoredKeys = []
    }

    /// Reads the JSON text of a JWK Set.
    public init(parsing text: Span<UInt8>) throws(JSONWebKeySetError) {
        throw .malformed("")
    }

    /// The key with this key ID, compared byte for byte.
    public func key(withID keyID: String) -> JSONWebKey? {
        keys.first { $0.keyID.utf8.elementsEqual(keyID.utf8) }
    }
}
