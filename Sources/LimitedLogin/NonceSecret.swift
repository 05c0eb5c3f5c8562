internal import Bytes

/// The secret under which a ``NonceIssuer`` issues nonces and recognises them. Anybody who knows it can make nonces.
///
/// It never shows its bytes: its description says how many there are, and its mirror, which `dump` shows, is empty.
public struct NonceSecret: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
    /// Fewest bytes: 32, the output of SHA-256, below which a key weakens the code (RFC 2104 section 3).
    public static let leastByteCount = 32
    /// Most bytes: 128. More adds nothing.
    public static let greatestByteCount = 128
    /// Fewest different bytes: 8. Random bytes have more (with 32 of them, all but one time in 10²⁰); a secret that
    /// somebody typed, or left at zeros, has not.
    static let leastDistinctByteCount = 8

    let bytes: [UInt8]

    /// Takes a secret of 32 to 128 bytes from a cryptographic random generator.
    public init(bytes: [UInt8]) throws(InvalidConfiguration) {
        guard bytes.count >= Self.leastByteCount else { throw .secretTooShort }
        guard bytes.count <= Self.greatestByteCount else { throw .secretTooLong }
        guard Set(bytes).count >= Self.leastDistinctByteCount else { throw .secretNotRandom }
        self.bytes = bytes
    }

    /// Takes a secret as it is written: 32 to 128 visible ASCII characters, without white space, whose bytes are the
    /// secret. What `openssl rand -hex 32`, `openssl rand -base64 32` and password generators print will do.
    public init(text: String) throws(InvalidConfiguration) {
        let bytes = Array(text.utf8)
        guard bytes.allSatisfy(ASCII.isVisible) else { throw .secretNotVisible }
        try self.init(bytes: bytes)
    }

    /// Never the secret itself.
    public var customMirror: Mirror { Mirror(self, children: []) }

    /// Never the secret itself.
    public var description: String { "a secret of \(bytes.count) bytes" }
}
