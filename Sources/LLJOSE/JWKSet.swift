internal import LLBytes

/// A JWK Set (RFC 7517 section 5): the usable keys, and the ignored keys with their reasons.
public struct JWKSet: Equatable, Sendable {
    /// A key that was left out of the set, and the reason. One bad key never spoils the others.
    public struct IgnoredKey: Equatable, Sendable {
        /// The position in the `keys` array, from zero.
        public let index: Int
        /// `kid`, if it is a string of at most 256 bytes.
        public let keyID: String?
        /// Why the key cannot be used.
        public let reason: JWKError
    }

    package enum Limits {
        /// Greatest length of the text in bytes. 64 KiB: Facebook's set has about 1 KiB.
        package static let byteCount = 65_536
        /// Greatest number of keys. 64: Facebook publishes two. A larger set is refused whole.
        static let keyCount = 64
    }

    /// The usable keys in the order of the set; no two have the same key ID.
    public let keys: [JWK]
    /// The keys left out, in the order of the set.
    public let ignoredKeys: [IgnoredKey]

    /// A set of these keys. Keys that share a key ID are left out, as in a parsed set.
    public init(keys: [JWK]) { self.init(Array(keys.enumerated()).map { ($0.offset, $0.element) }, ignored: []) }

    /// The key with this key ID, compared byte for byte.
    public func key(withID keyID: String) -> JWK? { keys.first { $0.keyID.utf8.elementsEqual(keyID.utf8) } }

    /// Leaves out every key that shares its ID with a different key: the ID would not identify the signing key (RFC
    /// 7517 section 4.5). Of equal keys the first stays, because they cannot be confused.
    init(_ candidates: [(index: Int, key: JWK)], ignored: [IgnoredKey]) {
        var keys: [JWK] = []
        var ignored = ignored
        for (position, candidate) in candidates.enumerated() {
            let key = candidate.key
            let namesakes = candidates.filter { $0.key.keyID.utf8.elementsEqual(key.keyID.utf8) }
            if namesakes.contains(where: { $0.key.numbers != key.numbers }) {
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

extension JWKSet {
    /// Reads the JSON text of a JWK Set (RFC 7517 section 5).
    ///
    /// Keys of other kinds and malformed keys are ignored one by one and reported in `ignoredKeys`. Other members of
    /// the set are ignored. A set without any usable key is not an error here: its meaning depends on the keys that the
    /// caller already has.
    /// - Parameter text: at most 64 KiB of UTF-8.
    /// - Throws: `JWKSetError` if the text is not a JWK Set, or holds more than 64 keys.
    public init(parsing text: Span<UInt8>) throws(JWKSetError) {
        guard text.count <= Limits.byteCount else { throw .tooLong }
        var json = JSONObject(marksRepeatedMembers: true)
        json.bytes.append(text)
        let isObject: Bool
        do throws(JSONError) {
            isObject = try json.read()
        } catch { throw .malformed(error.description) }
        guard isObject, !json.document.isRepeating(json.document.root), let list = json.member("keys"),
            json.document.kind(list) == .array
        else { throw .notAKeySet }
        let nodes = json.document.children(of: list)
        guard nodes.count <= Limits.keyCount else { throw .tooManyKeys }
        var candidates: [(index: Int, key: JWK)] = []
        var ignored: [IgnoredKey] = []
        for (index, node) in nodes.enumerated() {
            do throws(JWKError) {
                candidates.append((index, try JWK(json, node)))
            } catch {
                let keyID = json.string("kid", of: node).flatMap {
                    $0.utf8.count <= JWK.Limits.keyIDByteCount ? $0 : nil
                }
                ignored.append(IgnoredKey(index: index, keyID: keyID, reason: error))
            }
        }
        self.init(candidates, ignored: ignored)
    }

    /// Reads the JSON text of a JWK Set.
    /// - Throws: `JWKSetError`, as ``init(parsing:)`` for bytes does.
    public init(parsing text: String) throws(JWKSetError) { try self.init(parsing: Array(text.utf8).span) }
}

/// Why a text is not a JWK Set.
public struct JWKSetError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The reason as one sentence without its full stop.
    public let description: String

    private init(_ description: String) { self.description = description }

    /// The text is longer than 64 KiB.
    public static let tooLong = Self(
        "the JWK Set is longer than \(DecimalNumber.grouped(JWKSet.Limits.byteCount)) bytes"
    )
    /// The text is JSON but not an object with an array `keys` (RFC 7517 section 5.1), or it names `keys` twice.
    public static let notAKeySet = Self("the JSON text is no JWK Set: it is no object with one array \"keys\"")
    /// The array holds more than 64 keys.
    public static let tooManyKeys = Self("the JWK Set holds more than \(JWKSet.Limits.keyCount) keys")

    /// The text is not strict JSON. The clause gives the reason and the position.
    static func malformed(_ reason: String) -> Self { Self("the JWK Set is not JSON: \(reason)") }
}

/// Provides the currently valid verification keys: a cache of an issuer's JWK Set, or a fixed set in a test.
public protocol JWKSetProvider: Sendable {
    /// The error if no keys can be provided.
    associatedtype Failure: Error

    /// The currently valid keys, for a token with this key ID. The call may wait, within a bound, for a key that was
    /// published a moment ago. If the returned set lacks the key, no such key is published.
    /// - Throws: if there are no usable keys, or if the key is unknown and its source cannot be asked.
    nonisolated(nonsending) func keySet(containing keyID: String) async throws(Failure) -> JWKSet
}

/// An error of a provider that tells how to answer.
public protocol JWKSetOutage: Error {
    /// True if the provider works, but clients ask for more unknown keys than its source may be asked for.
    var isOverload: Bool { get }
    /// The time after which another attempt makes sense; nil if it is not known.
    var retryAfter: Duration? { get }
}

extension JWKSet: JWKSetProvider {
    /// The set itself.
    public nonisolated(nonsending) func keySet(containing keyID: String) async throws(Never) -> JWKSet { self }
}
