internal import CLLOpenSSL
internal import LLBytes

/// An OpenSSL key of any kind.
/// The key is immutable after `init`. OpenSSL allows several contexts to use one key concurrently, so it may cross
/// threads.
@safe final class Key: @unchecked Sendable {
    let handle: OpaquePointer

    fileprivate init(takingOwnershipOf handle: OpaquePointer) { unsafe self.handle = handle }

    deinit { unsafe EVP_PKEY_free(handle) }

    /// A key that OpenSSL makes with `make`: newly generated, or built from its numbers. Errors name the `operation`.
    convenience init(
        _ kind: String,
        _ operation: String,
        _ make: (_ context: OpaquePointer, _ key: inout OpaquePointer?) -> Bool
    ) throws(OpenSSLError) {
        ProcessExit.leavesOpenSSLInPlace()
        guard let context = unsafe EVP_PKEY_CTX_new_from_name(nil, kind, nil) else {
            throw OpenSSLError("EVP_PKEY_CTX_new_from_name")
        }
        defer { unsafe EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard unsafe make(context, &key), let made = unsafe key else { throw OpenSSLError(operation) }
        unsafe self.init(takingOwnershipOf: made)
    }

    /// Reads an unencrypted private key in PEM form (PKCS #8 or SEC 1).
    convenience init(pem: [UInt8]) throws(OpenSSLError) {
        ProcessExit.leavesOpenSSLInPlace()
        // The source reads the array's own memory, which is certain to exist within the closure alone.
        let key = unsafe pem.withUnsafeBufferPointer { buffer -> OpaquePointer? in
            guard let source = unsafe BIO_new_mem_buf(buffer.baseAddress, Int32(clamping: buffer.count)) else {
                return nil
            }
            defer { unsafe BIO_free(source) }
            // OpenSSL would ask for an encrypted key's passphrase on the terminal. The callback gives no passphrase, so
            // the read fails.
            return unsafe PEM_read_bio_PrivateKey(source, nil, { _, _, _, _ in 0 }, nil)
        }
        guard let key = unsafe key else { throw OpenSSLError("PEM_read_bio_PrivateKey") }
        unsafe self.init(takingOwnershipOf: key)
    }

    /// A public key built from its numbers. `parameters` adds them to the builder, which keeps the addresses of names and
    /// numbers until it makes the parameters.
    convenience init(
        public kind: String,
        _ parameters: (_ builder: OpaquePointer) -> UnsafeMutablePointer<OSSL_PARAM>?
    ) throws(OpenSSLError) {
        ProcessExit.leavesOpenSSLInPlace()
        guard let builder = unsafe OSSL_PARAM_BLD_new() else { throw OpenSSLError("OSSL_PARAM_BLD_new") }
        defer { unsafe OSSL_PARAM_BLD_free(builder) }
        guard let parameters = unsafe parameters(builder) else { throw OpenSSLError("OSSL_PARAM_BLD_to_param") }
        defer { unsafe OSSL_PARAM_free(parameters) }
        unsafe try self.init(kind, "EVP_PKEY_fromdata") { context, key in
            unsafe EVP_PKEY_fromdata_init(context) == 1
                && EVP_PKEY_fromdata(context, &key, CLLOpenSSL_EVP_PKEY_PUBLIC_KEY, parameters) == 1
        }
    }

    /// A context for signatures with SHA-256, and with RSASSA-PKCS1-v1_5 if the key is RSA. `begin` sets it
    /// up to sign or to verify; `operation` names `begin` in an error. The caller frees it.
    func context(
        isRSA: Bool,
        _ operation: String,
        _ begin: (OpaquePointer) -> Int32
    ) throws(OpenSSLError) -> OpaquePointer {
        guard let context = unsafe EVP_PKEY_CTX_new_from_pkey(nil, handle, nil) else {
            throw OpenSSLError("EVP_PKEY_CTX_new_from_pkey")
        }
        guard unsafe begin(context) == 1,
            unsafe !isRSA || EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PADDING) == 1,
            unsafe EVP_PKEY_CTX_set_signature_md(context, EVP_sha256()) == 1
        else {
            unsafe EVP_PKEY_CTX_free(context)
            throw OpenSSLError(operation)
        }
        return unsafe context
    }

    /// A literal as a C string: it lives as long as the program, and the compiler ends it with a zero byte.
    static func text(_ literal: StaticString) -> UnsafePointer<CChar> {
        unsafe UnsafeRawPointer(literal.utf8Start).assumingMemoryBound(to: CChar.self)
    }

    /// The key in PEM form (RFC 7468): the private key as PKCS #8 without encryption, or the public key as a
    /// SubjectPublicKeyInfo.
    func pem(isPrivate: Bool) throws(OpenSSLError) -> String {
        guard let sink = unsafe BIO_new(BIO_s_mem()) else { throw OpenSSLError("BIO_new") }
        defer { unsafe BIO_free(sink) }
        let isWritten =
            isPrivate
            ? unsafe PEM_write_bio_PKCS8PrivateKey(sink, handle, nil, nil, 0, nil, nil) == 1
            : unsafe PEM_write_bio_PUBKEY(sink, handle) == 1
        guard isWritten else { throw OpenSSLError("PEM_write_bio") }
        // 16 KiB hold every key that is read here.
        var text = [UInt8](repeating: 0, count: 16_384)
        let count = unsafe text.withUnsafeMutableBufferPointer { buffer in
            // BIO_read takes a C int, and writes no more than the buffer has room for.
            unsafe BIO_read(sink, buffer.baseAddress, Int32(clamping: buffer.count))
        }
        guard count > 0 else { throw OpenSSLError("BIO_read") }
        return String(decoding: text[..<Int(count)], as: UTF8.self)
    }

    /// The numbers of the public key; nil for a key that is neither RSA nor on P-256.
    var publicNumbers: PublicKeyNumbers? {
        defer { ERR_clear_error() }
        if unsafe EVP_PKEY_is_a(handle, "RSA") == 1 {
            guard let modulus = number("n"), let exponent = number("e") else { return nil }
            return .rsa(modulus: modulus, exponent: exponent)
        }
        let size = PublicKeyNumbers.coordinateByteCount
        guard isOnP256, let x = number("qx", leastByteCount: size), let y = number("qy", leastByteCount: size) else {
            return nil
        }
        return .p256(x: x, y: y)
    }

    private var isOnP256: Bool {
        var name = [CChar](repeating: 0, count: 64)
        var length = 0
        let isNamed = unsafe name.withUnsafeMutableBufferPointer { buffer in
            unsafe EVP_PKEY_get_group_name(handle, buffer.baseAddress, buffer.count, &length) == 1
        }
        return isNamed && name.prefix { $0 != 0 }.elementsEqual("prime256v1".utf8.map(CChar.init(bitPattern:)))
    }

    /// A number of the key by OpenSSL's name for it, big-endian, with zeros before it up to the least length.
    private func number(_ name: String, leastByteCount: Int = 0) -> [UInt8]? {
        var number: OpaquePointer?
        guard unsafe EVP_PKEY_get_bn_param(handle, name, &number) == 1, let value = unsafe number else { return nil }
        defer { unsafe BN_free(value) }
        let count = max(leastByteCount, (Int(unsafe BN_num_bits(value)) + 7) / 8)
        var bytes = [UInt8](repeating: 0, count: count)
        let written = unsafe bytes.withUnsafeMutableBufferPointer { buffer in
            unsafe BN_bn2binpad(value, buffer.baseAddress, Int32(clamping: buffer.count))
        }
        return written == count ? bytes : nil
    }
}

/// A private key that signs with SHA-256: RSASSA-PKCS1-v1_5 (RS256), as an issuer holds it, or ES256 on the curve
/// P-256, as a device holds it to prove possession (RFC 9449).
/// OpenSSL's context is prepared once and never used itself. Each signature works on a copy, so the key may cross
/// threads without a lock.
@safe package final class PrivateKey: @unchecked Sendable {
    package enum Kind: String, Sendable {
        case rsa = "RSA"
        case p256 = "EC"
    }

    package let numbers: PublicKeyNumbers
    private let key: Key
    private let prepared: OpaquePointer

    /// Makes a new key. An RSA key has this number of bits and the public exponent 65537.
    package convenience init(_ kind: Kind, bits: Int = 2048) throws(OpenSSLError) {
        let key = unsafe try Key(kind.rawValue, "EVP_PKEY_generate") { context, key in
            guard unsafe EVP_PKEY_keygen_init(context) == 1 else { return false }
            let isSized =
                kind == .rsa
                ? unsafe EVP_PKEY_CTX_set_rsa_keygen_bits(context, Int32(clamping: bits))
                : unsafe EVP_PKEY_CTX_set_group_name(context, "P-256")
            return unsafe isSized == 1 && EVP_PKEY_generate(context, &key) == 1
        }
        try self.init(key)
    }

    /// A key that repeats: the same seed gives the same key. For tests alone.
    package convenience init(_ kind: Kind, seed: UInt64) throws(OpenSSLError) {
        guard let library = unsafe OSSL_LIB_CTX_new() else { throw OpenSSLError("OSSL_LIB_CTX_new") }
        defer { unsafe OSSL_LIB_CTX_free(library) }
        // 256 KiB: a key takes some thousand bytes to find its primes.
        var numbers: [UInt8] = []
        for block in 0..<8_192 {
            numbers.append(try SHA256.digest(of: Array("\(seed) \(block)".utf8).span).bytes.span)
        }
        let made = unsafe numbers.withUnsafeMutableBufferPointer { buffer in
            unsafe CLLOpenSSL_repeatable_key(library, kind == .rsa ? 1 : 0, buffer.baseAddress, buffer.count)
        }
        guard let made = unsafe made else { throw OpenSSLError("EVP_PKEY_generate") }
        // The key is read again, because the first one must be freed before the library it belongs to.
        try self.init(pem: Array(try unsafe Key(takingOwnershipOf: made).pem(isPrivate: true).utf8))
    }

    /// Reads an unencrypted private key in PEM form (PKCS #8, PKCS #1 or SEC 1); a key of another kind is refused.
    package convenience init(pem: [UInt8]) throws(OpenSSLError) { try self.init(Key(pem: pem)) }

    private init(_ key: Key) throws(OpenSSLError) {
        guard let numbers = key.publicNumbers else { throw OpenSSLError("RSA or P-256 key") }
        self.numbers = numbers
        self.key = key
        unsafe prepared = try key.context(isRSA: numbers.isRSA, "EVP_PKEY_sign_init", EVP_PKEY_sign_init)
    }

    deinit { unsafe EVP_PKEY_CTX_free(prepared) }

    package var bitCount: Int { Int(unsafe EVP_PKEY_get_bits(key.handle)) }

    /// The private key as PKCS #8, and the public key as a SubjectPublicKeyInfo, both in PEM form.
    package func privatePEM() throws(OpenSSLError) -> String { try key.pem(isPrivate: true) }
    package func publicPEM() throws(OpenSSLError) -> String { try key.pem(isPrivate: false) }

    /// The signature of `message`: as many bytes as an RSA key's modulus, or two numbers of 32 bytes (RFC 7518 section
    /// 3.4).
    package func signature(for message: [UInt8]) throws(OpenSSLError) -> [UInt8] {
        let digest = try SHA256.digest(of: message.span)
        let hash = digest.bytes.span
        guard let context = unsafe EVP_PKEY_CTX_dup(prepared) else { throw OpenSSLError("EVP_PKEY_CTX_dup") }
        defer { unsafe EVP_PKEY_CTX_free(context) }
        var length = Int(unsafe EVP_PKEY_get_size(key.handle))
        var signature = [UInt8](repeating: 0, count: length)
        let done = unsafe hash.withUnsafeBufferPointer { hash in
            unsafe signature.withUnsafeMutableBufferPointer { output in
                // `length` holds the room in `output` before the call and the number of bytes written after it.
                unsafe EVP_PKEY_sign(context, output.baseAddress, &length, hash.baseAddress, hash.count) == 1
            }
        }
        guard done, length <= signature.count else { throw OpenSSLError("EVP_PKEY_sign") }
        signature.removeLast(signature.count - length)
        guard !numbers.isRSA else { return signature }
        guard let joined = Self.joinedNumbers(signature) else { throw OpenSSLError("EVP_PKEY_sign") }
        return joined
    }

    /// The two numbers of a DER SEQUENCE as 32 bytes each.
    private static func joinedNumbers(_ encoded: [UInt8]) -> [UInt8]? {
        let half = PublicKeyNumbers.coordinateByteCount
        var numbers: [UInt8] = []
        var rest = encoded.dropFirst(2)
        for _ in 0..<2 {
            guard rest.popFirst() == 0x02, let count = rest.popFirst(), count <= rest.count else { return nil }
            let number = rest.prefix(Int(count)).drop { $0 == 0 }
            guard number.count <= half else { return nil }
            numbers += repeatElement(0, count: half - number.count) + number
            rest = rest.dropFirst(Int(count))
        }
        return rest.isEmpty ? numbers : nil
    }
}
