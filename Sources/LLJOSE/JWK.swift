internal import LLBytes

/// An RSA public key for RS256, read from a JWK (RFC 7517, RFC 7518 section 6.3) and checked for use in verification.
public struct JWK: Equatable, Hashable, Sendable {
    /// `kid`: the key ID by which tokens name this key; 1 to 256 bytes.
    public let keyID: String
    /// `n`: the modulus, big-endian, without leading zeros; odd, 2048 to 8192 bits.
    public let modulus: [UInt8]
    /// `e`: the public exponent, big-endian, without leading zeros; odd, 3 to 2³³.
    public let publicExponent: [UInt8]

    package enum Limits {
        /// Greatest length of a key ID in bytes. 256: Facebook's key IDs have 40.
        package static let keyIDByteCount = 256
        /// Least size of a modulus in bits. RFC 7518 section 3.3: a key of 2048 bits or larger MUST be used.
        static let leastModulusBitCount = 2048
        /// Greatest size of a modulus in bits. 8192: with a larger modulus one signature costs milliseconds.
        static let greatestModulusBitCount = 8192
        /// Greatest public exponent. 2³³: the cost of a signature grows with the exponent's length.
        static let greatestPublicExponent: UInt64 = 1 << 33
    }

    /// A key from its parts, checked by the same rules as a JWK.
    /// - Throws: `JWKError` if a part is out of its range.
    public init(keyID: String, modulus: [UInt8], publicExponent: [UInt8]) throws(JWKError) {
        guard !keyID.isEmpty else { throw .missingKeyID }
        guard keyID.utf8.count <= Limits.keyIDByteCount else { throw .keyIDTooLong }
        try RSAParameters.check(modulus: modulus, publicExponent: publicExponent)
        self.keyID = keyID
        self.modulus = modulus
        self.publicExponent = publicExponent
    }

    /// The size of the modulus in bits.
    public var modulusBitCount: Int { RSAParameters.bitCount(modulus) }

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
        for name in privateMembers where json.member(name, of: node) != nil { throw .holdsPrivateMembers }
    }

    private static let privateMembers: [StaticString] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"]

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

/// The arithmetic rules of an RSA public key that OpenSSL does not enforce.
enum RSAParameters {
    /// The primes that the two fingerprint checks below use.
    private static let smallPrimes: [UInt32] = [
        3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107,
        109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167,
    ]

    /// Refuses values that an honest issuer never publishes. Both numbers are big-endian without leading zeros.
    static func check(modulus: [UInt8], publicExponent: [UInt8]) throws(JWKError) {
        let bitCount = bitCount(modulus)
        guard bitCount >= JWK.Limits.leastModulusBitCount else { throw .modulusTooShort }
        guard bitCount <= JWK.Limits.greatestModulusBitCount else { throw .modulusTooLong }
        try checkExponent(publicExponent)
        guard let last = modulus.last, last & 1 == 1 else { throw .modulusHasSmallFactor }
        // A remainder stays below 168, so 256 times it plus a byte fits 32 bits.
        let remainders = smallPrimes.map { prime in modulus.reduce(UInt32(0)) { ($0 << 8 | UInt32($1)) % prime } }
        guard !remainders.contains(0) else { throw .modulusHasSmallFactor }
        // CVE-2017-15361: the flawed library made primes of the form k·M + 65537^a mod M. The modulus is therefore a
        // power of 65537 modulo every small prime. About one honest modulus in 10^8 has the same property.
        let hasFingerprint = zip(smallPrimes, remainders).allSatisfy { isPowerOf65537($1, modulo: $0) }
        guard !hasFingerprint else { throw .weakModulus }
    }

    /// RFC 8017 section 3.1 requires 3 or more; an even exponent has no inverse.
    private static func checkExponent(_ exponent: [UInt8]) throws(JWKError) {
        guard exponent.count <= 5, let last = exponent.last, last & 1 == 1 else { throw .unsafeExponent }
        // The exponent has at most five bytes, so the value fits 64 bits.
        let value = exponent.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard value >= 3, value <= JWK.Limits.greatestPublicExponent else { throw .unsafeExponent }
    }

    static func bitCount(_ number: [UInt8]) -> Int {
        guard let first = number.first else { return 0 }
        return number.count * 8 - first.leadingZeroBitCount
    }

    private static func isPowerOf65537(_ value: UInt32, modulo prime: UInt32) -> Bool {
        var power: UInt32 = 1
        // The powers repeat after at most `prime - 1` steps.
        for _ in 0..<prime {
            if power == value { return true }
            power = power * (65537 % prime) % prime
        }
        return false
    }
}
