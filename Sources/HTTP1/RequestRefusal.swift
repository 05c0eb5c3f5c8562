/// Why the grammar refuses a request; each reason has its sentence for the client, and its status.
package enum RequestRefusal: String, Error, Equatable, Sendable, CaseIterable {
    case malformedRequestLine = "The request line is malformed."
    case malformedTarget = "The request target is malformed."
    case malformedFieldLine = "A field line is malformed."
    case malformedFieldValue = "A field value holds a byte that is not allowed."
    case malformedLineEnd = "A line does not end in CRLF."
    case invalidHost = "The Host field is missing, repeated or invalid."
    case invalidContentLength = "The Content-Length field is invalid."
    case invalidTransferEncoding = "The Transfer-Encoding field is invalid."
    case conflictingFraming = "The request has both Content-Length and Transfer-Encoding."
    case malformedChunk = "The chunked coding is malformed."
    case tooManyChunks = "The body comes in too many chunks."
    case chunkExtensionsTooLong = "The chunk extensions are too long."
    case malformedTrailer = "A trailer field is malformed or not allowed."
    case duplicateField = "A field that may occur once is repeated."
    case bodyTooLarge = "The body is too large."
    case targetTooLong = "The request line is too long."
    case expectationFailed = "The expectation cannot be met."
    case headerSectionTooLarge = "The header section is too large."
    case tooManyFields = "The request has too many fields."
    case trailersTooLarge = "The trailer section is too large."
    case unsupportedTransferCoding = "The transfer coding is not supported."
    case connectUnsupported = "CONNECT is not supported."
    case unsupportedVersion = "The HTTP version is not supported."

    package var status: UInt16 {
        switch self {
        case .bodyTooLarge: 413
        case .targetTooLong: 414
        case .expectationFailed: 417
        case .headerSectionTooLarge, .tooManyFields, .trailersTooLarge: 431
        case .unsupportedTransferCoding, .connectUnsupported: 501
        case .unsupportedVersion: 505
        default: 400
        }
    }
}
