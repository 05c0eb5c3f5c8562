internal import LLBytes

/// The URI of a request without query and fragment, in one spelling, for the comparison with `htu` of a DPoP proof.
/// RFC 9449 section 4.3 (9) ignores query and fragment and recommends the normalisation of RFC 3986 section 6.2.2
/// (case, percent-encoding, dot segments) and section 6.2.3 (default port, empty path).
package struct TargetURI: Equatable, Sendable {
    /// The greatest length, in bytes, without query and fragment: the same as for a request line.
    package static let byteLimit = 8_192

    package let normalized: [UInt8]

    /// Nil unless the text is an absolute `http` or `https` URI of visible ASCII with a host and without user information.
    package init?(_ text: Span<UInt8>) {
        var pathEnd = 0
        while pathEnd < text.count, !"?#".utf8.contains(text[pathEnd]) {
            guard pathEnd < Self.byteLimit, ASCII.isVisible(text[pathEnd]) else { return nil }
            pathEnd += 1
        }
        let isSecure = text.equalIgnoringCase(0..<8, "https://")
        guard isSecure || text.equalIgnoringCase(0..<7, "http://") else { return nil }
        let start = isSecure ? 8 : 7
        let end = min(text.firstOffset(of: UInt8(ascii: "/"), from: start), pathEnd)
        guard let authority = Self.authority(text, start..<end, isSecure: isSecure),
            let path = Self.path(text, end..<pathEnd)
        else { return nil }
        normalized = Array((isSecure ? "https://" : "http://").utf8) + authority + path
    }

    package init?(scheme: Span<UInt8>, authority: Span<UInt8>, target: Span<UInt8>) {
        guard
            scheme.equalIgnoringCase(0..<scheme.count, "https") || scheme.equalIgnoringCase(0..<scheme.count, "http")
        else { return nil }
        // The target of a request for a resource is its path (RFC 9112 section 3.2.1).
        guard target.count > 0, target[0] == UInt8(ascii: "/") else { return nil }
        for index in 0..<authority.count where "/?#".utf8.contains(authority[index]) { return nil }
        var text: [UInt8] = []
        text.append(scheme)
        text.append("://")
        text.append(authority)
        text.append(target)
        self.init(text.span)
    }

    /// The host in lower case, and the port unless it is the scheme's own.
    private static func authority(_ text: Span<UInt8>, _ range: Range<Int>, isSecure: Bool) -> [UInt8]? {
        guard let start = range.first else { return nil }
        let hostEnd =
            text[start] == UInt8(ascii: "[")
            ? text.firstOffset(of: UInt8(ascii: "]"), from: start) + 1
            : min(text.firstOffset(of: UInt8(ascii: ":"), from: start), range.upperBound)
        guard hostEnd > start, hostEnd <= range.upperBound else { return nil }
        var authority: [UInt8] = []
        for index in start..<hostEnd {
            // User information, and an escape in a name, are not allowed in the URI of a request.
            guard text[index] != UInt8(ascii: "@"), text[index] != UInt8(ascii: "%") else { return nil }
            authority.append(ASCII.lowercased(text[index]))
        }
        guard hostEnd < range.upperBound else { return authority }
        guard text[hostEnd] == UInt8(ascii: ":") else { return nil }
        let digits = hostEnd + 1..<range.upperBound
        // RFC 3986 section 6.2.3: an empty port is the default one.
        if digits.isEmpty { return authority }
        guard let port = DecimalNumber.parse(text, digits), port <= 65_535 else { return nil }
        if port != (isSecure ? 443 : 80) { authority += Array(":\(port)".utf8) }
        return authority
    }

    /// The path with one spelling of each byte and without dot segments; `/` for an empty one.
    private static func path(_ text: Span<UInt8>, _ range: Range<Int>) -> [UInt8]? {
        var spelt: [UInt8] = []
        var index = range.lowerBound
        while index < range.upperBound {
            guard text[index] == UInt8(ascii: "%") else {
                spelt.append(text[index])
                index += 1
                continue
            }
            guard let byte = PercentEncoding.byte(text, at: index, before: range.upperBound) else { return nil }
            // RFC 3986 section 6.2.2.2: unreserved bytes are not escaped; section 6.2.2.1: digits in upper case.
            if ASCII.isUnreserved(byte) {
                spelt.append(byte)
            } else {
                PercentEncoding.append(byte, to: &spelt)
            }
            index += 3
        }
        return withoutDotSegments(spelt)
    }

    /// RFC 3986 section 5.2.4, for a path that is empty or begins with `/`.
    private static func withoutDotSegments(_ path: [UInt8]) -> [UInt8] {
        var segments: [ArraySlice<UInt8>] = []
        let parts = path.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        for (position, part) in parts.enumerated() {
            let isDot = part.elementsEqual(".".utf8)
            let isDoubleDot = part.elementsEqual("..".utf8)
            if isDoubleDot { _ = segments.popLast() }
            if !isDot && !isDoubleDot { segments.append(part) }
            // A dot segment at the end leaves the slash before it.
            if isDot || isDoubleDot, position == parts.count - 1 { segments.append([]) }
        }
        if segments.isEmpty { return [UInt8(ascii: "/")] }
        return segments.flatMap { [UInt8(ascii: "/")] + $0 }
    }
}
