/// The few ASCII facts the grammar needs.
package enum ASCII {
    package static let tab: UInt8 = 0x09
    package static let lineFeed: UInt8 = 0x0A
    package static let carriageReturn: UInt8 = 0x0D
    package static let space: UInt8 = 0x20

    /// The lower-case letter for an upper-case one; any other byte unchanged.
    @inlinable
    package static func lowercased(_ byte: UInt8) -> UInt8 {
        byte &- 0x41 < 26 ? byte | 0x20 : byte
    }

    /// The value of a decimal digit; nil for any other byte.
    @inlinable
    package static func digit(_ byte: UInt8) -> Int? {
        byte &- 0x30 < 10 ? Int(byte &- 0x30) : nil
    }

    /// The value of a hexadecimal digit; nil for any other byte.
    @inlinable
    package static func hexadecimalDigit(_ byte: UInt8) -> Int? {
        if byte &- 0x30 < 10 { return Int(byte &- 0x30) }
        let letter = byte | 0x20
        return letter &- 0x61 < 6 ? Int(letter &- 0x61) + 10 : nil
    }
}
