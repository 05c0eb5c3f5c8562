internal import LLBytes

/// Parses one request head from bytes that may arrive in any pieces.
///
/// The parser keeps its position, so each byte is read once, however the bytes are split. Its decisions depend on the
/// bytes alone: a request refused in one piece is refused, for the same reason, in any other pieces. Octets are parsed
/// as octets, never as text (RFC 9112 §2.2).
package struct RequestParser: ~Copyable {
    package enum Outcome: Equatable, Sendable {
        /// The head is complete: ``RequestParser/head`` describes it.
        case complete
        /// The bytes so far may become a request.
        case needMore
        /// They cannot become an acceptable request.
        case reject(RequestRefusal)
    }

    enum State {
        case start, startLineFeed
        case method, target, version, requestLineFeed
        case fieldStart, fieldName, valueStart, value, valueLineFeed, endLineFeed
        case complete
    }

    /// The head, complete after ``Outcome/complete``.
    package var head = RequestHead()
    package let limits: HTTPLimits

    var state = State.start
    /// The next byte to read.
    var position = 0
    var emptyLines = 0
    var lineStart = 0
    var sectionStart = 0
    var tokenStart = 0
    var target = 0..<0
    var targetNeedsCheck = false
    var fieldLines = 0
    var name = 0..<0
    var nameHasUnderscore = false
    var framing = Framing()

    package init(limits: HTTPLimits) {
        self.limits = limits
    }

    /// True after the first byte of the request line; empty lines before it do not count.
    package var hasBegun: Bool { state != .start && state != .startLineFeed }

    /// Prepares for the next request and keeps the storage.
    package mutating func reset() {
        head.reset()
        state = .start
        position = 0
        emptyLines = 0
        targetNeedsCheck = false
        fieldLines = 0
        framing = Framing()
    }

    /// Changes the complete head into a request without a body, after which the connection must close.
    package mutating func dropBody() {
        head.contentLength = nil
        head.isChunked = false
        head.keepAlive = false
    }

    /// Parses the bytes that arrived since the last call.
    /// - Parameter bytes: All bytes of the request from its first one on; at least as many as at the last call.
    package mutating func parse(_ bytes: Span<UInt8>) -> Outcome {
        do throws(RequestRefusal) {
            while position < bytes.count {
                switch state {
                case .start: try parseStart(bytes)
                case .startLineFeed: try expectLineFeed(bytes, then: .start)
                case .method: try parseMethod(bytes)
                case .target: try parseTarget(bytes)
                case .version: try parseVersion(bytes)
                case .requestLineFeed: try endRequestLine(bytes)
                case .fieldStart: try startField(bytes)
                case .fieldName: try parseFieldName(bytes)
                case .valueStart: try skipWhitespace(bytes)
                case .value: try parseFieldValue(bytes)
                case .valueLineFeed: try expectLineFeed(bytes, then: .fieldStart)
                case .endLineFeed:
                    try expectLineFeed(bytes, then: .complete)
                    // RFC 9110 §5.3: the whole header section must be read before any decision.
                    try framing.judge(bytes, into: &head)
                    head.byteCount = position
                case .complete: return .complete
                }
            }
            return state == .complete ? .complete : .needMore
        } catch {
            return .reject(error)
        }
    }

    /// RFC 9112 §2.2: a bounded number of empty lines before the request line is ignored.
    private mutating func parseStart(_ bytes: Span<UInt8>) throws(RequestRefusal) {
        if bytes[position] == ASCII.carriageReturn {
            guard emptyLines < limits.leadingEmptyLines else { throw .malformedRequestLine }
            emptyLines += 1
            position += 1
            state = .startLineFeed
            return
        }
        lineStart = position
        tokenStart = position
        state = .method
    }

    /// RFC 9112 §2.2: a CR without its LF is invalid here, and never read as a space.
    mutating func expectLineFeed(_ bytes: Span<UInt8>, then next: State) throws(RequestRefusal) {
        guard bytes[position] == ASCII.lineFeed else { throw .malformedLineEnd }
        position += 1
        state = next
    }
}

extension RequestParser {
    /// RFC 9112 §3.1: the method is a token, followed by exactly one space.
    mutating func parseMethod(_ bytes: Span<UInt8>) throws(RequestRefusal) {
        let end = min(bytes.count, lineStart + limits.requestLineBytes)
        while position < end {
            let byte = bytes[position]
            if byte == ASCII.space {
                guard position > tokenStart else { throw .malformedRequestLine }
                head.method = HTTPMethod(bytes, tokenStart..<position)
                position += 1
                tokenStart = position
                state = .target
                return
            }
            guard FieldGrammar.isTokenByte(byte) else { throw .malformedRequestLine }
            position += 1
        }
        try checkRequestLineLength()
    }

    /// RFC 9112 §3.2: the target has no white space and no byte outside the grammar of URIs. An invalid target is
    /// refused with 400, not repaired.
    mutating func parseTarget(_ bytes: Span<UInt8>) throws(RequestRefusal) {
        let end = min(bytes.count, lineStart + limits.requestLineBytes)
        while position < end {
            let byte = bytes[position]
            if byte == ASCII.space {
                guard position > tokenStart else { throw .malformedTarget }
                target = tokenStart..<position
                position += 1
                tokenStart = position
                state = .version
                return
            }
            switch URIGrammar.kind(byte) {
            case .plain: break
            case .needsCheck: targetNeedsCheck = true
            case .forbidden: throw .malformedTarget
            }
            position += 1
        }
        try checkRequestLineLength()
    }

    /// RFC 9112 §2.3: `HTTP/` digit `.` digit, in upper case, directly followed by the line end.
    mutating func parseVersion(_ bytes: Span<UInt8>) throws(RequestRefusal) {
        while position < bytes.count {
            let byte = bytes[position]
            let offset = position - tokenStart
            let isRight =
                switch offset {
                case 0: byte == UInt8(ascii: "H")
                case 1, 2: byte == UInt8(ascii: "T")
                case 3: byte == UInt8(ascii: "P")
                case 4: byte == UInt8(ascii: "/")
                case 6: byte == UInt8(ascii: ".")
                case 5, 7: ASCII.digit(byte) != nil
                default: byte == ASCII.carriageReturn
                }
            guard isRight else { throw .malformedRequestLine }
            if offset == 8 {
                guard position - lineStart <= limits.requestLineBytes else { throw .targetTooLong }
                position += 1
                state = .requestLineFeed
                return
            }
            position += 1
        }
    }

    /// Checks the version and the form of the target at the end of the request line.
    mutating func endRequestLine(_ bytes: Span<UInt8>) throws(RequestRefusal) {
        try expectLineFeed(bytes, then: .fieldStart)
        // RFC 9110 §15.6.6: a request of another major version is 505. The version has the form `HTTP/1.1`.
        guard bytes[tokenStart + 5] == UInt8(ascii: "1") else { throw .unsupportedVersion }
        // RFC 9110 §2.5: a higher minor version is handled as the highest that this server knows.
        head.minorVersion = bytes[tokenStart + 7] == UInt8(ascii: "0") ? 0 : 1
        try RequestTarget.split(bytes, target, needsCheck: targetNeedsCheck, into: &head)
        sectionStart = position
    }

    /// RFC 9112 §3: a request line longer than the server is willing to parse is 414.
    private func checkRequestLineLength() throws(RequestRefusal) {
        if position - lineStart >= limits.requestLineBytes { throw .targetTooLong }
    }
}

extension RequestParser {
    /// Reads the first byte of a field line, or of the empty line that ends the section.
    mutating func startField(_ bytes: Span<UInt8>) throws(RequestRefusal) {
        if bytes[position] == ASCII.carriageReturn {
            try checkSectionSize()
            position += 1
            state = .endLineFeed
            return
        }
        // RFC 9110 §5.4: a section with too many fields is refused; RFC 6585 §5: with 431.
        guard fieldLines < limits.fieldCount else { throw .tooManyFields }
        // RFC 9112 §5.2 and §2.2: a line that begins with white space is an obsolete fold, or comes before the first
        // field. Both are refused, and so is any other byte outside a token.
        guard FieldGrammar.isTokenByte(bytes[position]) else { throw .malformedFieldLine }
        fieldLines += 1
        tokenStart = position
        nameHasUnderscore = false
        state = .fieldName
    }

    /// RFC 9110 §5.1: a field name is a token. RFC 9112 §5.1: there is no white space between it and the colon.
    mutating func parseFieldName(_ bytes: Span<UInt8>) throws(RequestRefusal) {
        let end = sectionEnd(bytes)
        while end - position >= 16 {
            let count = bytes.vector16(at: position).marksBeyondPlainNames.unmarkedCount
            position += count
            if count < 16 { break }
        }
        while position < end {
            let byte = bytes[position]
            if byte == UInt8(ascii: ":") {
                name = tokenStart..<position
                position += 1
                state = .valueStart
                return
            }
            guard FieldGrammar.isTokenByte(byte) else { throw .malformedFieldLine }
            if byte == UInt8(ascii: "_") { nameHasUnderscore = true }
            position += 1
        }
        try checkSectionSize()
    }

    /// RFC 9112 §5.1: optional white space around a value is not part of it.
    mutating func skipWhitespace(_ bytes: Span<UInt8>) throws(RequestRefusal) {
        let end = sectionEnd(bytes)
        while position < end {
            let byte = bytes[position]
            if byte != ASCII.space, byte != ASCII.tab {
                tokenStart = position
                state = .value
                return
            }
            position += 1
        }
        try checkSectionSize()
    }

    /// RFC 9110 §5.5: CR, LF, NUL and other control bytes in a value are refused.
    mutating func parseFieldValue(_ bytes: Span<UInt8>) throws(RequestRefusal) {
        let end = sectionEnd(bytes)
        position = FieldGrammar.skipPlainValue(bytes, position, end)
        while position < end {
            let byte = bytes[position]
            if !FieldGrammar.isValueByte(byte) {
                // RFC 9112 §2.2: LF alone is not a line end here.
                guard byte == ASCII.carriageReturn else {
                    throw byte == ASCII.lineFeed ? .malformedLineEnd : .malformedFieldValue
                }
                try add(bytes, name, tokenStart..<ListElements.dropWhitespace(bytes, tokenStart, position))
                position += 1
                state = .valueLineFeed
                return
            }
            position += 1
        }
        try checkSectionSize()
    }

    /// Keeps a field unless its name holds an underscore. Some gateways turn `-` into `_`, so such a name may pose as
    /// another field. No code after this parser sees it.
    private mutating func add(_ bytes: Span<UInt8>, _ name: Range<Int>, _ value: Range<Int>) throws(RequestRefusal) {
        if nameHasUnderscore { return }
        try framing.receive(bytes, name, value)
        head.fields.append(
            RequestHead.Field(
                nameStart: UInt32(truncatingIfNeeded: name.lowerBound),
                nameEnd: UInt32(truncatingIfNeeded: name.upperBound),
                valueStart: UInt32(truncatingIfNeeded: value.lowerBound),
                valueEnd: UInt32(truncatingIfNeeded: value.upperBound)
            )
        )
    }

    private func sectionEnd(_ bytes: Span<UInt8>) -> Int {
        min(bytes.count, sectionStart + limits.headerSectionBytes)
    }

    private func checkSectionSize() throws(RequestRefusal) {
        if position - sectionStart >= limits.headerSectionBytes { throw .headerSectionTooLarge }
    }
}
