internal import LLBytes

/// An RSA public key for RS256, read from a JWK (RFC 7517, RFC 7518 section 6.3) and checked for use in verification.
public struct JWK: Equatable, Hashable, Sendable {
    /// `kid`: the key ID by which tokens name this key; 1 to 256 bytes.
    public let keyID: String
    /// `n`: the modulus, big-endian, without leading zeros; odd, 2048 to 8192 bits.
    public let modulus: [UInt8]
    /// `e`: the public exponent, big-endian, without leading zeros; odd, 3 to 2³³.
    public let publicExponent: [UInt8]

    /// A key from its parts, checked by the same rules as a JWK.
    /// - Throws: `JWKError` if a part is out of its range.
    public init(keyID: String, modulus: [UInt8], publicExponent: [UInt8]) throws(JWKError) {
        guard !keyID.isEmpty else { throw .missingKeyID }
        guard keyID.utf8.count <= JWSCompactSerialization.keyIDByteCount else { throw .keyIDTooLong }
        (self.keyID, self.modulus, self.publicExponent) = (keyID, modulus, publicExponent)
        try checkNumbers()
    }

    /// The size of the modulus in bits.
    public var modulusBitCount: Int { modulus.count * 8 - (modulus.first?.leadingZeroBitCount ?? 0) }

    /// The RFC 7638 thumbprint with SHA-256: 43 digits of base64url.
    public var thumbprint: String {
        // Empty only when OpenSSL has no memory left.
        (try? numbers.thumbprint()) ?? ""
    }

    package var numbers: PublicKeyNumbers { .rsa(modulus: modulus, exponent: publicExponent) }
}

extension JWK {
    /// Reads the JWK at `node`. It checks all members together and refuses the key if one check fails.
    init(_ json: borrowing JSONObject, _ node: Int) throws(JWKError) {
        try Self.checkType(json, node, "RSA")
        try Self.checkPurpose(json, node, algorithm: "RS256")
        try Self.checkIsPublic(json, node)
        guard let keyID = json.string("kid", of: node) else { throw .missingKeyID }
        guard var modulus = Self.value("n", json, node), !modulus.isEmpty, let exponent = Self.value("e", json, node),
            !exponent.isEmpty
        else { throw .malformedNumber }
        // RFC 7518 section 6.3.1.1 notes that some implementations put one zero octet before the modulus. The value is
        // the same. Refusing it would lock out every user and prevent no attack.
        if modulus.first == 0 { modulus.removeFirst() }
        guard modulus.first != 0, exponent.first != 0 else { throw .malformedNumber }
        try self.init(keyID: keyID, modulus: modulus, publicExponent: exponent)
    }

    /// Requires an object without repeated members and with the required `kty` (RFC 7517 sections 4 and 4.1).
    /// Here and below `==` acts as a comparison of bytes: no letter in these words has another spelling in Unicode, as
    /// K has.
    fileprivate static func checkType(_ json: borrowing JSONObject, _ node: Int, _ expected: String) throws(JWKError) {
        guard json.document.isObject(node) else { throw .notAnObject }
        guard !json.document.isRepeating(node) else { throw .repeatedMember }
        guard let type = json.string("kty", of: node) else { throw .malformedKeyType }
        guard type == expected else { throw .unsupportedKeyType }
    }

    /// RFC 7518 sections 6.2.2, 6.3.2 and 6.4.1: a private or symmetric member discloses the key.
    fileprivate static func checkIsPublic(_ json: borrowing JSONObject, _ node: Int) throws(JWKError) {
        let names: [StaticString] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"]
        for name in names where json.member(name, of: node) != nil { throw .holdsPrivateMembers }
    }

    /// Refuses a key that is declared for another purpose (RFC 7517 sections 4.2 to 4.4).
    fileprivate static func checkPurpose(_ json: borrowing JSONObject, _ node: Int, algorithm expected: String)
        throws(JWKError)
    {
        guard json.member("use", of: node) == nil || json.string("use", of: node) == "sig" else {
            throw .notForSignatures
        }
        if let operations = json.member("key_ops", of: node) { try checkOperations(json, operations) }
        guard json.member("alg", of: node) == nil || json.string("alg", of: node) == expected else {
            throw .unsupportedAlgorithm
        }
    }

    /// RFC 7517 section 4.3: an array of distinct strings. `sign` beside `verify` has no use in a public key but does
    /// no harm. Any other operation means that the key serves another purpose.
    private static func checkOperations(_ json: borrowing JSONObject, _ list: Int) throws(JWKError) {
        guard json.document.kind(list) == .array else { throw .notForVerifying }
        let operations = json.strings(list).sorted()
        guard operations.count == json.document.children(of: list).count,
            operations == ["verify"] || operations == ["sign", "verify"]
        else { throw .notForVerifying }
    }

    /// The bytes of a member (RFC 7518 section 2); nil unless it is a string of strict base64url.
    fileprivate static func value(_ name: StaticString, _ json: borrowing JSONObject, _ node: Int) -> [UInt8]? {
        // The JSON string is decoded first, so that a digit written as a JSON escape counts as that digit.
        guard let text = json.string(name, of: node) else { return nil }
        var value: [UInt8] = []
        return Base64URL.decode(text.utf8.span, 0..<text.utf8.count, into: &value) ? value : nil
    }
}

/// The arithmetic rules of an RSA public key that OpenSSL does not enforce.
extension JWK {
    /// The primes that the two fingerprint checks below use.
    private static let smallPrimes: [UInt32] = [
        3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107,
        109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167,
    ]

    /// Least size of a modulus in bits. RFC 7518 section 3.3: a key of 2048 bits or larger MUST be used.
    private static let leastModulusBitCount = 2_048
    /// Greatest size of a modulus in bits. 8,192: with a larger modulus one signature costs milliseconds.
    private static let greatestModulusBitCount = 8_192
    /// Greatest public exponent. 2³³: the cost of a signature grows with the exponent's length.
    private static let greatestPublicExponent: UInt64 = 1 << 33

    /// Refuses values that an honest issuer never publishes. Both numbers are big-endian without leading zeros.
    private func checkNumbers() throws(JWKError) {
        guard modulusBitCount >= Self.leastModulusBitCount else { throw .modulusTooShort }
        guard modulusBitCount <= Self.greatestModulusBitCount else { throw .modulusTooLong }
        // RFC 8017 section 3.1 requires 3 or more; an even exponent has no inverse. Five bytes
        // fit 64 bits.
        let exponent = publicExponent.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard publicExponent.count <= 5, exponent & 1 == 1, (3...Self.greatestPublicExponent).contains(exponent) else {
            throw .unsafeExponent
        }
        guard let last = modulus.last, last & 1 == 1 else { throw .modulusHasSmallFactor }
        // A remainder stays below 168, so 256 times it plus a byte fits 32 bits.
        let remainders = Self.smallPrimes.map { prime in
            modulus.reduce(UInt32(0)) { ($0 << 8 | UInt32($1)) % prime }
        }
        guard !remainders.contains(0) else { throw .modulusHasSmallFactor }
        // CVE-2017-15361: the flawed library made primes of the form k·M + 65537^a mod M. The modulus is therefore a
        // power of 65537 modulo every small prime. About one honest modulus in 10^8 has the same property.
        let hasFingerprint = zip(Self.smallPrimes, remainders).allSatisfy { prime, remainder in
            // The powers repeat after at most `prime - 1` steps.
            sequence(first: 1) { $0 * (65537 % prime) % prime }.prefix(Int(prime)).contains(remainder)
        }
        guard !hasFingerprint else { throw .weakModulus }
    }
}

extension PublicKeyNumbers {
    /// Reads the JWK of a P-256 key for ES256 at `node`, such as the one in a DPoP proof (RFC 7518 section 6.2). It checks
    /// all members together and refuses the key if one check fails. OpenSSL checks later that the point is on the curve.
    package init(es256 json: borrowing JSONObject, _ node: Int) throws(JWKError) {
        try JWK.checkType(json, node, "EC")
        // RFC 7518 section 6.2.1.1.
        guard json.string("crv", of: node) == "P-256" else { throw .unsupportedCurve }
        // RFC 9449 section 4.3 (7): the key must not be a private one (RFC 7518 sections 6.2.2, 6.3.2 and 6.4.1).
        try JWK.checkIsPublic(json, node)
        try JWK.checkPurpose(json, node, algorithm: "ES256")
        // Leading zeros must be kept (RFC 7518 section 6.2.1.2).
        guard let x = JWK.value("x", json, node), x.count == Self.coordinateByteCount,
            let y = JWK.value("y", json, node), y.count == Self.coordinateByteCount
        else { throw .malformedCoordinate }
        self = .p256(x: x, y: y)
    }
}

/// Why one JWK cannot be used to verify signatures. Later versions may add reasons.
public struct JWKError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The reason as a clause that can follow a colon.
    public let description: String

    private init(_ description: String) { self.description = description }

    /// The value is not a JSON object.
    public static let notAnObject = Self("the key is not a JSON object")
    /// The object names a member twice (RFC 7517 section 4).
    public static let repeatedMember = Self("the key names a member twice")
    /// `kty` is missing or not a string (RFC 7517 section 4.1).
    public static let malformedKeyType = Self("kty is missing or not a string")
    /// `kty` is a string other than `RSA`.
    public static let unsupportedKeyType = Self("kty is not RSA")
    /// `use` is present and is not `sig` (RFC 7517 section 4.2).
    public static let notForSignatures = Self("use is not sig")
    /// `key_ops` is present and is not an array of distinct strings with `verify` (RFC 7517 section 4.3).
    public static let notForVerifying = Self("key_ops does not list verify, or is malformed")
    /// `alg` is present and is not `RS256` (RFC 7517 section 4.4): each key serves one algorithm.
    public static let unsupportedAlgorithm = Self("alg is not RS256")
    /// `kid` is missing, empty or not a string (RFC 7517 section 4.5), so no token can name the key.
    public static let missingKeyID = Self("kid is missing, empty or not a string")
    /// `kid` is longer than 256 bytes.
    public static let keyIDTooLong = Self("kid is longer than 256 bytes")
    /// The key has a private or symmetric member and is compromised (RFC 7518 sections 6.3.2 and 6.4.1).
    public static let holdsPrivateMembers = Self("the key holds private members")
    /// `n` or `e` is missing or not strict base64url (RFC 7518 section 6.3.1).
    public static let malformedNumber = Self("n or e is missing or not base64url")
    /// `crv` is missing or not `P-256` (RFC 7518 section 6.2.1.1).
    public static let unsupportedCurve = Self("crv is not P-256")
    /// `x` or `y` is missing or not 32 bytes of strict base64url (RFC 7518 section 6.2.1.2).
    public static let malformedCoordinate = Self("x or y is missing or not 32 bytes of base64url")
    /// `n` has fewer than 2048 bits (RFC 7518 section 3.3).
    public static let modulusTooShort = Self("the modulus has less than 2048 bits")
    /// `n` has more than 8192 bits.
    public static let modulusTooLong = Self("the modulus has more than 8,192 bits")
    /// `n` is even or has a factor below 168, so it is not the product of two large primes.
    public static let modulusHasSmallFactor = Self("the modulus has a small factor")
    /// `n` has the fingerprint of the weak generator of CVE-2017-15361.
    public static let weakModulus = Self("the modulus comes from a generator known to be weak (ROCA)")
    /// `e` is even, less than 3 or greater than 2³³.
    public static let unsafeExponent = Self("the public exponent is even, less than 3 or greater than 2^33")
    /// Another key of the set has the same key ID but another value, so the ID identifies neither (RFC 7517 section
    /// 4.5).
    public static let ambiguousKeyID = Self("another key has the same kid")
    /// An equal key comes earlier in the set.
    public static let repeatedKey = Self("the same key stands earlier in the set")
}

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
                    $0.utf8.count <= JWSCompactSerialization.keyIDByteCount ? $0 : nil
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
