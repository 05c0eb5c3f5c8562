internal import CLLOpenSSL
internal import LLBytes

/// A public key that verifies signatures with SHA-256: RSASSA-PKCS1-v1_5 (RFC 8017 section 8.2.2), or ES256 (RFC 7518
/// section 3.4). Its context is initialised once and used again for every signature.
/// It is not Sendable: each worker has its own for each key, so workers share no lock and no reference count.
@safe package final class PublicKey {
    /// The length in bytes of every signature under this key: that of an RSA key's modulus, or 64.
    package let signatureByteCount: Int
    private let isRSA: Bool
    private let context: OpaquePointer

    /// Makes a key from its numbers. The caller decides about sizes of RSA. OpenSSL accepts some keys that can never
    /// verify a signature; they are refused here: a modulus that is even or shorter than 512 bits, and a missing
    /// exponent. It refuses a point that is not on the curve; the order of the curve is prime, so every other point on
    /// it is sound.
    package init(_ numbers: PublicKeyNumbers) throws(OpenSSLError) {
        let key = try Self.key(numbers)
        isRSA = numbers.isRSA
        signatureByteCount =
            isRSA ? Int(unsafe EVP_PKEY_get_size(key.handle)) : 2 * PublicKeyNumbers.coordinateByteCount
        unsafe context = try key.context(isRSA: isRSA, "EVP_PKEY_verify_init", EVP_PKEY_verify_init)
    }

    deinit { unsafe EVP_PKEY_CTX_free(context) }

    private static func key(_ numbers: PublicKeyNumbers) throws(OpenSSLError) -> Key {
        switch numbers {
        case .rsa(let modulus, let exponent):
            guard modulus.drop(while: { $0 == 0 }).count >= 64, let last = modulus.last, last & 1 == 1,
                exponent.contains(where: { $0 != 0 })
            else { throw OpenSSLError("RSA parameters") }
            let (n, e) = unsafe (bigNumber(modulus), bigNumber(exponent))
            defer {
                unsafe BN_free(n)
                unsafe BN_free(e)
            }
            return unsafe try Key(public: "RSA") { builder in
                guard let n = unsafe n, let e = unsafe e else { return nil }
                return unsafe OSSL_PARAM_BLD_push_BN(builder, Key.text("n"), n) == 1
                    && OSSL_PARAM_BLD_push_BN(builder, Key.text("e"), e) == 1 ? OSSL_PARAM_BLD_to_param(builder) : nil
            }
        case .p256(let x, let y):
            guard [x.count, y.count] == [PublicKeyNumbers.coordinateByteCount, PublicKeyNumbers.coordinateByteCount]
            else { throw OpenSSLError("EC coordinates") }
            // An uncompressed point begins with 4 (SEC 1 section 2.3.3). OpenSSL reads it in a tenth of the time that
            // it takes to decode a SubjectPublicKeyInfo.
            let point = [4] + x + y
            return unsafe try Key(public: "EC") { builder in
                unsafe point.withUnsafeBufferPointer { buffer in
                    unsafe OSSL_PARAM_BLD_push_utf8_string(builder, Key.text("group"), Key.text("prime256v1"), 0) == 1
                        && OSSL_PARAM_BLD_push_octet_string(builder, Key.text("pub"), buffer.baseAddress, buffer.count)
                            == 1
                        ? OSSL_PARAM_BLD_to_param(builder) : nil
                }
            }
        }
    }

    private static func bigNumber(_ bytes: [UInt8]) -> OpaquePointer? {
        unsafe bytes.withUnsafeBufferPointer { buffer in
            unsafe BN_bin2bn(buffer.baseAddress, Int32(clamping: buffer.count), nil)
        }
    }

    /// True if `signature` is this key's signature of the message with the digest. The thread's error queue is empty
    /// afterwards.
    package func isValidSignature(_ signature: Span<UInt8>, of digest: SHA256Digest) -> Bool {
        guard signature.count == signatureByteCount else { return false }
        if isRSA { return unsafe Self.isValid(signature, of: digest, in: context) }
        // OpenSSL expects the form of RFC 3279 section 2.2.3. It refuses numbers outside 1 to the order less one.
        return unsafe Self.isValid(Self.sequence(signature).span, of: digest, in: context)
    }

    /// True if OpenSSL accepts the signature of the digest. The context must be ready to verify.
    /// Only the return value 1 means a valid signature; zero and negative values mean an invalid one.
    static func isValid(_ signature: Span<UInt8>, of digest: SHA256Digest, in context: OpaquePointer) -> Bool {
        let hash = digest.bytes.span
        let result = unsafe signature.withUnsafeBufferPointer { signature in
            unsafe hash.withUnsafeBufferPointer { hash in
                unsafe EVP_PKEY_verify(context, signature.baseAddress, signature.count, hash.baseAddress, hash.count)
            }
        }
        if result != 1 { ERR_clear_error() }
        return result == 1
    }

    /// Both numbers as a DER SEQUENCE of two INTEGERs.
    private static func sequence(_ signature: Span<UInt8>) -> [UInt8] {
        let half = PublicKeyNumbers.coordinateByteCount
        let numbers = integer(signature.extracting(0..<half)) + integer(signature.extracting(half..<2 * half))
        // The content has at most 2 · 35 bytes, so its length has the short form.
        return [0x30, UInt8(numbers.count)] + numbers
    }

    private static func integer(_ number: Span<UInt8>) -> [UInt8] {
        var first = 0
        while first < number.count - 1, number[first] == 0 { first += 1 }
        var bytes: [UInt8] = number[first] >= 0x80 ? [0] : []
        bytes.append(number, first..<number.count)
        return [0x02, UInt8(bytes.count)] + bytes
    }
}

/// The numbers of a public key, big-endian, as its JWK has them (RFC 7518 sections 6.2.1 and 6.3.1).
package enum PublicKeyNumbers: Equatable, Sendable {
    /// A key for RS256.
    case rsa(modulus: [UInt8], exponent: [UInt8])
    /// A point of the curve P-256, for ES256.
    case p256(x: [UInt8], y: [UInt8])

    /// The length in bytes of a coordinate on P-256 (RFC 7518 section 6.2.1.2), and of each half of a signature (section
    /// 3.4).
    static let coordinateByteCount = 32

    package var isRSA: Bool { if case .rsa = self { true } else { false } }

    /// The required members of the key's JWK; `kty` comes first.
    package var members: [(name: String, value: String)] {
        switch self {
        case .rsa(let modulus, let exponent):
            [("kty", "RSA"), ("n", Base64URL.encode(modulus)), ("e", Base64URL.encode(exponent))]
        case .p256(let x, let y):
            [("kty", "EC"), ("crv", "P-256"), ("x", Base64URL.encode(x)), ("y", Base64URL.encode(y))]
        }
    }

    /// The RFC 7638 thumbprint with SHA-256, 43 digits of base64url: the hash of the required members in lexical order.
    package func thumbprint() throws(OpenSSLError) -> String {
        let members = members.sorted { $0.name < $1.name }.map { "\"\($0.name)\":\"\($0.value)\"" }
        return try SHA256.digest(of: Array("{\(members.joined(separator: ","))}".utf8).span).base64URL
    }
}

/// OpenSSL's SHA-256, fetched once for the process: each fetch takes a lock. OpenSSL counts its users with an atomic.
nonisolated(unsafe) private let algorithm: OpaquePointer? = {
    ProcessExit.leavesOpenSSLInPlace()
    return unsafe EVP_MD_fetch(nil, "SHA256", nil)
}()

package enum SHA256 {
    package static func digest(of message: Span<UInt8>) throws(OpenSSLError) -> SHA256Digest {
        unsafe try SHA256Digest("EVP_Digest") { algorithm, result in
            unsafe message.withUnsafeBufferPointer { input in
                unsafe EVP_Digest(input.baseAddress, input.count, result, nil, algorithm, nil) == 1
            }
        }
    }
}

/// The 32 bytes of a SHA-256 digest (FIPS 180-4), held inline.
package struct SHA256Digest: Sendable {
    package var bytes = InlineArray<32, UInt8>(repeating: 0)

    /// The SHA-256 digest that `write` stores; `operation` names `write` in an error. The output has 32 bytes, and every
    /// function of SHA-256 writes exactly 32.
    @inline(__always)
    fileprivate init(
        _ operation: String,
        _ write: (_ algorithm: OpaquePointer, _ output: UnsafeMutablePointer<UInt8>?) -> Bool
    ) throws(OpenSSLError) {
        guard let algorithm = unsafe algorithm else { throw OpenSSLError("EVP_MD_fetch") }
        var output = bytes.mutableSpan
        let done = unsafe output.withUnsafeMutableBufferPointer { unsafe write(algorithm, $0.baseAddress) }
        guard done else { throw OpenSSLError(operation) }
    }

    package var base64URL: String { Base64URL.encode(bytes.indices.map { bytes[$0] }) }

    /// 64 lower-case digits.
    package var hexadecimal: String { Hexadecimal.encode(bytes.indices.map { bytes[$0] }) }
}

/// Digests are no secrets, so the comparison need not take constant time.
extension SHA256Digest: Hashable {
    package static func == (left: Self, right: Self) -> Bool { left.bytes.span.equal(0..<32, right.bytes.span) }

    package func hash(into hasher: inout Hasher) { hasher.combine(bytes.span.word(at: 0)) }
}

package enum HMACSHA256 {
    package static func authenticationCode(
        for message: Span<UInt8>,
        key: Span<UInt8>
    ) throws(OpenSSLError) -> SHA256Digest {
        // No key has the 2 GiB of a C int.
        let count = Int32(clamping: key.count)
        return unsafe try SHA256Digest("HMAC") { algorithm, result in
            unsafe key.withUnsafeBufferPointer { key in
                unsafe message.withUnsafeBufferPointer { input in
                    unsafe HMAC(algorithm, key.baseAddress, count, input.baseAddress, input.count, result, nil) != nil
                }
            }
        }
    }
}

/// Comparison of secrets. Its running time depends on the lengths alone, never on the position of the first difference.
package enum ConstantTime {
    /// True if two byte strings are equal. Their lengths are not secret.
    package static func areEqual(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
        guard left.count == right.count else { return false }
        return unsafe left.withUnsafeBufferPointer { leftBytes in
            unsafe right.withUnsafeBufferPointer { rightBytes in
                // An empty span may have no base address. Two empty strings are equal.
                guard let leftBase = leftBytes.baseAddress, let rightBase = rightBytes.baseAddress else { return true }
                // Both buffers hold `count` bytes: the lengths were compared above.
                return unsafe CRYPTO_memcmp(leftBase, rightBase, leftBytes.count) == 0
            }
        }
    }
}

package enum RandomBytes {
    package static func make(count: Int) throws(OpenSSLError) -> [UInt8] {
        ProcessExit.leavesOpenSSLInPlace()
        var bytes = [UInt8](repeating: 0, count: count)
        let result = unsafe bytes.withUnsafeMutableBufferPointer { buffer in
            // RAND_bytes takes a C int. The generator refuses a greater count with its own failure value.
            unsafe RAND_bytes(buffer.baseAddress, Int32(clamping: buffer.count))
        }
        guard result == 1, count <= Int(Int32.max) else { throw OpenSSLError("RAND_bytes") }
        return bytes
    }
}

/// A failed OpenSSL call: the function's name and the library's own reason.
/// The initializer empties the calling thread's error queue, so a later, unrelated call on the same thread never
/// reports this failure.
package struct OpenSSLError: Error, Equatable, Sendable, CustomStringConvertible {
    package let operation: String
    /// The oldest reason in the error queue, which is the root cause.
    package let reason: String

    /// Describes the failure of `operation` from the thread's error queue, and empties the queue.
    package init(_ operation: String) {
        self.operation = operation
        self.reason = Self.drainQueue() ?? "no reason given"
    }

    package var description: String { "\(operation): \(reason)" }

    /// Empties this thread's error queue and returns the reason of its oldest entry, the root of the failure.
    /// - Parameter wordsOfErrno: The sentence for an errno: OpenSSL has no reason for one, only a mark beside it
    ///   (ERR_GET_REASON(3)).
    package static func drainQueue(wordsOfErrno: (Int32) -> String = { "system error \($0)" }) -> String? {
        let code = ERR_get_error()
        ERR_clear_error()
        guard code != 0 else { return nil }
        if code & systemErrorMark != 0 { return wordsOfErrno(Int32(truncatingIfNeeded: code & (systemErrorMark - 1))) }
        guard let reason = unsafe ERR_reason_error_string(code) else { return "OpenSSL error \(code)" }
        return unsafe String(cString: reason)
    }

    /// `ERR_SYSTEM_FLAG`, which is no name in Swift.
    private static let systemErrorMark: CUnsignedLong = 0x8000_0000

    package static var isQueueEmpty: Bool { ERR_peek_error() == 0 }
}

/// OpenSSL's behaviour at the end of the process.
package enum ProcessExit {
    /// Tells OpenSSL to leave its memory to the system at the end of the process. Later calls change nothing.
    /// The setting counts only before the process's first use of OpenSSL. Each function of this module that may be the
    /// first use therefore calls it.
    /// By default OpenSSL frees its global state in an `atexit` handler. `exit` does not wait for other threads. A
    /// worker that verifies or a running fetch would then use freed locks and crash, and an orderly stop would end with
    /// a signal instead of its exit code (OPENSSL_init_crypto(3), OPENSSL_INIT_NO_ATEXIT).
    package static func leavesOpenSSLInPlace() { _ = inPlace }

    // It fails only if OpenSSL cannot start at all. The next call of OpenSSL then fails with a reason.
    private static let inPlace = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
}

package enum RequiredAlgorithms {
    /// - Throws: If OpenSSL lacks one: its configuration file may select providers or properties without it. Each
    ///   published key would then be unusable, and every login an outage.
    package static func check() throws(OpenSSLError) {
        _ = try SHA256.digest(of: [UInt8]().span)
        _ = try PublicKey(.rsa(modulus: [UInt8](repeating: 0xFF, count: 256), exponent: [1, 0, 1]))
    }
}
