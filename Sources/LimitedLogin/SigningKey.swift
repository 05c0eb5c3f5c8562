internal import LLBytes
internal import LLJOSE

/// A private key that signs tokens of your own: RSA (RS256) or P-256 (ES256).
public struct SigningKey: Sendable, Redacted {
    /// The algorithm of a key (RFC 7518 section 3.1).
    @nonexhaustive  // SE-0487
    public enum Algorithm: String, Sendable {
        /// RSASSA-PKCS1-v1_5 with SHA-256: every consumer of tokens accepts it.
        case rs256 = "RS256"
        /// ECDSA with P-256 and SHA-256: shorter signatures, made in a tenth of the time.
        case es256 = "ES256"
    }

    /// The algorithm of the key.
    public let algorithm: Algorithm
    /// The name of the key: its RFC 7638 thumbprint with SHA-256, 43 digits of base64url.
    public let keyID: String
    let key: PrivateKey

    /// Makes a new key; RSA has 2,048 bits.
    public init(generating algorithm: Algorithm) throws(InvalidConfiguration) {
        do {
            try self.init(PrivateKey(algorithm == .rs256 ? .rsa : .p256))
        } catch { throw InvalidConfiguration("OpenSSL cannot make a signing key.") }
    }

    /// Reads a private key in PEM form: PKCS #8, PKCS #1 or SEC 1, without a passphrase.
    /// - Throws: ``InvalidConfiguration`` for another kind of key, an RSA key outside 2,048 to 4,096 bits, another
    ///   curve than P-256, and a key with a signature that its own public key refuses.
    public init(pem: String) throws(InvalidConfiguration) {
        guard !pem.contains("BEGIN ENCRYPTED PRIVATE KEY"), !pem.contains("Proc-Type: 4,ENCRYPTED") else {
            throw InvalidConfiguration("the key has a passphrase, which a start cannot ask for")
        }
        guard let key = try? PrivateKey(pem: Array(pem.utf8)) else {
            throw InvalidConfiguration("it is no private key of RSA or of the curve P-256 in PEM form")
        }
        // RFC 7518 section 3.3 requires at least 2,048 bits; above 4,096 a signature takes milliseconds.
        try InvalidConfiguration.unless(
            !key.numbers.isRSA || (2_048...4_096).contains(key.bitCount),
            "the RSA key has \(key.bitCount) bits; 2048 to 4096 are needed"
        )
        let probe = Array("limited-login".utf8)
        guard let signingKey = try? SigningKey(key), let signature = try? key.signature(for: probe),
            let digest = try? SHA256.digest(of: probe.span), let publicKey = try? PublicKey(key.numbers),
            publicKey.isValidSignature(signature.span, of: digest)
        else { throw InvalidConfiguration("the key does not fit its own public key") }
        self = signingKey
    }

    private init(_ key: PrivateKey) throws(OpenSSLError) {
        self.key = key
        algorithm = key.numbers.isRSA ? .rs256 : .es256
        keyID = try key.numbers.thumbprint()
    }

    /// The name and algorithm of the key.
    public var description: String { "\(algorithm.rawValue) \(keyID)" }

    /// The public key as a JWK (RFC 7517): the members `kty`, `use`, `alg`, `kid` and the key's numbers, nothing else.
    var jsonWebKey: String {
        let numbers = key.numbers.members
        let members =
            [numbers[0], ("use", "sig"), ("alg", algorithm.rawValue), ("kid", keyID)] + numbers.dropFirst()
        return "{" + members.map { #""\#($0.name)":"\#($0.value)""# }.joined(separator: ",") + "}"
    }

    /// The public key as a SubjectPublicKeyInfo in PEM form (RFC 7468), for consumers that cannot read a JWK Set.
    public func publicPEM() throws(InvalidConfiguration) -> String { try pem(isPrivate: false) }

    /// The private key as PKCS #8 in PEM form, without encryption.
    public func privatePEM() throws(InvalidConfiguration) -> String { try pem(isPrivate: true) }

    private func pem(isPrivate: Bool) throws(InvalidConfiguration) -> String {
        do {
            return try isPrivate ? key.privatePEM() : key.publicPEM()
        } catch { throw InvalidConfiguration("OpenSSL cannot write the key.") }
    }
}

/// The keys of an issuer. The first one signs; all of them verify and are published.
public struct SigningKeySet: Sendable {
    /// The greatest number of keys. 8: a rotation needs two.
    package static let countLimit = 8

    /// The keys in the order of the file.
    public let keys: [SigningKey]

    /// - Throws: ``InvalidConfiguration`` for no key, for more than 8, and for a repeated key.
    public init(_ keys: [SigningKey]) throws(InvalidConfiguration) {
        guard !keys.isEmpty else {
            throw InvalidConfiguration("there is no private key; 'limited-login signing-key new' makes one")
        }
        try InvalidConfiguration.unless(keys.count <= Self.countLimit, "there are more than \(Self.countLimit) keys")
        let names = Set(keys.map(\.keyID))
        try InvalidConfiguration.unless(names.count == keys.count, "the same key stands there twice")
        self.keys = keys
    }

    /// Reads private keys in PEM form, one after another. Text between them, and blocks of other kinds, such as `EC
    /// PARAMETERS`, are ignored.
    /// - Throws: ``InvalidConfiguration``, with the place of a key that cannot be used.
    public init(pem: String) throws(InvalidConfiguration) {
        var keys: [SigningKey] = []
        var block: [Substring]?
        for line in pem.split(whereSeparator: \.isNewline) {
            if line.hasPrefix("-----BEGIN ") {
                guard block == nil else { throw InvalidConfiguration("key \(keys.count + 1) has no end") }
                if line.contains("PRIVATE KEY-----") { block = [] }
            }
            block?.append(line)
            guard let text = block, line.hasPrefix("-----END ") else { continue }
            block = nil
            guard keys.count <= Self.countLimit else { break }
            do throws(InvalidConfiguration) {
                keys.append(try SigningKey(pem: text.joined(separator: "\n") + "\n"))
            } catch { throw InvalidConfiguration("key \(keys.count + 1): \(error)") }
        }
        guard block == nil else { throw InvalidConfiguration("key \(keys.count + 1) has no end") }
        try self.init(keys)
    }

    /// The JWK Set (RFC 7517 section 5) of all public keys: one JSON object.
    public var jwkSet: String { #"{"keys":["# + keys.map(\.jsonWebKey).joined(separator: ",") + "]}" }
}
