/// A JWK Set (RFC 7517 section 5): the keys this project can use, and the ones it cannot, with reasons.
public struct JSONWebKeySet: Equatable, Sendable {
    /// A key that was left out of the set, and why. One bad key never spoils the others.
    public struct IgnoredKey: Equatable, Sendable {
        /// The position in the `keys` array, from zero.
        public let index: Int
        /// `kid`, where it is a string of at most 256 bytes.
        public let keyID: String?
        /// Why the key is of no use here.
        public let reason: JSONWebKeyError
    }

    /// The bounds of a set.
    package enum Limits {
        /// Greatest length of the text in bytes. 64 KiB: Facebook's set has about 1 KiB.
        package static let byteCount = 65_536
        /// Greatest number of keys. 64: Facebook publishes two; a set beyond it is refused whole.
        package static let keyCount = 64
    }

    /// The keys that may verify, in the order of the set; no two have the same key ID.
    public let keys: [JSONWebKey]
    /// The keys left out, in the order of the set.
    public let ignoredKeys: [IgnoredKey]

    /// A set of these keys. Keys that share a key ID are left out, as in a set that was read.
    public init(keys: [JSONWebKey]) {
        self.init(Array(keys.enumerated()).map { ($0.offset, $0.element) }, ignored: [])
    }

    /// The key with this key ID, compared byte for byte.
    public func key(withID keyID: String) -> JSONWebKey? {
        keys.first { $0.keyID.utf8.elementsEqual(keyID.utf8) }
    }

    /// Leaves out every key whose ID another key has too: the ID would not say which of them signed
    /// (RFC 7517 section 4.5). Of equal keys the first stays, for there is nothing to mistake.
    init(_ candidates: [(index: Int, key: JSONWebKey)], ignored: [IgnoredKey]) {
        var keys: [JSONWebKey] = []
        var ignored = ignored
        for (position, candidate) in candidates.enumerated() {
            let key = candidate.key
            let namesakes = candidates.filter { $0.key.keyID.utf8.elementsEqual(key.keyID.utf8) }
            if namesakes.contains(where: { !$0.key.hasSameValue(as: key) }) {
                ignored.append(IgnoredKey(index: candidate.index, keyID: key.keyID, reason: .ambiguousKeyID))
            } else if candidates[..<position].contains(where: { $0.key.keyID.utf8.elementsEqual(key.keyID.utf8) }) {
                ignored.append(IgnoredKey(index: candidate.index, keyID: key.keyID, reason: .repeatedKey))
            } else {
                keys.append(key)
            }
        }
        self.keys = keys
        self.ignoredKeys = ignored.sorted { $0.index < $1.index }
    }
}

extension JSONWebKey {
    /// Whether both are the same public key, whatever their names.
    func hasSameValue(as other: JSONWebKey) -> Bool {
        modulus == other.modulus && publicExponent == other.publicExponent
    }
}
