internal import CLLOpenSSL

/// An OpenSSL key of any kind.
/// The key is immutable after `init`. OpenSSL allows several contexts to use one key concurrently, so it may cross
/// threads.
@safe final class Key: @unchecked Sendable {
    let handle: OpaquePointer

    private init(takingOwnershipOf handle: OpaquePointer) { unsafe self.handle = handle }

    deinit { unsafe EVP_PKEY_free(handle) }

    /// A key that OpenSSL makes with `make`: newly generated, or built from its numbers. Errors name the `operation`.
    private convenience init(
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

    /// Generates a new private key.
    /// - Parameter configure: sets the key's parameters in the context; returns false if OpenSSL refuses them.
    convenience init(generating kind: String, _ configure: (OpaquePointer) -> Bool) throws(OpenSSLError) {
        unsafe try self.init(kind, "EVP_PKEY_generate") { context, key in
            unsafe EVP_PKEY_keygen_init(context) == 1 && configure(context) && EVP_PKEY_generate(context, &key) == 1
        }
    }

    /// The PEM of a private key that repeats: the same seed gives the same key. For tests alone.
    static func repeatablePEM(isRSA: Bool, seed: UInt64) throws(OpenSSLError) -> [UInt8] {
        guard let library = unsafe OSSL_LIB_CTX_new() else { throw OpenSSLError("OSSL_LIB_CTX_new") }
        defer { unsafe OSSL_LIB_CTX_free(library) }
        // 256 KiB: a key takes some thousand bytes to find its primes.
        var numbers: [UInt8] = []
        for block in 0..<8_192 {
            let digest = try SHA256.digest(of: Array("\(seed) \(block)".utf8).span).bytes
            for index in digest.indices { numbers.append(digest[index]) }
        }
        let made = unsafe numbers.withUnsafeMutableBufferPointer { buffer in
            unsafe CLLOpenSSL_repeatable_key(library, isRSA ? 1 : 0, buffer.baseAddress, buffer.count)
        }
        guard let made = unsafe made else { throw OpenSSLError("EVP_PKEY_generate") }
        // The copy is free before the library it belongs to.
        return Array(try unsafe Key(takingOwnershipOf: made).pem(isPrivate: true).utf8)
    }

    /// Reads an unencrypted private key in PEM form (PKCS #8 or SEC 1).
    convenience init(pem: [UInt8]) throws(OpenSSLError) {
        ProcessExit.leavesOpenSSLInPlace()
        guard
            let source = unsafe pem.withUnsafeBufferPointer({ buffer in
                unsafe BIO_new_mem_buf(buffer.baseAddress, Int32(clamping: buffer.count))
            })
        else { throw OpenSSLError("BIO_new_mem_buf") }
        defer { unsafe BIO_free(source) }
        // OpenSSL would ask for an encrypted key's passphrase on the terminal. The callback gives no passphrase, so the
        // read fails.
        guard let key = unsafe PEM_read_bio_PrivateKey(source, nil, { _, _, _, _ in 0 }, nil) else {
            throw OpenSSLError("PEM_read_bio_PrivateKey")
        }
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

    /// True if OpenSSL accepts the signature of the digest. The context must be ready to verify.
    /// Only the return value 1 means a valid signature; zero and negative values mean an invalid one. The thread's
    /// error queue is empty afterwards.
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

    /// OpenSSL's name of the curve; empty for a key of another kind.
    var groupName: String {
        var name = [CChar](repeating: 0, count: 64)
        var length = 0
        let isKnown = unsafe name.withUnsafeMutableBufferPointer { buffer in
            unsafe EVP_PKEY_get_group_name(handle, buffer.baseAddress, buffer.count, &length) == 1
        }
        guard isKnown, length < name.count else {
            ERR_clear_error()
            return ""
        }
        return String(decoding: name[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

/// Signs with a private key and SHA-256.
/// OpenSSL's context is prepared once and never used itself. Each signature works on a copy, so it may cross threads
/// without a lock.
@safe final class Signer: @unchecked Sendable {
    private let prepared: OpaquePointer
    private let byteCountLimit: Int

    /// An RSA key signs with RSASSA-PKCS1-v1_5, OpenSSL's default.
    init(_ key: Key) throws(OpenSSLError) {
        guard let context = unsafe EVP_PKEY_CTX_new_from_pkey(nil, key.handle, nil) else {
            throw OpenSSLError("EVP_PKEY_CTX_new_from_pkey")
        }
        unsafe prepared = context
        byteCountLimit = Int(unsafe EVP_PKEY_get_size(key.handle))
        guard unsafe EVP_PKEY_sign_init(context) == 1,
            unsafe EVP_PKEY_CTX_set_signature_md(context, EVP_sha256()) == 1
        else { throw OpenSSLError("EVP_PKEY_sign_init") }
    }

    deinit { unsafe EVP_PKEY_CTX_free(prepared) }

    /// The signature of `message`, in OpenSSL's encoding for this kind of key.
    func signature(for message: [UInt8]) throws(OpenSSLError) -> [UInt8] {
        let digest = try SHA256.digest(of: message.span)
        let hash = digest.bytes.span
        guard let context = unsafe EVP_PKEY_CTX_dup(prepared) else { throw OpenSSLError("EVP_PKEY_CTX_dup") }
        defer { unsafe EVP_PKEY_CTX_free(context) }
        var length = byteCountLimit
        var signature = [UInt8](repeating: 0, count: length)
        let done = unsafe hash.withUnsafeBufferPointer { hash in
            unsafe signature.withUnsafeMutableBufferPointer { output in
                // `length` holds the room in `output` before the call and the number of bytes written after it.
                unsafe EVP_PKEY_sign(context, output.baseAddress, &length, hash.baseAddress, hash.count) == 1
            }
        }
        guard done, length <= signature.count else { throw OpenSSLError("EVP_PKEY_sign") }
        signature.removeLast(signature.count - length)
        return signature
    }
}
