internal import LLBytes

/// The bytes of field names and values (RFC 9110 §5.1, §5.5, §5.6.2).
package enum FieldGrammar {
    /// True for `tchar`, the bytes of a token.
    @inlinable
    package static func isTokenByte(_ byte: UInt8) -> Bool {
        // One bit for each of the 128 ASCII bytes.
        if byte < 64 { return tokenLow >> UInt64(byte) & 1 == 1 }
        return byte < 128 && tokenHigh >> UInt64(byte - 64) & 1 == 1
    }

    /// True for the bytes that a field value may hold: visible ASCII, space, tab and bytes from 0x80 on (`obs-text`).
    @inlinable
    package static func isValueByte(_ byte: UInt8) -> Bool {
        byte >= 0x20 && byte != 0x7F || byte == 0x09
    }

    /// True if a byte may stand at this offset of a version: `HTTP/`, a digit, a dot, a digit (RFC 9112 §2.3).
    static func isVersionByte(_ byte: UInt8, at offset: Int) -> Bool {
        offset == 5 || offset == 7
            ? ASCII.digit(byte) != nil : byte == ("HTTP/ ." as StaticString).byte(at: offset)
    }

    /// True if all bytes may stand in a field value.
    static func isValue(_ value: Span<UInt8>) -> Bool {
        var offset = skipPlainValue(value, 0, value.count)
        while offset < value.count {
            guard isValueByte(value[offset]) else { return false }
            offset += 1
        }
        return true
    }

    /// Skips bytes without control characters, sixteen at a time. It returns an offset from `offset` to `end`; the
    /// caller checks the bytes from there on.
    @inline(__always)
    static func skipPlainValue(_ bytes: Span<UInt8>, _ offset: Int, _ end: Int) -> Int {
        var offset = offset
        while end &- offset >= 16 {
            let marks = bytes.vector16(at: offset).marksOfControls
            if marks[0] | marks[1] != 0 { return offset &+ marks.unmarkedCount }
            offset &+= 16
        }
        return offset
    }

    /// The bits of `! # $ % & ' * + - . 0-9` among the bytes 0 … 63.
    @usableFromInline
    static let tokenLow: UInt64 = 0x03FF_6CFA_0000_0000
    /// The bits of `A-Z ^ _ ` a-z | ~` among the bytes 64 … 127.
    @usableFromInline
    static let tokenHigh: UInt64 = 0x57FF_FFFF_C7FF_FFFE
}

/// A valid field name, checked when it was configured.
package struct FieldName: Sendable, Equatable {
    package let bytes: [UInt8]

    /// The name; nil if the text is not a token.
    package init?(_ name: String) {
        bytes = Array(name.utf8)
        guard !bytes.isEmpty, bytes.allSatisfy(FieldGrammar.isTokenByte) else { return nil }
    }
}

/// Iterates over a comma-separated list (RFC 9110 §5.6.1). Empty elements are skipped, as §5.6.1.2 requires. The
/// value's length bounds their number.
struct ListElements {
    private var index: Int
    private let end: Int

    /// - Parameter value: The range of the list in the bytes given to ``next(_:)``.
    init(_ value: Range<Int>) {
        index = value.lowerBound
        end = value.upperBound
    }

    /// The next element that is not empty, without white space around it; nil at the end.
    mutating func next(_ bytes: Span<UInt8>) -> Range<Int>? {
        while index < end {
            let start = Self.skipWhitespace(bytes, index, end)
            var comma = start
            while comma < end, bytes[comma] != UInt8(ascii: ",") { comma += 1 }
            index = comma + 1
            let last = Self.dropWhitespace(bytes, start, comma)
            if last > start { return start..<last }
        }
        return nil
    }

    /// The first index from `index` on, at most `end`, that holds neither a space nor a tab.
    static func skipWhitespace(_ bytes: Span<UInt8>, _ index: Int, _ end: Int) -> Int {
        var index = index
        while index < end, bytes[index] == ASCII.space || bytes[index] == ASCII.tab { index += 1 }
        return index
    }

    /// The end of the text from `start` to `end` without the white space after it.
    static func dropWhitespace(_ bytes: Span<UInt8>, _ start: Int, _ end: Int) -> Int {
        var end = end
        while end > start, bytes[end - 1] == ASCII.space || bytes[end - 1] == ASCII.tab { end -= 1 }
        return end
    }
}

/// Comparisons of sixteen bytes at once. A marked byte is all ones; each word holds eight bytes, the first one lowest.
extension SIMD16<UInt8> {
    /// Marks each control byte, including tab: the bytes that a field value must not hold, and the end of its line.
    @inline(__always)
    var marksOfControls: SIMD2<UInt64> {
        let isLow = self .< SIMD16<UInt8>(repeating: 0x20)
        return (isLow .| (self .== SIMD16<UInt8>(repeating: 0x7F))).words
    }
}

/// Every limit of the HTTP/1.1 grammar, with its default and the reason for it.
package struct HTTPLimits: Sendable, Equatable {
    /// Request line, in bytes, without its line end: 8,192. RFC 9112 §3 asks for at least 8,000. A longer line is 414.
    package var requestLineBytes = 8_192
    /// Header section, in bytes, without the request line: 32 KiB, because gateways forward their user's cookies; 431.
    package var headerSectionBytes = 32_768
    /// Field lines in a header section: 100, as in Envoy, hyper and Kestrel; beyond it 431.
    package var fieldCount = 100
    /// Body, in bytes, after chunked coding is removed: 48 KiB, the longest token and half as much again; beyond it 413.
    package var bodyBytes = 49_152
    /// Chunk extensions of a whole message, in bytes: 256 (RFC 9112 §7.1.1 asks for a bound); beyond it 400.
    package var chunkExtensionBytes = 256
    /// Trailer section, in bytes: 8 KiB; trailers are checked and dropped; beyond it 431.
    package var trailerSectionBytes = 8_192
    /// Chunks in one message: 4,096, so that a client cannot send one-byte chunks without end; beyond it 400.
    package var chunkCount = 4_096
    /// Empty lines before a request line: 4 (RFC 9112 §2.2 asks for at least one); beyond it 400.
    package var leadingEmptyLines = 4

    package init() {}
}

/// Why the grammar refuses a message. Each reason has its sentence for the client and the status of the answer.
package enum HTTPRefusal: String, Error, Equatable, Sendable, CaseIterable {
    case malformedRequestLine = "The request line is malformed."
    case malformedStatusLine = "The status line is malformed."
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
    case unexpectedUpgrade = "It switches protocols unasked."
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

    /// The reason as a clause about a response.
    package var clause: String {
        switch self {
        case .tooManyFields: "there are too many fields"
        case .conflictingFraming: "there are both Content-Length and Transfer-Encoding"
        default: rawValue.prefix(1).lowercased() + rawValue.dropFirst().dropLast()
        }
    }
}
