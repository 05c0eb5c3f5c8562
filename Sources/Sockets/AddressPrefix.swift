/// The addresses that begin with the same bits: `10.0.0.0/8`, `fd00::/8`, or one address alone.
package struct AddressPrefix: Sendable, Equatable {
    private let bytes: [UInt8]
    private let bitCount: Int

    /// Reads an address, with the number of its leading bits that count behind a slash (RFC 4632 §3.1, RFC 4291 §2.3);
    /// nil for anything else, for a name, and where a bit behind those that count is set.
    package init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let host = parts.first, host != "localhost", let bytes = SocketAddress.addressBytes(String(host)) else {
            return nil
        }
        var bitCount = 8 * bytes.count
        if parts.count == 2 {
            let digits = parts[1].utf8
            guard (1...3).contains(digits.count), digits.allSatisfy({ (0x30...0x39).contains($0) }),
                digits.count == 1 || digits.first != UInt8(ascii: "0"),
                let number = Int(parts[1]), number <= bitCount
            else { return nil }
            bitCount = number
        }
        for bit in bitCount..<8 * bytes.count where bytes[bit / 8] >> UInt8(7 - bit % 8) & 1 == 1 { return nil }
        self.bytes = bytes
        self.bitCount = bitCount
    }

    /// Whether the address begins with these bits.
    package func contains(_ address: SocketAddress) -> Bool {
        guard address.bytes.count == bytes.count else { return false }
        let whole = bitCount / 8
        guard bytes[..<whole] == address.bytes[..<whole] else { return false }
        let rest = bitCount % 8
        return rest == 0 || (bytes[whole] ^ address.bytes[whole]) >> UInt8(8 - rest) == 0
    }
}
