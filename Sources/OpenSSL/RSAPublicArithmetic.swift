internal import COpenSSL

/// Raises numbers to the public exponent modulo the modulus (RFC 8017 section 5.2.2) with OpenSSL's Montgomery
/// multiplication, on numbers and a context that are made once.
///
/// The inputs are public, so nothing needs constant time. Not Sendable: the numbers are scratch space.
@safe final class RSAPublicArithmetic {
    let modulusByteCount: Int
    /// The bits of the exponent below its highest, the most significant first.
    private let exponentBits: [Bool]
    private let modulus: OpaquePointer
    private let montgomery: OpaquePointer
    private let context: OpaquePointer
    private let base: OpaquePointer
    private let power: OpaquePointer

    init(modulus: [UInt8], exponent: [UInt8]) throws(OpenSSLError) {
        // Made in this order, each freed below if a later one fails.
        guard
            let number = unsafe modulus.withUnsafeBufferPointer({ buffer in
                unsafe BN_bin2bn(buffer.baseAddress, Int32(clamping: buffer.count), nil)
            })
        else { throw OpenSSLError("BN_bin2bn") }
        let montgomery = unsafe BN_MONT_CTX_new()
        let context = unsafe BN_CTX_new()
        let base = unsafe BN_new()
        let power = unsafe BN_new()
        guard let montgomery = unsafe montgomery, let context = unsafe context, let base = unsafe base,
            let power = unsafe power, !exponent.allSatisfy({ $0 == 0 }), unsafe BN_is_odd(number) == 1,
            unsafe BN_num_bits(number) >= 512, unsafe BN_MONT_CTX_set(montgomery, number, context) == 1
        else {
            unsafe BN_free(power)
            unsafe BN_free(base)
            unsafe BN_CTX_free(context)
            unsafe BN_MONT_CTX_free(montgomery)
            unsafe BN_free(number)
            throw OpenSSLError("BN_MONT_CTX_set")
        }
        var bits: [Bool] = []
        for byte in exponent {
            for shift in [7, 6, 5, 4, 3, 2, 1, 0] { bits.append((byte >> UInt8(shift)) & 1 == 1) }
        }
        exponentBits = Array(bits.drop(while: { !$0 }).dropFirst())
        modulusByteCount = (Int(unsafe BN_num_bits(number)) + 7) / 8
        unsafe self.modulus = number
        unsafe self.montgomery = montgomery
        unsafe self.context = context
        unsafe self.base = base
        unsafe self.power = power
    }

    deinit {
        unsafe BN_free(power)
        unsafe BN_free(base)
        unsafe BN_CTX_free(context)
        unsafe BN_MONT_CTX_free(montgomery)
        unsafe BN_free(modulus)
    }

    /// Writes `number` to the power of the exponent into `result`, big-endian, filling it; false when the number is
    /// not below the modulus (RFC 8017 section 5.2.2 step 1) or OpenSSL fails.
    func raise(_ number: Span<UInt8>, into result: inout [UInt8]) -> Bool {
        let isRead = unsafe number.withUnsafeBufferPointer { buffer in
            unsafe BN_bin2bn(buffer.baseAddress, Int32(clamping: buffer.count), base) != nil
        }
        guard isRead, unsafe BN_ucmp(base, modulus) < 0, exponentiate() else { return false }
        return unsafe result.withUnsafeMutableBufferPointer { buffer in
            let count = Int32(clamping: buffer.count)
            // BN_bn2binpad writes exactly `count` bytes, which is the buffer's own, or fails.
            return unsafe BN_bn2binpad(power, buffer.baseAddress, count) == count
        }
    }

    /// Leaves `base` to the exponent in `power`: from the exponent's highest bit downwards, a squaring for each
    /// bit and a multiplication for each one that is set.
    ///
    /// `power` is in Montgomery form, `base` is not. A multiplication of the two forms takes the result out of
    /// Montgomery form, which the last bit of an odd exponent does in place of a conversion; every other one is
    /// followed by the way back.
    private func exponentiate() -> Bool {
        guard unsafe BN_to_montgomery(power, base, montgomery, context) == 1 else { return false }
        for position in exponentBits.indices {
            guard unsafe BN_mod_mul_montgomery(power, power, power, montgomery, context) == 1 else { return false }
            guard exponentBits[position] else { continue }
            guard unsafe BN_mod_mul_montgomery(power, power, base, montgomery, context) == 1 else { return false }
            if position + 1 == exponentBits.count { return true }
            guard unsafe BN_to_montgomery(power, power, montgomery, context) == 1 else { return false }
        }
        return unsafe BN_from_montgomery(power, power, montgomery, context) == 1
    }
}
