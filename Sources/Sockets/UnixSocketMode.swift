/// The permissions of a socket's file: who may write to it may connect.
package struct UnixSocketMode: Hashable, Sendable, CustomStringConvertible {
    /// `0660`: the service's user and group.
    package static let standard = UnixSocketMode(bits: 0o660)

    /// `0600` to `0777`.
    let bits: UInt32

    private init(bits: UInt32) { self.bits = bits }

    /// Reads three or four octal digits; nil for anything else, and where the owner could not read and write.
    package init?(_ text: String) {
        let digits = text.utf8
        guard (3...4).contains(digits.count),
            digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "7")).contains($0) })
        else { return nil }
        bits = digits.reduce(0) { $0 * 8 + UInt32($1 - UInt8(ascii: "0")) }
        guard (0o600...0o777).contains(bits) else { return nil }
    }

    /// Four octal digits.
    package var description: String { "0" + String(bits, radix: 8) }
}
