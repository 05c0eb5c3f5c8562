internal import LLBytes

/// One field line of a head, as ranges of the bytes it was parsed from. The value excludes white space around it.
package struct HeadField: Sendable, Equatable {
    package let name: Range<Int>
    package let value: Range<Int>
}

/// Reads the field lines of a request's or response's head (RFC 9112 §5) from bytes that may arrive in any pieces.
///
/// Fields with an underscore in the name are checked and left out. Some gateways turn `-` into `_`, so such a name may
/// pose as another field.
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

    /// Prepares for a section.
    /// - Parameter start: The position from which its bytes are counted.
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
            guard try readName(bytes, &index, end, &isKept) else { return try needMore(end) }
            let name = position..<index - 1
            guard let valueEnd = try Self.endOfValue(bytes, max(index, checked), end) else {
                checked = end
                return try needMore(end)
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

    /// RFC 9110 §5.5: CR, LF, NUL and other control bytes in a value are refused.
    /// - Returns: The position of the CR; nil if it has not come.
    private static func endOfValue(_ bytes: Span<UInt8>, _ start: Int, _ end: Int) throws(HTTPRefusal) -> Int? {
        var index = FieldGrammar.skipPlainValue(bytes, start, end)
        while index < end, FieldGrammar.isValueByte(bytes[index]) { index += 1 }
        if index == end { return nil }
        // RFC 9112 §2.2: LF alone is not a line end here.
        guard bytes[index] == ASCII.carriageReturn else {
            throw bytes[index] == ASCII.lineFeed ? .malformedLineEnd : .malformedFieldValue
        }
        return index
    }

    /// The line continues at `end`, if it may.
    private func needMore(_ end: Int) throws(HTTPRefusal) -> Event {
        guard end < limit else { throw .headerSectionTooLarge }
        return .needMore
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

    /// Records one field. The length of the name is compared first, so most fields cost one comparison.
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
                let isKnown = bytes.equalIgnoringCase(element, "100-continue")
                expectsContinue = expectsContinue || isKnown
                expectsOther = expectsOther || !isKnown
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
        try judgeHost(bytes, into: &head)
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

    /// RFC 9112 §3.2: HTTP/1.1 without Host, with more than one, or with an invalid one is 400. An empty Host is
    /// refused too, because every resource of this server has an authority.
    private func judgeHost(_ bytes: Span<UInt8>, into head: inout RequestHead) throws(HTTPRefusal) {
        guard hosts == 1 else {
            if hosts == 0, head.minorVersion == 0 { return }
            throw .invalidHost
        }
        guard Authority.isValid(bytes, host) else { throw .invalidHost }
        // RFC 9112 §3.2.2: the authority of an absolute-form target replaces the Host field.
        if head.authority == nil { head.authority = host }
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
