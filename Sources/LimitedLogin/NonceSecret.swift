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

    /// Takes a secret written as 64 to 256 hexadecimal digits, as `openssl rand -hex 32` prints it.
    public init(hexadecimal text: String) throws(NonceSecretError) {
        var bytes: [UInt8] = []
        var high: UInt8?
        for byte in text.utf8 {
            guard let digit = Self.digit(byte) else { throw .notHexadecimal }
            if let first = high {
                bytes.append(first << 4 | digit)
                high = nil
            } else {
                high = digit
            }
        }
        guard high == nil else { throw .notHexadecimal }
        try self.init(bytes: bytes)
    }

    /// Never the secret itself.
    public var description: String { "a secret of \(bytes.count) bytes" }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

/// Why bytes are no secret; the description never quotes them.
public enum NonceSecretError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Fewer than 32 bytes.
    case tooShort
    /// More than 128 bytes.
    case tooLong
    /// The same few bytes again and again.
    case notRandom
    /// Not an even number of hexadecimal digits and nothing else.
    case notHexadecimal

    /// One clause on what is wrong and how to do right.
    public var description: String {
        switch self {
        case .tooShort: "the secret has fewer than 32 bytes (64 hexadecimal digits)"
        case .tooLong: "the secret has more than 128 bytes (256 hexadecimal digits)"
        case .notRandom: "the secret is the same few bytes again and again; take it from a random generator"
        case .notHexadecimal: "the secret must be hexadecimal digits and nothing else, an even number of them"
        }
    }
}
