internal import LLBytes

/// One field line of a head, as ranges of the bytes it was parsed from. The value excludes white space around it.
package struct HeadField: Sendable, Equatable {
    private let nameStart: UInt32
    private let nameEnd: UInt32
    private let valueStart: UInt32
    private let valueEnd: UInt32

    init(name: Range<Int>, value: Range<Int>) {
        nameStart = UInt32(truncatingIfNeeded: name.lowerBound)
        nameEnd = UInt32(truncatingIfNeeded: name.upperBound)
        valueStart = UInt32(truncatingIfNeeded: value.lowerBound)
        valueEnd = UInt32(truncatingIfNeeded: value.upperBound)
    }

    package var name: Range<Int> { Int(nameStart)..<Int(nameEnd) }
    package var value: Range<Int> { Int(valueStart)..<Int(valueEnd) }
}

/// Reads the field lines of a request's or response's head (RFC 9112 §5) from bytes that may arrive in any pieces.
///
/// Fields with an underscore in the name are checked and left out. Some gateways turn `-` into `_`, so such a name may
/// pose as another field.
struct FieldLines: Sendable {
    enum Event {
        case field(HeadField)
        /// All bytes are used up, and the head continues.
        case needMore
        /// The empty line has come.
        case end
    }

    private enum State { case start, name, valueStart, value, lineFeed, endLineFeed }

    private let countLimit: Int
    private let byteLimit: Int
    private var state = State.start
    private var count = 0
    /// No byte of the section is at or behind this position.
    private var limit = 0
    private var tokenStart = 0
    private var name = 0..<0
    private var nameHasUnderscore = false

    init(countLimit: Int, byteLimit: Int) {
        self.countLimit = countLimit
        self.byteLimit = byteLimit
    }

    /// Prepares for a section.
    /// - Parameter start: The position from which its bytes are counted.
    mutating func begin(countingFrom start: Int) {
        state = .start
        count = 0
        limit = start + byteLimit
    }

    /// Continues from `position`, which the call moves, to the next event.
    mutating func next(_ bytes: Span<UInt8>, from position: inout Int) throws(HTTPRefusal) -> Event {
        while position < bytes.count {
            switch state {
            case .start: try startLine(bytes, &position)
            case .name: try readName(bytes, &position)
            case .valueStart:
                // RFC 9112 §5.1: optional white space around a value is not part of it.
                position = ListElements.skipWhitespace(bytes, position, min(bytes.count, limit))
                try checkSize(position)
                tokenStart = position
                if position < bytes.count { state = .value }
            case .value: if let value = try readValue(bytes, &position) { return .field(value) }
            case .lineFeed:
                try Self.expectLineFeed(bytes, &position)
                state = .start
            case .endLineFeed:
                try Self.expectLineFeed(bytes, &position)
                return .end
            }
        }
        return .needMore
    }

    /// RFC 9112 §2.2: a CR without its LF is invalid, and never read as a space.
    static func expectLineFeed(_ bytes: Span<UInt8>, _ position: inout Int) throws(HTTPRefusal) {
        guard bytes[position] == ASCII.lineFeed else { throw .malformedLineEnd }
        position += 1
    }

    /// Looks at the first byte of a field line, or reads that of the empty line.
    private mutating func startLine(_ bytes: Span<UInt8>, _ position: inout Int) throws(HTTPRefusal) {
        if bytes[position] == ASCII.carriageReturn {
            try checkSize(position)
            position += 1
            state = .endLineFeed
            return
        }
        // RFC 9110 §5.4: a section with too many fields is refused; RFC 6585 §5: with 431.
        guard count < countLimit else { throw .tooManyFields }
        // RFC 9112 §5.2 and §2.2: a line that begins with white space is an obsolete fold, or comes before the first
        // field. Both are refused, and so is any other byte outside a token.
        guard FieldGrammar.isTokenByte(bytes[position]) else { throw .malformedFieldLine }
        count += 1
        tokenStart = position
        nameHasUnderscore = false
        state = .name
    }

    /// RFC 9110 §5.1: a field name is a token. RFC 9112 §5.1: there is no white space between it and the colon.
    private mutating func readName(_ bytes: Span<UInt8>, _ position: inout Int) throws(HTTPRefusal) {
        let end = min(bytes.count, limit)
        while position < end {
            let byte = bytes[position]
            position += 1
            // Nearly every name has letters and hyphens alone.
            if (byte | 0x20) &- UInt8(ascii: "a") < 26 || byte == UInt8(ascii: "-") { continue }
            if byte == UInt8(ascii: ":") {
                name = tokenStart..<position - 1
                state = .valueStart
                return
            }
            guard FieldGrammar.isTokenByte(byte) else { throw .malformedFieldLine }
            if byte == UInt8(ascii: "_") { nameHasUnderscore = true }
        }
        try checkSize(position)
    }

    /// RFC 9110 §5.5: CR, LF, NUL and other control bytes in a value are refused.
    /// - Returns: The field; nil if its value continues, or if it is left out.
    private mutating func readValue(_ bytes: Span<UInt8>, _ position: inout Int) throws(HTTPRefusal) -> HeadField? {
        let end = min(bytes.count, limit)
        position = FieldGrammar.skipPlainValue(bytes, position, end)
        while position < end {
            let byte = bytes[position]
            if !FieldGrammar.isValueByte(byte) {
                // RFC 9112 §2.2: LF alone is not a line end here.
                guard byte == ASCII.carriageReturn else {
                    throw byte == ASCII.lineFeed ? .malformedLineEnd : .malformedFieldValue
                }
                state = .lineFeed
                let value = tokenStart..<ListElements.dropWhitespace(bytes, tokenStart, position)
                position += 1
                return nameHasUnderscore ? nil : HeadField(name: name, value: value)
            }
            position += 1
        }
        try checkSize(position)
        return nil
    }

    private func checkSize(_ position: Int) throws(HTTPRefusal) {
        if position >= limit { throw .headerSectionTooLarge }
    }
}

/// The facts from the fields that frame a message or name its host.
struct Framing {
    enum Length { case undeclared, bytes(Int), chunked }

    private var hosts = 0
    private var host = 0..<0
    private var contentLengths = 0
    private var contentLength = 0
    private var transferEncodings = 0
    private var coding = TransferCoding.chunked
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
            coding = TransferCoding(bytes, value)
        default: break
        }
    }

    /// Checks the whole section of a request and completes its head.
    func judge(_ bytes: Span<UInt8>, into head: inout RequestHead) throws(HTTPRefusal) {
        try judgeHost(bytes, into: &head)
        switch try length(minorVersion: head.minorVersion) {
        case .undeclared: break
        case .bytes(let count): head.contentLength = count
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
    func length(minorVersion: UInt8) throws(HTTPRefusal) -> Length {
        if transferEncodings > 0 {
            // RFC 9112 §6.1: HTTP/1.0 with Transfer-Encoding has faulty framing.
            guard minorVersion == 1 else { throw .invalidTransferEncoding }
            // RFC 9112 §6.1: a message with both may be an attack on a server in front of this one.
            guard contentLengths == 0 else { throw .conflictingFraming }
            guard transferEncodings == 1 else { throw .invalidTransferEncoding }
            switch coding {
            case .chunked: return .chunked
            // RFC 9112 §6.1: an unknown coding is 501.
            case .chunkedAfterOthers: throw .unsupportedTransferCoding
            // RFC 9112 §6.3: a request has no length if its last coding is not chunked: 400.
            case .invalid: throw .invalidTransferEncoding
            }
        }
        // RFC 9112 §6.3 allows equal values to be merged. Two are refused here, because no peer needs them.
        guard contentLengths <= 1 else { throw .invalidContentLength }
        return contentLengths == 1 ? .bytes(contentLength) : .undeclared
    }
}

/// The value of one Transfer-Encoding field (RFC 9112 §6.1), as needed by a reader that removes one coding.
enum TransferCoding {
    /// Exactly `chunked` in any case.
    case chunked
    /// Other codings, each a token, then chunked once at the end.
    case chunkedAfterOthers
    /// Anything else: chunked is missing, not last or repeated, or an element is empty or not a token.
    case invalid

    /// Reads the value in `range` of `bytes`. Empty list elements are not allowed here: two readers could derive two
    /// lengths from such a list.
    init(_ bytes: Span<UInt8>, _ range: Range<Int>) {
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
            // Each element must be a token, and no coding may follow chunked.
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
