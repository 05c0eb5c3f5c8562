internal import CLLOpenSSL.TLS
internal import Glibc

/// Makes X.509 certificates with P-256 keys.
enum CertificateBuilder {
    /// A certificate with its private key; frees both.
    @safe final class Certificate {
        let certificate: OpaquePointer
        let key: OpaquePointer

        init(takingOwnershipOf certificate: OpaquePointer, key: OpaquePointer) {
            unsafe self.certificate = certificate
            unsafe self.key = key
        }

        deinit {
            unsafe X509_free(certificate)
            unsafe EVP_PKEY_free(key)
        }
    }

    /// A self-signed authority, valid now.
    static func authority(named name: String) throws -> Certificate {
        let certificate = try make(commonName: name, days: -1...30)
        try add(NID_basic_constraints, "critical,CA:TRUE", to: certificate)
        try add(NID_key_usage, "critical,keyCertSign,cRLSign", to: certificate)
        try sign(certificate, by: certificate)
        return certificate
    }

    /// A server's certificate, signed by its issuer or by itself. The common name is `localhost`.
    static func leaf(alternativeNames: String?, days: ClosedRange<Int>, issuer: Certificate?) throws -> Certificate {
        let certificate = try make(commonName: "localhost", days: days)
        try add(NID_basic_constraints, "critical,CA:FALSE", to: certificate)
        if let alternativeNames { try add(NID_subject_alt_name, alternativeNames, to: certificate) }
        try sign(certificate, by: issuer ?? certificate)
        return certificate
    }

    private static func make(commonName: String, days: ClosedRange<Int>) throws -> Certificate {
        let key = try unsafe makeKey()
        guard let pointer = unsafe X509_new() else { throw TestSupportError("X509_new") }
        let certificate = unsafe Certificate(takingOwnershipOf: pointer, key: key)
        let name = unsafe X509_get_subject_name(pointer)
        let serial = Int.random(in: 1...Int(Int32.max))
        let isMade =
            unsafe X509_set_version(pointer, 2) == 1
            && ASN1_INTEGER_set(X509_get_serialNumber(pointer), serial) == 1
            && X509_gmtime_adj(X509_getm_notBefore(pointer), days.lowerBound * 86_400) != nil
            && X509_gmtime_adj(X509_getm_notAfter(pointer), days.upperBound * 86_400) != nil
            && X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, commonName, -1, -1, 0) == 1
            && X509_set_pubkey(pointer, key) == 1
        guard isMade else { throw TestSupportError("a certificate's fields") }
        return certificate
    }

    private static func makeKey() throws -> OpaquePointer {
        guard let context = unsafe EVP_PKEY_CTX_new_from_name(nil, "EC", nil) else {
            throw TestSupportError("EVP_PKEY_CTX_new_from_name")
        }
        defer { unsafe EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard unsafe EVP_PKEY_keygen_init(context) == 1, unsafe EVP_PKEY_CTX_set_group_name(context, "P-256") == 1,
            unsafe EVP_PKEY_generate(context, &key) == 1, let made = unsafe key
        else { throw TestSupportError("EVP_PKEY_generate") }
        return unsafe made
    }

    private static func add(_ extensionNumber: Int32, _ value: String, to certificate: Certificate) throws {
        guard let made = unsafe X509V3_EXT_conf_nid(nil, nil, extensionNumber, value) else {
            throw TestSupportError("the extension \(value)")
        }
        defer { unsafe X509_EXTENSION_free(made) }
        guard unsafe X509_add_ext(certificate.certificate, made, -1) == 1 else {
            throw TestSupportError("the extension \(value)")
        }
    }

    private static func sign(_ certificate: Certificate, by issuer: Certificate) throws {
        let issuerName = unsafe X509_get_subject_name(issuer.certificate)
        guard unsafe X509_set_issuer_name(certificate.certificate, issuerName) == 1,
            unsafe X509_sign(certificate.certificate, issuer.key, EVP_sha256()) > 0
        else { throw TestSupportError("a certificate's signature") }
    }
}

extension CertificateBuilder.Certificate {
    func write(certificateFile: String, keyFile: String) throws {
        try unsafe Self.write(to: certificateFile) { unsafe PEM_write_bio_X509($0, certificate) }
        try unsafe Self.write(to: keyFile) { unsafe PEM_write_bio_PrivateKey($0, key, nil, nil, 0, nil, nil) }
    }

    private static func write(to file: String, _ body: (OpaquePointer) -> Int32) throws {
        guard let output = unsafe BIO_new_file(file, "w") else { throw TestSupportError("cannot write \(file)") }
        defer { unsafe BIO_free(output) }
        guard unsafe body(output) == 1 else { throw TestSupportError("cannot write \(file)") }
    }
}
