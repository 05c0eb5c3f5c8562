/// The secret under which a ``NonceIssuer`` issues nonces and recognises them: whoever knows it can make nonces.
///
/// It never shows its bytes: its description says how many there are.
public struct NonceSecret: Sendable, Equatable, CustomStringConvertible {
    /// Fewest bytes: 32, the output of SHA-256, below which a key weakens the code (RFC 2104 section 3).
    public static let leastByteCount = 32
    /// Most bytes: 128. More adds nothing.
    public static let greatestByteCount = 128
    /// Fewest different bytes: 8. Random bytes have more (with 32 of them, all but one time in 10²⁰); a secret that
    /// somebody typed, or left at zeros, has not.
    static let leastDistinctByteCount = 8

    let bytes: [UInt8]

    /// Takes a secret of 32 to 128 bytes from a cryptographic random generator.
    public init(bytes: [UInt8]) throws(NonceSecretError) {
        guard bytes.count >= Self.leastByteCount else { throw .tooShort }
        guard bytes.count <= Self.greatestByteCount else { throw .tooLong }
        guard Set(bytes).count >= Self.leastDistinctByteCount else { throw .notRandom }
        self.bytes = bytes
    }

    /// Takes a secret as it is written: 32 to 128 visible ASCII characters, without white space, whose bytes are the
    /// secret. What `openssl rand -hex 32`, `openssl rand -base64 32` and password generators print will do.
    public init(text: String) throws(NonceSecretError) {
        let bytes = Array(text.utf8)
        guard bytes.allSatisfy({ (0x21...0x7E).contains($0) }) else { throw .notVisible }
        try self.init(bytes: bytes)
    }

    /// Never the secret itself.
    public var description: String { "a secret of \(bytes.count) bytes" }
}

/// Why bytes are no secret; the description never quotes them.
public enum NonceSecretError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Fewer than 32 bytes.
    case tooShort
    /// More than 128 bytes.
    case tooLong
    /// The same few bytes again and again.
    case notRandom
    /// Text with a character that is not visible ASCII.
    case notVisible

    /// One clause on what is wrong and how to do right.
    public var description: String {
        switch self {
        case .tooShort: "the secret has fewer than 32 bytes"
        case .tooLong: "the secret has more than 128 bytes"
        case .notRandom: "the secret is the same few bytes again and again; take it from a random generator"
        case .notVisible: "the secret must be visible ASCII characters without white space"
        }
    }
}
