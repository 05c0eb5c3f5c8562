/// The PEM files of a listener that speaks TLS.
package struct TLSFiles: Sendable, Equatable {
    /// The server's certificate, followed by those that lead to its authority.
    package let certificate: String
    /// The certificate's private key, not encrypted.
    package let key: String
    /// The authorities of the callers' certificates; nil where callers need none.
    package let clientAuthorities: String?
}

extension SettingReader {
    /// A certificate and its key come together, and client authorities only with them.
    func tlsFiles() throws(ConfigurationError) -> TLSFiles? {
        let clientAuthorities = try text(.tlsClientCAFile)
        switch (try text(.tlsCertificateFile), try text(.tlsKeyFile)) {
        case (let certificate?, let key?):
            return TLSFiles(certificate: certificate, key: key, clientAuthorities: clientAuthorities)
        case (.some, nil):
            throw ConfigurationError(
                place: place(.tlsCertificateFile),
                reason: "there is no \(ConfigurationKey.tlsKeyFile.rawValue) beside it"
            )
        case (nil, .some):
            throw ConfigurationError(
                place: place(.tlsKeyFile),
                reason: "there is no \(ConfigurationKey.tlsCertificateFile.rawValue) beside it"
            )
        case (nil, nil):
            guard clientAuthorities == nil else {
                throw ConfigurationError(
                    place: place(.tlsClientCAFile),
                    reason: "client certificates need TLS: set \(ConfigurationKey.tlsCertificateFile.rawValue) "
                        + "and \(ConfigurationKey.tlsKeyFile.rawValue)"
                )
            }
            return nil
        }
    }
}
