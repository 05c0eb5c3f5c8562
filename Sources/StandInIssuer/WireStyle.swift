/// Facebook's way of writing JSON strings: `/` as `\/`, `@` and everything beyond ASCII as `\uXXXX`.
package enum WireStyle {
    /// Appends `text` as a JSON string with its quotes.
    package static func appendString(_ text: String, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        for unit in text.utf16 {
            switch unit {
            case 0x22: bytes.append(contentsOf: "\\\"".utf8)
            case 0x5c: bytes.append(contentsOf: "\\\\".utf8)
            case 0x2f: bytes.append(contentsOf: "\\/".utf8)
            case 0x20...0x7e where unit != 0x40: bytes.append(UInt8(truncatingIfNeeded: unit))
            default: appendEscape(unit, to: &bytes)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private static func appendEscape(_ unit: UInt16, to bytes: inout [UInt8]) {
        bytes.append(contentsOf: "\\u".utf8)
        for shift in [12, 8, 4, 0] {
            let digit = UInt8(truncatingIfNeeded: unit >> UInt16(shift)) & 0x0f
            bytes.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
        }
    }
}
