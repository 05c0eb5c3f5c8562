/// The value of one Transfer-Encoding field (RFC 9112 §6.1), as far as it matters to a server that removes one coding.
package enum TransferCoding: Equatable, Sendable {
    /// Exactly `chunked`, its case set aside.
    case chunked
    /// Other codings, each a token, and chunked once, at the end.
    case chunkedAfterOthers
    /// Anything else: chunked missing, not last or repeated, an element empty or no token.
    case invalid

    /// Reads the value that `range` of `bytes` holds. Empty list elements are not forgiven here: a list that two
    /// readers could take for two lengths is refused.
    package init(_ bytes: Span<UInt8>, _ range: Range<Int>) {
        if bytes.equalIgnoringCase(range, "chunked") {
            self = .chunked
            return
        }
        self = .invalid
        var index = range.lowerBound
        var chunkedSeen = false
        while true {
            let start = index
            while index < range.upperBound, FieldGrammar.isTokenByte(bytes[index]) {
                index += 1
            }
            // A token is needed, and nothing may follow chunked.
            if index == start || chunkedSeen { return }
            chunkedSeen = bytes.equalIgnoringCase(start..<index, "chunked")
            index = ListElements.skipWhitespace(bytes, index, range.upperBound)
            if index == range.upperBound { break }
            guard bytes[index] == UInt8(ascii: ",") else { return }
            index = ListElements.skipWhitespace(bytes, index + 1, range.upperBound)
        }
        if chunkedSeen { self = .chunkedAfterOthers }
    }
}
