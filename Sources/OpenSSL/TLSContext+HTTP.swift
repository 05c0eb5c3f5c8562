internal import COpenSSL

/// `http/1.1` as ALPN carries it: each name after its length (RFC 7301, 3.1).
private let http1: [UInt8] = [8, 0x68, 0x74, 0x74, 0x70, 0x2F, 0x31, 0x2E, 0x31]

extension TLSContext {
    /// Client: offers `http/1.1` alone, so that a server cannot choose HTTP/2.
    func offerHTTP1() throws(TLSError) {
        // This function, against OpenSSL's habit, answers 0 on success.
        guard unsafe SSL_CTX_set_alpn_protos(pointer, http1, UInt32(http1.count)) == 0 else {
            throw .failure(of: "ALPN", in: nil)
        }
    }

    /// Server: chooses `http/1.1` where the client offers it; refuses a client that offers only others (RFC 7301, 3.2).
    func chooseHTTP1() {
        unsafe SSL_CTX_set_alpn_select_cb(
            pointer,
            { _, chosen, chosenCount, offered, offeredCount, _ in
                guard let chosen = unsafe chosen, let chosenCount = unsafe chosenCount, let offered = unsafe offered
                else { return SSL_TLSEXT_ERR_ALERT_FATAL }
                // Bounds: `offered` holds `offeredCount` bytes; each step stays below it before it reads.
                let names = unsafe UnsafeBufferPointer(start: offered, count: Int(offeredCount))
                var index = 0
                while index < names.count {
                    let count = unsafe Int(names[index])
                    guard index + count < names.count else { break }
                    if count == 8, unsafe names[index...(index + 8)].elementsEqual(http1) {
                        unsafe chosen.pointee = offered + index + 1
                        unsafe chosenCount.pointee = 8
                        return SSL_TLSEXT_ERR_OK
                    }
                    index += count + 1
                }
                return SSL_TLSEXT_ERR_ALERT_FATAL
            },
            nil
        )
    }

    /// Server: demands a client certificate of these authorities.
    func admitClients(of file: String?) throws(TLSError) {
        guard let file else { return }
        guard unsafe SSL_CTX_load_verify_locations(pointer, file, nil) == 1,
            let names = unsafe SSL_load_client_CA_file(file)
        else { throw .failure(of: "the client authorities", in: file) }
        unsafe SSL_CTX_set_client_CA_list(pointer, names)
        unsafe SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
    }

    /// Server: sessions resume by ticket, with this context alone: another one, made from other files, has other
    /// ticket keys. The context name is required once clients show certificates.
    func resumeSessions(lifetimeSeconds: Int) throws(TLSError) {
        let name: [UInt8] = Array("limited-login".utf8)
        guard unsafe SSL_CTX_set_session_id_context(pointer, name, UInt32(name.count)) == 1 else {
            throw .failure(of: "session resumption", in: nil)
        }
        unsafe COpenSSL_SSL_CTX_resume_by_ticket(pointer, lifetimeSeconds)
    }
}
