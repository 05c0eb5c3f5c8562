internal import JOSE

/// A claim as the value of a header field.
enum AuthFieldValue {
    /// Greatest length, in bytes: beyond it gateways refuse the answer.
    static let byteLimit = 1_024

    /// The claim's value, escapes decoded; nil where a field could not carry it to the byte: empty, longer than
    /// ``byteLimit``, or with white space, control characters or other than ASCII (RFC 9110 section 5.5).
    static func of(_ range: Range<Int>, in payload: Span<UInt8>) -> String? {
        let value = JSONText.value(payload, range)
        guard (1...byteLimit).contains(value.utf8.count), value.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
            return nil
        }
        return value
    }
}
