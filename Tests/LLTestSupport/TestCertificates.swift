internal import Glibc
package import LLSockets

/// Certificates for one test run, in a directory of their own: an authority and what it issued, good and bad.
package struct TestCertificates: Sendable {
    /// A certificate and its key, each in a PEM file.
    package struct Identity: Sendable {
        package let certificateFile: String
        package let keyFile: String

        package init(certificateFile: String, keyFile: String) {
            self.certificateFile = certificateFile
            self.keyFile = keyFile
        }

        /// The settings of a server that shows this certificate.
        /// - Parameter clientAuthoritiesFile: Clients must show a certificate of these authorities; nil if they need none.
        package func serverContext(clientAuthoritiesFile: String? = nil) throws -> TLSContext {
            try TLSContext(
                serverCertificateFile: certificateFile,
                keyFile: keyFile,
                clientAuthoritiesFile: clientAuthoritiesFile
            )
        }
    }

    /// The authority that clients under test trust.
    package let authorityFile: String
    /// An authority nobody trusts.
    package let otherAuthorityFile: String
    /// For `localhost`, `issuer.test`, 127.0.0.1 and ::1; valid now.
    package let good: Identity
    /// For `elsewhere.example` alone.
    package let wrongName: Identity
    /// The right names, but its time is over.
    package let expired: Identity
    /// The right names, but its time has not begun.
    package let notYetValid: Identity
    /// The right names, signed by itself.
    package let selfSigned: Identity
    /// The right name in the subject's common name alone, where nobody may look (RFC 9525, 2).
    package let commonNameOnly: Identity
    /// Only one name each, whether it is a host's name or an address.
    package let onlyLocalhost: Identity
    package let onlyIPv4: Identity
    package let onlyIPv6: Identity
    /// The right names, issued by the other authority.
    package let untrusted: Identity

    /// The certificates of this process, made at first use.
    package static let shared = Result { try TestCertificates() }

    private init() throws {
        let directory = try Self.temporaryDirectory()
        let authority = try CertificateBuilder.authority(named: "Test Authority")
        let other = try CertificateBuilder.authority(named: "Other Authority")
        func write(_ certificate: CertificateBuilder.Certificate, _ name: String) throws -> Identity {
            let identity = Identity(
                certificateFile: "\(directory)/\(name).pem",
                keyFile: "\(directory)/\(name).key"
            )
            try certificate.write(certificateFile: identity.certificateFile, keyFile: identity.keyFile)
            return identity
        }
        func leaf(
            _ name: String,
            names: String? = "DNS:localhost,DNS:issuer.test,IP:127.0.0.1,IP:::1",
            days: ClosedRange<Int> = -1...30,
            issuer: CertificateBuilder.Certificate?
        ) throws -> Identity {
            try write(CertificateBuilder.leaf(alternativeNames: names, days: days, issuer: issuer), name)
        }
        authorityFile = try write(authority, "authority").certificateFile
        otherAuthorityFile = try write(other, "other-authority").certificateFile
        good = try leaf("good", issuer: authority)
        wrongName = try leaf("wrong-name", names: "DNS:elsewhere.example", issuer: authority)
        onlyLocalhost = try leaf("only-localhost", names: "DNS:localhost", issuer: authority)
        onlyIPv4 = try leaf("only-ipv4", names: "IP:127.0.0.1", issuer: authority)
        onlyIPv6 = try leaf("only-ipv6", names: "IP:::1", issuer: authority)
        expired = try leaf("expired", days: -30 ... -1, issuer: authority)
        notYetValid = try leaf("not-yet-valid", days: 10...30, issuer: authority)
        selfSigned = try leaf("self-signed", issuer: nil)
        commonNameOnly = try leaf("common-name", names: nil, issuer: authority)
        untrusted = try leaf("untrusted", issuer: other)
    }

    private static func temporaryDirectory() throws -> String {
        var template = Array("/tmp/limited-login-certificates-XXXXXX".utf8CString)
        // `mkdtemp` writes six characters within the array's own length.
        let made = unsafe template.withUnsafeMutableBufferPointer { buffer in
            unsafe buffer.baseAddress.flatMap { unsafe mkdtemp($0) } != nil
        }
        guard made else { throw TestSupportError("no temporary directory") }
        return String(decoding: template.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
