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
            let vector = bytes.vector16(at: offset)
            // A marked byte is all ones; each word holds eight bytes, the first one lowest.
            let isLow = vector .< SIMD16<UInt8>(repeating: 0x20)
            let marks = (isLow .| (vector .== SIMD16<UInt8>(repeating: 0x7F))).words
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
package struct ListElements {
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
            let start = index
            while index < end, bytes[index] != UInt8(ascii: ",") { index += 1 }
            let element = Self.trimmed(bytes, start..<index)
            index += 1
            if !element.isEmpty { return element }
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

    /// The range without white space around it.
    package static func trimmed(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Range<Int> {
        let start = skipWhitespace(bytes, range.lowerBound, range.upperBound)
        return start..<dropWhitespace(bytes, start, range.upperBound)
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

/// Why the grammar refuses a message, or the server a request. Each reason has its sentence for the client and the status
/// of the answer.
package enum HTTPRefusal: String, Error {
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
    case bodyTooLarge = "The body is larger than this path takes."
    case targetTooLong = "The request line is too long."
    case expectationFailed = "The expectation cannot be met."
    case headerSectionTooLarge = "The header section is too large."
    case tooManyFields = "The request has too many fields."
    case trailersTooLarge = "The trailer section is too large."
    case unsupportedTransferCoding = "The transfer coding is not supported."
    case connectUnsupported = "CONNECT is not supported."
    case unexpectedUpgrade = "It switches protocols unasked."
    case unsupportedVersion = "The HTTP version is not supported."
    case timedOut = "The request did not arrive whole in time."
    /// Requests wait too long, or there are too many connections.
    case overloaded = "Too many requests are waiting; try again shortly."
    /// The handler broke its contract (a status out of range, parking for ever).
    case handlerFailed = "The service failed to answer."

    package var status: UInt16 {
        switch self {
        case .timedOut: 408
        case .bodyTooLarge: 413
        case .targetTooLong: 414
        case .expectationFailed: 417
        case .headerSectionTooLarge, .tooManyFields, .trailersTooLarge: 431
        case .handlerFailed: 500
        case .unsupportedTransferCoding, .connectUnsupported: 501
        case .overloaded: 503
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

/// The four forms of a request target (RFC 9112 §3.2).
extension RequestHead {
    /// Checks the form of the target and records its parts.
    mutating func splitTarget(_ bytes: Span<UInt8>, _ target: Range<Int>) throws(HTTPRefusal) {
        // RFC 9112 §3.2.3: authority-form is for CONNECT alone. RFC 9110 §15.6.2: this server does not support tunnels.
        if method == .connect { throw .connectUnsupported }
        if bytes[target.lowerBound] == UInt8(ascii: "/") {
            try splitPath(bytes, target)
        } else if bytes.equal(target, "*") {
            // RFC 9112 §3.2.4: asterisk-form is for OPTIONS alone.
            guard method == .options else { throw .malformedTarget }
            path = target
        } else {
            try splitAbsolute(bytes, target)
        }
    }

    /// RFC 9112 §3.2.1: an absolute path and a query. The path may be empty after an authority. RFC 3986 §2.1: two
    /// hexadecimal digits follow `%`. An encoded NUL, CR or LF is refused: no path of this server has one, and it could
    /// deceive code that decodes it later. Only IP literals have brackets.
    private mutating func splitPath(_ bytes: Span<UInt8>, _ range: Range<Int>) throws(HTTPRefusal) {
        (path, query) = (range, nil)
        var index = range.lowerBound
        while index < range.upperBound {
            switch bytes[index] {
            case UInt8(ascii: "?") where query == nil:
                path = range.lowerBound..<index
                query = index + 1..<range.upperBound
            case UInt8(ascii: "["), UInt8(ascii: "]"): throw .malformedTarget
            case UInt8(ascii: "%"):
                guard let value = PercentEncoding.byte(bytes, at: index, before: range.upperBound),
                    value != 0, value != ASCII.lineFeed, value != ASCII.carriageReturn
                else { throw .malformedTarget }
                index += 2
            default: break
            }
            index += 1
        }
    }

    /// RFC 9112 §3.2.2: absolute-form must be accepted by every server.
    private mutating func splitAbsolute(_ bytes: Span<UInt8>, _ target: Range<Int>) throws(HTTPRefusal) {
        var start = target.lowerBound
        if target.count > 7, bytes.equalIgnoringCase(start..<start + 7, "http://") {
            start += 7
        } else if target.count > 8, bytes.equalIgnoringCase(start..<start + 8, "https://") {
            start += 8
        } else {
            throw .malformedTarget
        }
        let rest = start..<target.upperBound
        let end = rest.first { bytes[$0] == UInt8(ascii: "/") || bytes[$0] == UInt8(ascii: "?") } ?? rest.upperBound
        // RFC 9110 §4.2.1: an empty host is invalid. §4.2.4: user information is an error. Both fail this check.
        guard Authority.isValid(bytes, start..<end) else { throw .malformedTarget }
        authority = start..<end
        try splitPath(bytes, end..<target.upperBound)
    }
}

/// `uri-host [ ":" port ]` (RFC 9110 §4.2, §7.2; RFC 3986 §3.2), without user information.
enum Authority {
    /// True if `range` of `bytes` is a host that is not empty, optionally with a port of at most 65,535.
    static func isValid(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
        guard !range.isEmpty else { return false }
        var index = range.lowerBound
        if bytes[index] == UInt8(ascii: "[") {
            guard let end = range.first(where: { bytes[$0] == UInt8(ascii: "]") }),
                IPAddress.bytes(bytes, index + 1..<end)?.count == 16
            else { return false }
            index = end + 1
        } else {
            while index < range.upperBound, bytes[index] != UInt8(ascii: ":") {
                guard let next = afterNameByte(bytes, index, range.upperBound) else { return false }
                index = next
            }
            if index == range.lowerBound { return false }
        }
        if index == range.upperBound { return true }
        guard bytes[index] == UInt8(ascii: ":") else { return false }
        // RFC 3986 §3.2.3: the digits may be missing.
        let port = index + 1..<range.upperBound
        guard port.count <= 5 else { return false }
        var value = 0
        for index in port {
            guard let digit = ASCII.digit(bytes[index]) else { return false }
            value = value * 10 + digit
        }
        return value <= 65_535
    }

    /// The index after one byte or percent-encoding of a `reg-name`; nil if there is none. RFC 3986 allows a comma, but
    /// it indicates a list of hosts and is refused.
    private static func afterNameByte(_ bytes: Span<UInt8>, _ index: Int, _ end: Int) -> Int? {
        let byte = bytes[index]
        if byte == UInt8(ascii: "%") {
            guard let decoded = PercentEncoding.byte(bytes, at: index, before: end), decoded >= 0x20 else { return nil }
            return index + 3
        }
        return URIGrammar.isNameByte(byte) && byte != UInt8(ascii: ",") ? index + 1 : nil
    }
}

/// The bytes of request targets (RFC 3986, as used by RFC 9112 §3.2).
package enum URIGrammar {
    /// False for controls, space, `"`, `#`, `<`, `>`, `\`, `^`, a grave accent, `{`, `|`, `}` and bytes from 0x7F on. `%`,
    /// `[` and `]` are allowed at some positions only.
    @inlinable
    package static func isTargetByte(_ byte: UInt8) -> Bool {
        if byte < 64 { return low >> UInt64(byte) & 1 == 1 }
        return byte < 128 && high >> UInt64(byte - 64) & 1 == 1
    }

    /// The bits of `! $ % & ' ( ) * + , - . / 0-9 : ; = ?` among the bytes 0 … 63.
    @usableFromInline
    static let low: UInt64 = 0xAFFF_FFF2_0000_0000
    /// The bits of `@ A-Z [ ] _ a-z ~` among the bytes 64 … 127.
    @usableFromInline
    static let high: UInt64 = 0x47FF_FFFE_AFFF_FFFF

    /// True for `unreserved / sub-delims`, the bytes of a `reg-name` apart from percent-encodings.
    static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: ":"), UInt8(ascii: "@"), UInt8(ascii: "%"),
            UInt8(ascii: "["), UInt8(ascii: "]"):
            false
        default: isTargetByte(byte)
        }
    }
}
