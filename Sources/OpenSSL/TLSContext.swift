internal import COpenSSL

/// Settings shared by TLS connections: trust on the client's side, certificate and key on the server's.
///
/// OpenSSL guards an `SSL_CTX` by its own locks and counts its references, and nothing here changes it after `init`;
/// hence `@unchecked Sendable`.
@safe package final class TLSContext: @unchecked Sendable {
    /// Whom a client trusts.
    package enum Trust: Sendable, Equatable {
        /// The system's trust store; `SSL_CERT_FILE` and `SSL_CERT_DIR` move it.
        case system
        /// Only the authorities in this PEM file.
        case authorities(file: String)
    }

    /// Which end of a connection a context is for.
    package enum Role: Sendable { case client, server }

    package let role: Role
    let pointer: OpaquePointer

    /// A client: the peer's certificate and host name are always verified, TLS 1.2 or newer.
    ///
    /// - Parameter speaksHTTP: whether ALPN offers `http/1.1`; where not, the protocol has no name to offer.
    package convenience init(clientTrusting trust: Trust, speaksHTTP: Bool = true) throws(TLSError) {
        try self.init(role: .client)
        let loaded =
            switch trust {
            case .system: unsafe SSL_CTX_set_default_verify_paths(pointer)
            case .authorities(let file): unsafe SSL_CTX_load_verify_locations(pointer, file, nil)
            }
        guard loaded == 1 else { throw .failure(of: "the trusted authorities", in: trust.fileName) }
        unsafe SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER, nil)
        if speaksHTTP { try offerHTTP1() }
    }

    /// A server: certificate chain and key from PEM files; with `clientAuthoritiesFile`, only clients with a
    /// certificate of these authorities are let in. Sessions are resumed by ticket; ALPN chooses `http/1.1`.
    package convenience init(
        serverCertificateFile: String,
        keyFile: String,
        clientAuthoritiesFile: String? = nil
    ) throws(TLSError) {
        try self.init(role: .server)
        // An encrypted key would otherwise be asked for on the terminal: no passphrase, and so an error.
        unsafe SSL_CTX_set_default_passwd_cb(pointer) { _, _, _, _ in 0 }
        guard unsafe SSL_CTX_use_certificate_chain_file(pointer, serverCertificateFile) == 1 else {
            throw .failure(of: "the certificate", in: serverCertificateFile)
        }
        guard unsafe SSL_CTX_use_PrivateKey_file(pointer, keyFile, SSL_FILETYPE_PEM) == 1,
            unsafe SSL_CTX_check_private_key(pointer) == 1
        else { throw .failure(of: "the private key", in: keyFile) }
        // TLS 1.2 with forward secrecy and authenticated encryption alone (RFC 9325, 4.1 and 4.2).
        guard unsafe SSL_CTX_set_cipher_list(pointer, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1 else {
            throw .failure(of: "the cipher suites", in: nil)
        }
        try admitClients(of: clientAuthoritiesFile)
        // A resumed session is not verified again: a client's certificate counts for this long at most.
        try resumeSessions(
            lifetimeSeconds: clientAuthoritiesFile == nil ? Self.sessionSeconds : Self.verifiedSessionSeconds
        )
        unsafe COpenSSL_SSL_CTX_read_one_record(pointer)
        chooseHTTP1()
    }

    /// How long a session can be resumed: an hour, as long as a connection lives.
    static let sessionSeconds = 3_600
    /// The same where the client showed a certificate: five minutes.
    static let verifiedSessionSeconds = 300

    /// Server: when the first of the certificates it sends ends, in seconds since 1970; nil where there is none.
    package var certificateExpiry: Int64? {
        guard let own = unsafe SSL_CTX_get0_certificate(pointer) else { return nil }
        var expiry = unsafe COpenSSL_X509_expiry(own)
        let chain = unsafe COpenSSL_SSL_CTX_chain(pointer)
        // Bounds: an index stays below the count of the chain, which nothing changes after `init`.
        for index in 0..<max(0, unsafe COpenSSL_chain_count(chain)) {
            guard let certificate = unsafe COpenSSL_chain_certificate(chain, index) else { continue }
            expiry = min(expiry, unsafe COpenSSL_X509_expiry(certificate))
        }
        return expiry < 0 ? nil : expiry
    }

    private init(role: Role) throws(TLSError) {
        let method = unsafe role == .client ? TLS_client_method() : TLS_server_method()
        guard let pointer = unsafe SSL_CTX_new(method) else { throw .failure(of: "a TLS context", in: nil) }
        self.role = role
        unsafe self.pointer = pointer
        guard unsafe COpenSSL_SSL_CTX_harden(pointer) == 1 else { throw .failure(of: "TLS 1.2", in: nil) }
    }

    deinit { unsafe SSL_CTX_free(pointer) }
}

extension TLSContext.Trust {
    fileprivate var fileName: String? {
        switch self {
        case .system: nil
        case .authorities(let file): file
        }
    }
}

extension TLSError {
    /// A failed step of the set-up, with OpenSSL's reason and the file at fault.
    static func failure(of subject: String, in file: String?) -> TLSError {
        let reason = drainQueue() ?? "no reason given"
        guard let file else { return .configuration("\(subject): \(reason)") }
        return .configuration("\(subject) in \(file): \(reason)")
    }
}
