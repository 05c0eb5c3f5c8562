internal import LLBytes

/// The bytes of field names and values (RFC 9110 §5.1, §5.5, §5.6.2).
package enum FieldGrammar {
    /// True for `tchar`, the bytes of a token.
    package static func isTokenByte(_ byte: UInt8) -> Bool {
        // One bit for each of the 128 ASCII bytes.
        if byte < 64 { return tokenLow >> UInt64(byte) & 1 == 1 }
        return byte < 128 && tokenHigh >> UInt64(byte - 64) & 1 == 1
    }

    /// True for the bytes that a field value may hold: visible ASCII, space, tab and bytes from 0x80 on (`obs-text`).
    package static func isValueByte(_ byte: UInt8) -> Bool {
        byte >= 0x20 && byte != 0x7F || byte == 0x09
    }

    /// True if a byte may stand at this offset of a version: `HTTP/`, a digit, a dot, a digit (RFC 9112 §2.3).
    static func isVersionByte(_ byte: UInt8, at offset: Int) -> Bool {
        offset == 5 || offset == 7
            ? ASCII.digit(byte) != nil : byte == ("HTTP/ ." as StaticString).byte(at: offset)
    }

    static func isValue(_ value: Span<UInt8>) -> Bool { endOfValue(value, 0, value.count) == value.count }

    /// The first offset from `offset` to `end` with a byte that no value may hold; `end` if there is none.
    @inline(__always)
    static func endOfValue(_ bytes: Span<UInt8>, _ offset: Int, _ end: Int) -> Int {
        let (low, delete) = (SIMD16<UInt8>(repeating: 0x20), SIMD16<UInt8>(repeating: 0x7F))
        var offset = bytes.extracting(0..<end).skipUnmarked(from: offset) { (($0 .< low) .| ($0 .== delete)).words }
        while offset < end, isValueByte(bytes[offset]) { offset += 1 }
        return offset
    }

    /// The bits of `! # $ % & ' * + - . 0-9` among the bytes 0 … 63.
    private static let tokenLow: UInt64 = 0x03FF_6CFA_0000_0000
    /// The bits of `A-Z ^ _ ` a-z | ~` among the bytes 64 … 127.
    private static let tokenHigh: UInt64 = 0x57FF_FFFF_C7FF_FFFE
}

/// A configured field name: a token.
package struct FieldName: Sendable, Equatable {
    package let bytes: [UInt8]

    package init?(_ name: String) {
        bytes = Array(name.utf8)
        guard !bytes.isEmpty, bytes.allSatisfy(FieldGrammar.isTokenByte) else { return nil }
    }
}

/// The elements of a comma-separated list (RFC 9110 §5.6.1); empty ones are skipped, as §5.6.1.2 requires.
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

    /// The range without white space around it.
    package static func trimmed(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Range<Int> {
        var (start, end) = (range.lowerBound, range.upperBound)
        while start < end, bytes[start] == ASCII.space || bytes[start] == ASCII.tab { start += 1 }
        while start < end, bytes[end - 1] == ASCII.space || bytes[end - 1] == ASCII.tab { end -= 1 }
        return start..<end
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

/// One field line of a head, as ranges of the bytes it was parsed from. The value excludes white space around it.
package struct HeadField: Sendable, Equatable {
    package let name: Range<Int>
    package let value: Range<Int>
}

/// Reads the field lines of a head (RFC 9112 §5) from bytes that may arrive in any pieces. Fields with an underscore in the
/// name are checked and left out: some gateways turn `-` into `_`, so such a name may pose as another field.
struct FieldLines: Sendable {
    enum Event {
        case field(HeadField)
        /// The next line is incomplete. Its name is read again, and its value from the place that is checked.
        case needMore
        /// The empty line has come.
        case end
    }

    /// The longest field name, in bytes: 1,024, since an incomplete one is read again with each piece. A longer one is 431.
    private static let nameByteLimit = 1_024

    private let countLimit: Int
    private let byteLimit: Int
    private var count = 0
    /// No byte of the section is at or behind this position.
    private var limit = 0
    /// The value of an incomplete line is checked up to here.
    private var checked = 0

    init(countLimit: Int, byteLimit: Int) {
        self.countLimit = countLimit
        self.byteLimit = byteLimit
    }

    /// Prepares for a section, whose bytes are counted from `start` on.
    mutating func begin(countingFrom start: Int) {
        (count, checked) = (0, 0)
        limit = start + byteLimit
    }

    /// Reads the lines from `position` on, which the call moves behind each complete one, to the next event.
    mutating func next(_ bytes: Span<UInt8>, from position: inout Int) throws(HTTPRefusal) -> Event {
        while position < bytes.count {
            if bytes[position] == ASCII.carriageReturn {
                guard position < limit else { throw .headerSectionTooLarge }
                return try Self.endLine(bytes, position, &position) ? .end : .needMore
            }
            // RFC 9110 §5.4: a section with too many fields is refused; RFC 6585 §5: with 431.
            guard count < countLimit else { throw .tooManyFields }
            let end = min(bytes.count, limit)
            var (index, isKept) = (position, true)
            var valueEnd = end
            if try readName(bytes, &index, end, &isKept) {
                valueEnd = FieldGrammar.endOfValue(bytes, max(index, checked), end)
            }
            if valueEnd == end {
                checked = end
                // The line continues at `end`, if it may.
                guard end < limit else { throw .headerSectionTooLarge }
                return .needMore
            }
            let name = position..<index - 1
            // RFC 9110 §5.5: CR, LF, NUL and other control bytes in a value are refused. RFC 9112 §2.2: LF alone is not a
            // line end here.
            guard bytes[valueEnd] == ASCII.carriageReturn else {
                throw bytes[valueEnd] == ASCII.lineFeed ? .malformedLineEnd : .malformedFieldValue
            }
            guard try Self.endLine(bytes, valueEnd, &position) else { return .needMore }
            count += 1
            // RFC 9112 §5.1: optional white space around a value is not part of it.
            if isKept { return .field(HeadField(name: name, value: ListElements.trimmed(bytes, index..<valueEnd))) }
        }
        return .needMore
    }

    /// RFC 9112 §2.2: a CR without its LF is invalid, and never read as a space.
    /// - Returns: False if the LF has not come; else `position` is moved behind it.
    static func endLine(_ bytes: Span<UInt8>, _ end: Int, _ position: inout Int) throws(HTTPRefusal) -> Bool {
        guard end + 1 < bytes.count else { return false }
        guard bytes[end + 1] == ASCII.lineFeed else { throw .malformedLineEnd }
        position = end + 2
        return true
    }

    /// RFC 9110 §5.1: a field name is a token. RFC 9112 §5.1: there is no white space between it and the colon. §5.2
    /// and §2.2: a line that begins with white space is an obsolete fold, or comes before the first field.
    /// - Returns: False if the colon has not come; else `index` is behind it.
    private func readName(
        _ bytes: Span<UInt8>,
        _ index: inout Int,
        _ end: Int,
        _ isKept: inout Bool
    ) throws(HTTPRefusal) -> Bool {
        let (start, limit) = (index, index + Self.nameByteLimit)
        while index < min(end, limit) {
            let byte = bytes[index]
            index += 1
            // Nearly every name has letters and hyphens alone.
            if (byte | 0x20) &- UInt8(ascii: "a") < 26 || byte == UInt8(ascii: "-") { continue }
            if byte == UInt8(ascii: ":"), index > start + 1 { return true }
            guard FieldGrammar.isTokenByte(byte) else { throw .malformedFieldLine }
            if byte == UInt8(ascii: "_") { isKept = false }
        }
        guard index < limit else { throw .headerSectionTooLarge }
        return false
    }
}

/// The way in which a body ends (RFC 9112 §6.3).
package enum BodyFraming: Sendable, Equatable {
    /// The body has this many bytes; 0 means no body.
    case length(Int)
    case chunked
    /// Nothing declares a length: a response's body ends with the connection, and a request has none.
    case undeclared
}

/// The facts from the fields that frame a message or name its host.
struct Framing {
    private var hosts = 0
    private var host = 0..<0
    private var contentLengths = 0
    private var contentLength = 0
    private var transferEncodings = 0
    private var isChunked = false
    private var endsInChunked = false
    private var chunkedCount = 0
    private var closes = false
    private var keepsAlive = false
    private var expectsContinue = false
    private var expectsOther = false
    private var contentTypes = 0

    /// Records one field. Most cost one comparison, of the name's length.
    mutating func receive(_ bytes: Span<UInt8>, _ field: HeadField) throws(HTTPRefusal) {
        let (name, value) = (field.name, field.value)
        switch name.count {
        case 4 where bytes.equalIgnoringCase(name, "host"):
            hosts += 1
            host = value
        case 6 where bytes.equalIgnoringCase(name, "expect"):
            // RFC 9110 §10.1.1: 100-continue is the only defined expectation; case does not matter.
            var list = ListElements(value)
            while let element = list.next(bytes) {
                if bytes.equalIgnoringCase(element, "100-continue") {
                    expectsContinue = true
                } else {
                    expectsOther = true
                }
            }
        case 10 where bytes.equalIgnoringCase(name, "connection"):
            // RFC 9110 §7.6.1: a list of options; case does not matter.
            var list = ListElements(value)
            while let element = list.next(bytes) {
                if bytes.equalIgnoringCase(element, "close") { closes = true }
                if bytes.equalIgnoringCase(element, "keep-alive") { keepsAlive = true }
            }
        case 12 where bytes.equalIgnoringCase(name, "content-type"):
            contentTypes += 1
        case 14 where bytes.equalIgnoringCase(name, "content-length"):
            contentLengths += 1
            guard let length = DecimalNumber.parse(bytes, value) else { throw .invalidContentLength }
            contentLength = length
        case 17 where bytes.equalIgnoringCase(name, "transfer-encoding"):
            transferEncodings += 1
            isChunked = bytes.equalIgnoringCase(value, "chunked")
            var list = ListElements(value)
            while let coding = list.next(bytes) {
                endsInChunked = bytes.equalIgnoringCase(coding, "chunked")
                chunkedCount += endsInChunked ? 1 : 0
            }
        default: break
        }
    }

    /// Checks the whole section of a request and completes its head.
    func judge(_ bytes: Span<UInt8>, into head: inout RequestHead) throws(HTTPRefusal) {
        // RFC 9112 §3.2: HTTP/1.1 without Host, with more than one, or with an invalid one is 400. An empty Host is
        // refused too, because every resource of this server has an authority.
        if hosts > 0 || head.minorVersion > 0 {
            guard hosts == 1 else { throw .invalidHost }
            guard Authority.isValid(bytes, host) else { throw .invalidHost }
            // RFC 9112 §3.2.2: the authority of an absolute-form target replaces the Host field.
            if head.authority == nil { head.authority = host }
        }
        switch try length(minorVersion: head.minorVersion) {
        case .undeclared: break
        case .length(let count): head.contentLength = count
        case .chunked: head.isChunked = true
        }
        // Two readers could take two Content-Type fields for two different media types.
        guard contentTypes <= 1 else { throw .duplicateField }
        // RFC 9112 §9.3: `close` wins; HTTP/1.0 persists only if the client asks for it.
        head.keepAlive = !closes && (head.minorVersion == 1 || keepsAlive)
        // RFC 9110 §10.1.1: an expectation in HTTP/1.0 is ignored; an unknown one is 417.
        if head.minorVersion == 1 {
            guard !expectsOther else { throw .expectationFailed }
            head.expectsContinue = expectsContinue
        }
    }

    /// RFC 9112 §6.1 and §6.3: at most one valid declaration of the length; everything else closes the connection.
    func length(minorVersion: UInt8) throws(HTTPRefusal) -> BodyFraming {
        if transferEncodings > 0 {
            // RFC 9112 §6.1: HTTP/1.0 with Transfer-Encoding has faulty framing.
            guard minorVersion == 1 else { throw .invalidTransferEncoding }
            // RFC 9112 §6.1: a message with both may be an attack on a server in front of this one.
            guard contentLengths == 0 else { throw .conflictingFraming }
            guard transferEncodings == 1 else { throw .invalidTransferEncoding }
            if isChunked { return .chunked }
            // RFC 9112 §6.1: an unknown coding is 501, and chunked is applied once. §6.3: a request has no length if its last
            // coding is not chunked: 400.
            throw endsInChunked && chunkedCount == 1 ? .unsupportedTransferCoding : .invalidTransferEncoding
        }
        // RFC 9112 §6.3 allows equal values to be merged. Two are refused here, because no peer needs them.
        guard contentLengths <= 1 else { throw .invalidContentLength }
        return contentLengths == 1 ? .length(contentLength) : .undeclared
    }
}
