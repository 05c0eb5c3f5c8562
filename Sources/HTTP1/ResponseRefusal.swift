/// Why the grammar refuses a response.
package enum ResponseRefusal: Error, Equatable, Sendable {
    case malformedStatusLine
    case unsupportedVersion
    case malformedFieldLine
    case malformedFieldValue
    case malformedLineEnd
    case headTooLarge
    case tooManyFields
    case invalidContentLength
    case invalidTransferEncoding
    case conflictingFraming
    case unexpectedUpgrade
    /// The chunked coding is broken, or one of its own limits exceeded.
    case chunkedBody(RequestRefusal)

    /// One constant sentence; nothing in it was sent by the peer.
    package var sentence: StaticString {
        switch self {
        case .malformedStatusLine: "the status line is malformed"
        case .unsupportedVersion: "the HTTP version is not supported"
        case .malformedFieldLine: "a field line is malformed"
        case .malformedFieldValue: "a field value holds a byte that is not allowed"
        case .malformedLineEnd: "a line does not end in CRLF"
        case .headTooLarge: "the head is too large"
        case .tooManyFields: "there are too many fields"
        case .invalidContentLength: "the Content-Length field is invalid"
        case .invalidTransferEncoding: "the Transfer-Encoding field is invalid"
        case .conflictingFraming: "there are both Content-Length and Transfer-Encoding"
        case .unexpectedUpgrade: "it switches protocols unasked"
        case .chunkedBody(let refusal): refusal.sentence
        }
    }
}
