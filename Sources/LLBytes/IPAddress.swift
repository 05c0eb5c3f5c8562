#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Android)
internal import Android
#else
internal import Darwin
#endif

package enum IPAddress {
    /// The bytes of an address in network order: 4 for IPv4 (dotted decimal without leading zeros), 16 for IPv6 (RFC 4291
    /// section 2.2); nil for anything else.
    package static func bytes(_ text: Span<UInt8>, _ range: Range<Int>) -> [UInt8]? {
        // No address is longer, and a NUL would end the text too early.
        guard range.count < INET6_ADDRSTRLEN, !range.contains(where: { text[$0] == 0 }) else { return nil }
        let isIPv6 = range.contains { text[$0] == UInt8(ascii: ":") }
        var bytes = [UInt8](repeating: 0, count: isIPv6 ? 16 : 4)
        let string = String(decoding: range.map { text[$0] }, as: UTF8.self)
        // The array has as many bytes as the family's address.
        return unsafe inet_pton(isIPv6 ? AF_INET6 : AF_INET, string, &bytes) == 1 ? bytes : nil
    }

    /// The usual short form of an address of 4 or 16 bytes (RFC 5952 for IPv6); empty for any other number of bytes.
    package static func text(_ bytes: [UInt8]) -> String {
        guard bytes.count == 4 || bytes.count == 16 else { return "" }
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        // The longest text of an address fits, with its final NUL.
        let family = bytes.count == 16 ? AF_INET6 : AF_INET
        guard unsafe inet_ntop(family, bytes, &text, socklen_t(text.count)) != nil else { return "" }
        return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}
