internal import COpenSSL

/// A key that OpenSSL holds, of any kind.
///
/// Immutable after `init`; OpenSSL allows concurrent use of one key by several contexts, so it may cross threads.
@safe final class Key: @unchecked Sendable {
    let handle: OpaquePointer

    private init(takingOwnershipOf handle: OpaquePointer) {
        unsafe self.handle = handle
    }

    deinit {
        unsafe EVP_PKEY_free(handle)
    }

    /// A key that OpenSSL makes: a new one, or one of numbers.
    /// - Parameters:
    ///   - kind: OpenSSL's name of the algorithm.
    ///   - operation: the function that makes it.
    ///   - make: has the context make the key; false where OpenSSL refuses it.
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

    /// Makes a new private key.
    /// - Parameter configure: tells the context what to make; false where OpenSSL refuses it.
    convenience init(generating kind: String, _ configure: (OpaquePointer) -> Bool) throws(OpenSSLError) {
        unsafe try self.init(kind, "EVP_PKEY_generate") { context, key in
            unsafe EVP_PKEY_keygen_init(context) == 1 && configure(context) && EVP_PKEY_generate(context, &key) == 1
        }
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
        // An encrypted key would otherwise be asked for on the terminal: no passphrase, and so an error.
        guard let key = unsafe PEM_read_bio_PrivateKey(source, nil, { _, _, _, _ in 0 }, nil) else {
            throw OpenSSLError("PEM_read_bio_PrivateKey")
        }
        unsafe self.init(takingOwnershipOf: key)
    }

    /// A public key from its numbers, without a detour through DER.
    /// - Parameters:
    ///   - kind: OpenSSL's name of the algorithm.
    ///   - parameters: gives the builder the key's numbers and has it make the parameters. The builder keeps the addresses
    ///     of names and numbers until then.
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
                && EVP_PKEY_fromdata(context, &key, COpenSSL_EVP_PKEY_PUBLIC_KEY, parameters) == 1
        }
    }

    /// Whether OpenSSL finds a signature of the digest good, by a context that is ready to verify.
    ///
    /// The one return value that means yes is 1; zero and every negative value are a no. The thread's error queue is empty
    /// afterwards.
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

    /// A literal for C: it lives as long as the program, and the compiler ends it with a zero byte.
    static func text(_ literal: StaticString) -> UnsafePointer<CChar> {
        unsafe UnsafeRawPointer(literal.utf8Start).assumingMemoryBound(to: CChar.self)
    }

    /// The signature of `message` with SHA-256, as OpenSSL encodes those of this kind.
    func signature(for message: [UInt8]) throws(OpenSSLError) -> [UInt8] {
        guard let context = unsafe EVP_MD_CTX_new() else { throw OpenSSLError("EVP_MD_CTX_new") }
        defer { unsafe EVP_MD_CTX_free(context) }
        var length = Int(unsafe EVP_PKEY_get_size(handle))
        var signature = [UInt8](repeating: 0, count: length)
        let done = unsafe message.withUnsafeBufferPointer { input in
            unsafe signature.withUnsafeMutableBufferPointer { output in
                // `length` enters as the room in `output` and leaves as the bytes written.
                unsafe EVP_DigestSignInit_ex(context, nil, "SHA256", nil, nil, handle, nil) == 1
                    && EVP_DigestSign(context, output.baseAddress, &length, input.baseAddress, input.count) == 1
            }
        }
        guard done, length <= signature.count else { throw OpenSSLError("EVP_DigestSign") }
        signature.removeLast(signature.count - length)
        return signature
    }
}
