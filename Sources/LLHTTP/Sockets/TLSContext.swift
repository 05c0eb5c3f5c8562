internal import CLLOpenSSL.TLS
internal import LLJOSE

/// Settings shared by TLS connections: trust for clients; certificate and key for servers.
///
/// OpenSSL guards an `SSL_CTX` with its own locks and counts its references, and nothing here changes it after `init`.
/// `@unchecked Sendable` is sound for these reasons.
@safe package final class TLSContext: @unchecked Sendable {
    package enum Trust: Sendable, Equatable {
        /// The system's trust store. `SSL_CERT_FILE` and `SSL_CERT_DIR` change its location.
        case system
        case authorities(file: String)
    }

    let pointer: OpaquePointer

    /// A client's settings. The peer's certificate and host name are always verified, and TLS is 1.2 or newer.
    ///
    /// - Parameter speaksHTTP: True if ALPN offers `http/1.1`. Set it to false for a protocol that has no ALPN name.
    package convenience init(
        clientTrusting trust: Trust,
        speaksHTTP: Bool = true,
        identity: (certificateFile: String, keyFile: String)? = nil
    ) throws(TLSError) {
        try unsafe self.init(TLS_client_method())
        switch trust {
        case .system:
            try TLSError.require(unsafe SSL_CTX_set_default_verify_paths(pointer), "the trusted authorities")
        case .authorities(let file):
            try Self.requireRegular(file, "the trusted authorities")
            let loaded = unsafe SSL_CTX_load_verify_locations(pointer, file, nil)
            try TLSError.require(loaded, "the trusted authorities", in: file)
        }
        unsafe SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER, nil)
        if let identity { try use(identity.certificateFile, identity.keyFile) }
        // `http/1.1` alone, so that a server cannot choose HTTP/2. Unlike most OpenSSL functions, this one returns 0 on
        // success.
        if speaksHTTP, unsafe SSL_CTX_set_alpn_protos(pointer, http1, UInt32(http1.count)) != 0 {
            throw .failure(of: "ALPN")
        }
    }

    /// A server's settings, with certificate chain and key from PEM files. With `clientAuthoritiesFile`, only clients
    /// with a certificate of these authorities are accepted. Sessions resume by ticket, except when clients must show
    /// certificates. ALPN chooses `http/1.1`.
    package convenience init(
        serverCertificateFile: String,
        keyFile: String,
        clientAuthoritiesFile: String? = nil
    ) throws(TLSError) {
        try unsafe self.init(TLS_server_method())
        if let clientAuthoritiesFile { try Self.requireRegular(clientAuthoritiesFile, "the client authorities") }
        try use(serverCertificateFile, keyFile)
        // TLS 1.2 is limited to forward secrecy and authenticated encryption (RFC 9325, 4.1 and 4.2).
        let ciphers = unsafe SSL_CTX_set_cipher_list(pointer, "ECDHE+AESGCM:ECDHE+CHACHA20")
        try TLSError.require(ciphers, "the cipher suites")
        // The groups are those of Mozilla's intermediate configuration. OpenSSL's default adds X448 and P-521.
        let groups = unsafe CLLOpenSSL_SSL_CTX_set_groups(pointer, "X25519:P-256:P-384")
        try TLSError.require(groups, "the key exchange groups")
        if let clientAuthoritiesFile {
            try admitClients(of: clientAuthoritiesFile)
            // The certificate of a resumed session is not verified again, and each resumption gives a new ticket (RFC
            // 8446, 4.6.1). A chain of tickets would therefore outlive the certificate.
            try TLSError.require(unsafe CLLOpenSSL_SSL_CTX_never_resume(pointer), "the end of session resumption")
        } else {
            // Sessions resume by ticket with this context alone, for an hour, the lifetime of a connection. Another
            // context, made from other files, has other ticket keys.
            let name = Array("limited-login".utf8)
            let named = unsafe SSL_CTX_set_session_id_context(pointer, name, UInt32(name.count))
            try TLSError.require(named, "session resumption")
            _ = unsafe SSL_CTX_set_timeout(pointer, 3_600)
        }
        unsafe CLLOpenSSL_SSL_CTX_bound_input(pointer, Self.handshakeMessageBytes)
        chooseHTTP1()
    }

    /// The longest handshake message that a server accepts, in bytes: 16 KiB, for a hello or a chain of certificates.
    /// OpenSSL's buffer has this size from the start, so no client can make it grow. A hello takes up to 2 KiB, even
    /// with a post-quantum key exchange.
    static let handshakeMessageBytes = 16_384

    /// Server: the latest start and the earliest end of the certificates it sends, in seconds since 1970; nil if it has none
    /// or one that cannot be read.
    package var certificateTimes: (start: Int64, end: Int64)? {
        var times: (start: Int64, end: Int64) = (0, 0)
        // Both are values of this function.
        unsafe CLLOpenSSL_SSL_CTX_certificate_times(pointer, &times.start, &times.end)
        return times.end < 0 ? nil : times
    }

    /// Requires a regular file, because OpenSSL opens the files itself and would wait for the writer of a pipe.
    private static func requireRegular(_ file: String, _ subject: String) throws(TLSError) {
        do throws(FileContents.Failure) {
            try FileContents.requireRegular(path: file)
        } catch {
            throw .configuration("\(subject) in \(file): \(error.reason.lowercased())")
        }
    }

    private func use(_ certificateFile: String, _ keyFile: String) throws(TLSError) {
        try Self.requireRegular(certificateFile, "the certificate")
        try Self.requireRegular(keyFile, "the private key")
        // OpenSSL would ask for an encrypted key's passphrase on the terminal. The callback gives no passphrase, so the
        // load fails.
        unsafe SSL_CTX_set_default_passwd_cb(pointer) { _, _, _, _ in 0 }
        let chain = unsafe SSL_CTX_use_certificate_chain_file(pointer, certificateFile)
        try TLSError.require(chain, "the certificate", in: certificateFile)
        let key = unsafe SSL_CTX_use_PrivateKey_file(pointer, keyFile, SSL_FILETYPE_PEM)
        try TLSError.require(key, "the private key", in: keyFile)
        try TLSError.require(unsafe SSL_CTX_check_private_key(pointer), "the private key", in: keyFile)
    }

    private init(_ method: OpaquePointer?) throws(TLSError) {
        ProcessExit.leavesOpenSSLInPlace()
        guard let pointer = unsafe SSL_CTX_new(method) else { throw .failure(of: "a TLS context") }
        unsafe self.pointer = pointer
        try TLSError.require(unsafe CLLOpenSSL_SSL_CTX_harden(pointer), "TLS 1.2")
    }

    deinit { unsafe SSL_CTX_free(pointer) }

    /// Server: chooses `http/1.1` if the client offers it, and refuses a client that offers only others (RFC 7301,
    /// 3.2).
    private func chooseHTTP1() {
        unsafe SSL_CTX_set_alpn_select_cb(
            pointer,
            { _, chosen, chosenCount, offered, offeredCount, _ in
                // Each list is read within its own count. The choice is a part of the client's list, which OpenSSL keeps.
                var choice: UnsafeMutablePointer<UInt8>?
                let count = UInt32(http1.count)
                let result = unsafe SSL_select_next_proto(&choice, chosenCount, offered, offeredCount, http1, count)
                guard result == OPENSSL_NPN_NEGOTIATED else { return SSL_TLSEXT_ERR_ALERT_FATAL }
                unsafe chosen?.pointee = unsafe UnsafePointer(choice)
                return SSL_TLSEXT_ERR_OK
            },
            nil
        )
    }

    private func admitClients(of file: String) throws(TLSError) {
        guard unsafe SSL_CTX_load_verify_locations(pointer, file, nil) == 1,
            let names = unsafe SSL_load_client_CA_file(file)
        else { throw .failure(of: "the client authorities", in: file) }
        unsafe SSL_CTX_set_client_CA_list(pointer, names)
        unsafe SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
    }
}

/// `http/1.1` in ALPN's encoding: each name follows its length (RFC 7301, 3.1).
private let http1: [UInt8] = [8, 0x68, 0x74, 0x74, 0x70, 0x2F, 0x31, 0x2E, 0x31]
