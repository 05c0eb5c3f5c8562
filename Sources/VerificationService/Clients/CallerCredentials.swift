internal import HTTP1

/// Finds the key a caller presents: `Authorization: Bearer KEY` (RFC 6750 section 2.1) or `X-Api-Key: KEY`.
enum CallerCredentials {
    /// The key's place in the head; nil when there is none, or more than one, so that nobody can guess which counts.
    static func key(_ head: borrowing RequestHead, bytes: Span<UInt8>) -> Range<Int>? {
        let authorizations = head.count(of: "authorization", in: bytes)
        let apiKeys = head.count(of: "x-api-key", in: bytes)
        guard authorizations + apiKeys == 1 else { return nil }
        if let value = head.value(of: "x-api-key", in: bytes) { return value }
        guard let value = head.value(of: "authorization", in: bytes), value.count > 7,
            bytes.equalIgnoringCase(value.lowerBound..<value.lowerBound + 7, "bearer ")
        else { return nil }
        var start = value.lowerBound + 7
        while start < value.upperBound, bytes[start] == UInt8(ascii: " ") { start += 1 }
        return start..<value.upperBound
    }
}
