internal import Bytes

/// A nonce as Facebook's SDK takes it: not empty and without white space of any kind.
///
/// The backend makes one for each login and gives it to the app; Facebook echoes it in the token unchanged.
/// It is the only tie between a token and a login, so every nonce should be accepted once.
public struct Nonce: Equatable, Hashable, Sendable {
    /// The nonce itself.
    public let value: String

    /// Takes a nonce made elsewhere; nil when it is empty or holds white space.
    public init?(_ value: String) {
        guard Self.isValid(value.utf8.span) else { return nil }
        self.value = value
    }

    private init(unchecked value: String) {
        self.value = value
    }

    /// Makes a nonce from 256 bits of the system's cryptographic random generator: 43 base64url digits.
    public static func generate() -> Nonce {
        var generator = SystemRandomNumberGenerator()
        let bytes = (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        return Nonce(unchecked: String(decoding: Base64URL.encode(bytes), as: UTF8.self))
    }

    /// Whether two nonces are the same bytes (`String` alone would also equate other spellings of a character).
    public static func == (left: Nonce, right: Nonce) -> Bool {
        left.value.utf8.elementsEqual(right.value.utf8)
    }

    /// Whether these UTF-8 bytes are a nonce.
    ///
    /// White space is what Unicode gives that property, and the zero-width space that Apple's platforms count
    /// among it: U+0009 to U+000D, U+0020, U+0085, U+00A0, U+1680, U+2000 to U+200B, U+2028, U+2029, U+202F,
    /// U+205F and U+3000.
    package static func isValid(_ bytes: Span<UInt8>) -> Bool {
        guard !bytes.isEmpty else { return false }
        for index in 0..<bytes.count {
            let byte = bytes[index]
            if byte == 0x20 || (0x09...0x0D).contains(byte) { return false }
            if byte >= 0xC2, startsWideSpace(bytes, at: index, byte) { return false }
        }
        return true
    }

    /// Whether a white space of two or three UTF-8 bytes starts at `index`.
    private static func startsWideSpace(_ bytes: Span<UInt8>, at index: Int, _ first: UInt8) -> Bool {
        let second = index + 1 < bytes.count ? bytes[index + 1] : 0
        let third = index + 2 < bytes.count ? bytes[index + 2] : 0
        return switch (first, second) {
        case (0xC2, 0x85), (0xC2, 0xA0): true
        case (0xE1, 0x9A): third == 0x80
        case (0xE2, 0x80): (0x80...0x8B).contains(third) || third == 0xA8 || third == 0xA9 || third == 0xAF
        case (0xE2, 0x81): third == 0x9F
        case (0xE3, 0x80): third == 0x80
        default: false
        }
    }
}
