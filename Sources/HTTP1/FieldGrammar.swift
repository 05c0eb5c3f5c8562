/// The bytes of field names and values (RFC 9110 §5.1, §5.5, §5.6.2).
package enum FieldGrammar {
    /// True for `tchar`, the bytes of a token.
    @inlinable
    package static func isTokenByte(_ byte: UInt8) -> Bool {
        // One bit for each of the 128 ASCII bytes.
        if byte < 64 { return tokenLow >> UInt64(byte) & 1 == 1 }
        return byte < 128 && tokenHigh >> UInt64(byte - 64) & 1 == 1
    }

    /// True for the bytes a field value may hold: visible ASCII, space, tab and bytes from 0x80 on (`obs-text`).
    @inlinable
    package static func isValueByte(_ byte: UInt8) -> Bool {
        byte >= 0x20 && byte != 0x7F || byte == 0x09
    }

    /// `! # $ % & ' * + - . 0-9` of the bytes 0 … 63.
    @usableFromInline
    static let tokenLow: UInt64 = 0x03FF_6CFA_0000_0000
    /// `A-Z ^ _ ` a-z | ~` of the bytes 64 … 127.
    @usableFromInline
    static let tokenHigh: UInt64 = 0x57FF_FFFF_C7FF_FFFE
}
