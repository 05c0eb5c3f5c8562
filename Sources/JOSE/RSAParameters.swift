/// The arithmetic rules of an RSA public key (rules that OpenSSL does not enforce).
enum RSAParameters {
    /// The primes the two fingerprints below look at.
    private static let smallPrimes: [UInt32] = [
        3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107,
        109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167,
    ]

    /// Refuses what no honest issuer publishes. Both numbers are big-endian without leading zeros.
    static func check(modulus: [UInt8], publicExponent: [UInt8]) throws(JSONWebKeyError) {
        let bitCount = bitCount(modulus)
        guard bitCount >= JSONWebKey.Limits.leastModulusBitCount else { throw .modulusTooShort }
        guard bitCount <= JSONWebKey.Limits.greatestModulusBitCount else { throw .modulusTooLong }
        try checkExponent(publicExponent)
        guard let last = modulus.last, last & 1 == 1 else { throw .modulusHasSmallFactor }
        let remainders = smallPrimes.map { remainder(of: modulus, by: $0) }
        guard !remainders.contains(0) else { throw .modulusHasSmallFactor }
        // CVE-2017-15361: the flawed library made primes of the form k·M + 65537^a mod M, so that modulo every
        // small prime the modulus is a power of 65537. An honest modulus passes all tests once in about 10^8.
        let hasFingerprint = zip(smallPrimes, remainders).allSatisfy { isPowerOf65537($1, modulo: $0) }
        guard !hasFingerprint else { throw .weakModulus }
    }

    /// RFC 8017 section 3.1 wants 3 or more; an even exponent has no inverse.
    private static func checkExponent(_ exponent: [UInt8]) throws(JSONWebKeyError) {
        guard exponent.count <= 5, let last = exponent.last, last & 1 == 1 else { throw .unsafeExponent }
        // At most five bytes, so the value fits 64 bits.
        let value = exponent.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard value >= 3, value <= JSONWebKey.Limits.greatestPublicExponent else { throw .unsafeExponent }
    }

    /// The number of bits of a big-endian number without leading zeros.
    static func bitCount(_ number: [UInt8]) -> Int {
        guard let first = number.first else { return 0 }
        return number.count * 8 - first.leadingZeroBitCount
    }

    private static func remainder(of number: [UInt8], by divisor: UInt32) -> UInt32 {
        // The remainder stays below 168, so 256 times it plus a byte fits easily.
        number.reduce(UInt32(0)) { ($0 << 8 | UInt32($1)) % divisor }
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
