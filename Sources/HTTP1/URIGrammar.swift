/// The bytes of request targets (RFC 3986, as RFC 9112 §3.2 uses it).
package enum URIGrammar {
    package enum Kind {
        /// Allowed wherever it stands.
        case plain
        /// Allowed in some places only: `%`, `[`, `]`.
        case needsCheck
        /// Never allowed: controls, space, `"`, `#`, `<`, `>`, `\`, `^`, a grave accent, `{`, `|`, `}` and bytes from 0x7F on.
        case forbidden
    }

    /// What a byte of a target is.
    @inlinable
    package static func kind(_ byte: UInt8) -> Kind {
        if byte < 64 {
            if plainLow >> UInt64(byte) & 1 == 1 { return .plain }
            return byte == 0x25 ? .needsCheck : .forbidden
        }
        if byte < 128 {
            if plainHigh >> UInt64(byte - 64) & 1 == 1 { return .plain }
            return byte == 0x5B || byte == 0x5D ? .needsCheck : .forbidden
        }
        return .forbidden
    }

    /// `! $ & ' ( ) * + , - . / 0-9 : ; = ?` of the bytes 0 … 63.
    @usableFromInline
    static let plainLow: UInt64 = 0xAFFF_FFD2_0000_0000
    /// `@ A-Z _ a-z ~` of the bytes 64 … 127.
    @usableFromInline
    static let plainHigh: UInt64 = 0x47FF_FFFE_87FF_FFFF

    /// True for `unreserved / sub-delims`, the bytes of a `reg-name` besides percent-encodings.
    static func isNameByte(_ byte: UInt8) -> Bool {
        kind(byte) == .plain && byte != UInt8(ascii: "/") && byte != UInt8(ascii: "?") && byte != UInt8(ascii: ":")
            && byte != UInt8(ascii: "@")
    }
}
