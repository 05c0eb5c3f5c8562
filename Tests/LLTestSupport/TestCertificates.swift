internal import Glibc
package import LLHTTP

/// Certificates for one test run, in their own directory: an authority, and good and bad certificates of servers.
package struct TestCertificates: Sendable {
    /// A certificate and its key, each in a PEM file.
    package struct Identity: Sendable {
        package let certificateFile: String
        package let keyFile: String

        package init(certificateFile: String, keyFile: String) {
            (self.certificateFile, self.keyFile) = (certificateFile, keyFile)
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

    /// The authority that clients under test trust, and one that none trusts.
    package let authorityFile, otherAuthorityFile: String
    /// For `localhost`, `issuer.test`, 127.0.0.1 and ::1; valid now. The others have the same names if theirs say nothing
    /// else; `untrusted` is of the other authority.
    package let good, expired, notYetValid, selfSigned, untrusted: Identity
    /// `wrongName` is for `elsewhere.example`. `commonNameOnly` has the right name in its subject alone, where clients must
    /// not look (RFC 9525, 2).
    package let wrongName, commonNameOnly: Identity

    /// The certificates of this process, made at first use.
    package static let shared: Result<Self, any Error> = Result {
        // A static value is never released, so its folder is removed at the exit.
        atexit { try? shared.get().folder.remove() }
        return try TestCertificates()
    }

    private let folder: ShortFolder

    private init() throws {
        folder = try ShortFolder()
        let directory = folder.path
        let authority = try CertificateBuilder.authority(named: "Test Authority")
        let other = try CertificateBuilder.authority(named: "Other Authority")
        func write(_ certificate: CertificateBuilder.Certificate, _ name: String) throws -> Identity {
            let identity = Identity(certificateFile: "\(directory)/\(name).pem", keyFile: "\(directory)/\(name).key")
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
        expired = try leaf("expired", days: -30 ... -1, issuer: authority)
        notYetValid = try leaf("not-yet-valid", days: 10...30, issuer: authority)
        selfSigned = try leaf("self-signed", issuer: nil)
        commonNameOnly = try leaf("common-name", names: nil, issuer: authority)
        untrusted = try leaf("untrusted", issuer: other)
    }
}
