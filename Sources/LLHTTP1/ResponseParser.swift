internal import LLBytes

/// Parses a response head from bytes that may arrive in any pieces. Interim responses (1xx) are skipped.
///
/// A client needs no speed here: the parser finds the end of the head first and then reads the head once. Its decisions
/// depend on the bytes alone.
package struct ResponseParser: Sendable {
    let headLimit: Int
    let fieldLimit: Int
    /// True if the request was CONNECT: a 2xx then has no body, and the tunnel follows (RFC 9112 §6.3).
    let answersConnect: Bool
    // The start of the current head, after any interim responses.
    private var start = 0
    // There is no end of an empty line before this position.
    private var searched = 0

    /// - Parameters:
    ///   - headLimit: Bytes of all heads together, including interim responses.
    ///   - fieldLimit: Field lines of one head.
    package init(headLimit: Int, fieldLimit: Int, answersConnect: Bool = false) {
        self.headLimit = headLimit
        self.fieldLimit = fieldLimit
        self.answersConnect = answersConnect
    }

    /// Reads all bytes of the response so far, from its first one on; at least as many as at the last call.
    /// - Returns: The head; nil if it needs more bytes.
    package mutating func parse(_ bytes: Span<UInt8>) throws(ResponseRefusal) -> ResponseHead? {
        while true {
            try checkPrefix(bytes)
            guard let end = try endOfHead(bytes) else { return nil }
            let head = try read(bytes, start..<end)
            // RFC 9110 §15.2: interim responses come before the final one. 101 is only allowed after a request for it.
            guard head.status < 200 else { return head }
            guard head.status != 101 else { throw .unexpectedUpgrade }
            start = end
            searched = end
        }
    }

    /// Refuses a peer that does not speak HTTP at its first bytes, before it has sent a whole head.
    private func checkPrefix(_ bytes: Span<UInt8>) throws(ResponseRefusal) {
        for (offset, expected) in "HTTP/".utf8.enumerated() where start + offset < bytes.count {
            guard bytes[start + offset] == expected else { throw .malformedStatusLine }
        }
    }

    /// The position after the empty line that ends the head; nil until it arrives.
    private mutating func endOfHead(_ bytes: Span<UInt8>) throws(ResponseRefusal) -> Int? {
        let limit = min(bytes.count, headLimit)
        var index = max(searched, start + 3)
        while index < limit {
            if bytes[index] == ASCII.lineFeed {
                // RFC 9112 §2.2: LF alone is not a line end here. `index` >= `start` + 3.
                guard bytes[index - 1] == ASCII.carriageReturn else { throw .malformedLineEnd }
                if bytes[index - 2] == ASCII.lineFeed, bytes[index - 3] == ASCII.carriageReturn { return index + 1 }
            }
            index += 1
        }
        searched = index
        if bytes.count >= headLimit { throw .headTooLarge }
        return nil
    }
}

extension ResponseParser {
    /// Reads one head, which ends with CRLF CRLF.
    func read(_ bytes: Span<UInt8>, _ range: Range<Int>) throws(ResponseRefusal) -> ResponseHead {
        var head = ResponseHead()
        head.byteCount = range.upperBound
        var position = range.lowerBound
        try readStatusLine(bytes, takeLine(bytes, &position, range.upperBound), into: &head)
        while true {
            let line = try takeLine(bytes, &position, range.upperBound)
            if line.isEmpty { break }
            guard head.fields.count < fieldLimit else { throw .tooManyFields }
            head.fields.append(try field(bytes, line))
        }
        head.framing = try framing(bytes, head)
        return head
    }

    /// The next line without its CRLF. Every CR must have its LF (RFC 9112 §2.2).
    private func takeLine(
        _ bytes: Span<UInt8>,
        _ position: inout Int,
        _ end: Int
    ) throws(ResponseRefusal) -> Range<Int> {
        let start = position
        guard let lineEnd = (start..<end).first(where: { bytes[$0] == ASCII.carriageReturn }), lineEnd + 1 < end,
            bytes[lineEnd + 1] == ASCII.lineFeed
        else { throw .malformedLineEnd }
        position = lineEnd + 2
        return start..<lineEnd
    }

    /// RFC 9112 §4: `HTTP/1.x SP 3DIGIT SP reason`. The space before an empty reason may be missing, because many
    /// servers leave it out.
    private func readStatusLine(
        _ bytes: Span<UInt8>,
        _ line: Range<Int>,
        into head: inout ResponseHead
    ) throws(ResponseRefusal) {
        let start = line.lowerBound
        guard line.count >= 12, bytes.equal(start..<(start + 5), "HTTP/"), bytes[start + 6] == UInt8(ascii: "."),
            let major = ASCII.digit(bytes[start + 5]), let minor = ASCII.digit(bytes[start + 7]),
            bytes[start + 8] == ASCII.space,
            let hundreds = ASCII.digit(bytes[start + 9]), let tens = ASCII.digit(bytes[start + 10]),
            let ones = ASCII.digit(bytes[start + 11]),
            // RFC 9110 §15: the first digit is 1 … 5.
            (1...5).contains(hundreds)
        else { throw .malformedStatusLine }
        guard major == 1 else { throw .unsupportedVersion }
        if line.count > 12 {
            guard bytes[start + 12] == ASCII.space else { throw .malformedStatusLine }
            let reason = bytes.extracting(start + 13..<line.upperBound)
            guard FieldGrammar.isValue(reason) else { throw .malformedStatusLine }
        }
        head.minorVersion = minor == 0 ? 0 : 1
        head.status = hundreds * 100 + tens * 10 + ones
    }

    /// RFC 9112 §5: a name, a colon, and a value with optional white space around it. Folds are refused (§5.2).
    private func field(_ bytes: Span<UInt8>, _ line: Range<Int>) throws(ResponseRefusal) -> ResponseHead.Field {
        guard let colon = line.first(where: { !FieldGrammar.isTokenByte(bytes[$0]) }), colon > line.lowerBound,
            bytes[colon] == UInt8(ascii: ":")
        else { throw .malformedFieldLine }
        let start = ListElements.skipWhitespace(bytes, colon + 1, line.upperBound)
        let end = ListElements.dropWhitespace(bytes, start, line.upperBound)
        guard FieldGrammar.isValue(bytes.extracting(start..<end)) else { throw .malformedFieldValue }
        return ResponseHead.Field(name: line.lowerBound..<colon, value: start..<end)
    }

    /// RFC 9112 §6.3: at most one declaration of the body's length.
    private func framing(_ bytes: Span<UInt8>, _ head: ResponseHead) throws(ResponseRefusal) -> ResponseHead.Framing {
        var lengths = 0
        var length = 0
        var codings = 0
        var coding = TransferCoding.chunked
        for field in head.fields {
            if bytes.equalIgnoringCase(field.name, "content-length") {
                guard let value = DecimalNumber.parse(bytes, field.value) else { throw .invalidContentLength }
                lengths += 1
                length = value
            } else if bytes.equalIgnoringCase(field.name, "transfer-encoding") {
                codings += 1
                coding = TransferCoding(bytes, field.value)
            }
        }
        // §6.3: 1xx, 204 and 304 have no body, whatever their fields say. A 2xx to CONNECT has none either.
        if head.status < 200 || head.status == 204 || head.status == 304 { return .length(0) }
        if answersConnect, head.status < 300 { return .length(0) }
        if codings > 0 {
            guard lengths == 0 else { throw .conflictingFraming }
            // The request offered only chunked (no TE field), and HTTP/1.0 has no transfer codings.
            guard codings == 1, coding == .chunked, head.minorVersion == 1 else { throw .invalidTransferEncoding }
            return .chunked
        }
        guard lengths <= 1 else { throw .invalidContentLength }
        return lengths == 1 ? .length(length) : .untilClose
    }
}

/// The head of a response as ranges of the bytes it was parsed from.
package struct ResponseHead: Sendable, Equatable {
    package struct Field: Sendable, Equatable {
        package let name: Range<Int>
        package let value: Range<Int>
    }

    /// The way in which the body ends (RFC 9112 §6.3).
    package enum Framing: Sendable, Equatable {
        /// The body has this many bytes; 0 means no body.
        case length(Int)
        case chunked
        /// The body ends with the connection.
        case untilClose
    }

    /// The status, 200 … 599. Interim responses are skipped.
    package internal(set) var status = 0
    package internal(set) var minorVersion = 1
    package internal(set) var fields: [Field] = []
    package internal(set) var framing = Framing.untilClose
    /// The start of the body: the length of the head and of the interim responses before it, in bytes.
    package internal(set) var byteCount = 0
}

/// Why the grammar refuses a response. Each reason has one sentence, which quotes nothing from the peer.
package enum ResponseRefusal: String, Error {
    case malformedStatusLine = "the status line is malformed"
    case unsupportedVersion = "the HTTP version is not supported"
    case malformedFieldLine = "a field line is malformed"
    case malformedFieldValue = "a field value holds a byte that is not allowed"
    case malformedLineEnd = "a line does not end in CRLF"
    case headTooLarge = "the head is too large"
    case tooManyFields = "there are too many fields"
    case invalidContentLength = "the Content-Length field is invalid"
    case invalidTransferEncoding = "the Transfer-Encoding field is invalid"
    case conflictingFraming = "there are both Content-Length and Transfer-Encoding"
    case unexpectedUpgrade = "it switches protocols unasked"
}
