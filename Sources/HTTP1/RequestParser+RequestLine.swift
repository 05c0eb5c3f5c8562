extension RequestParser {
    /// RFC 9112 §3.1: the method is a token, followed by exactly one space.
    mutating func parseMethod(_ bytes: Span<UInt8>) throws(RequestRefusal) {
        let end = min(bytes.count, lineStart + limits.requestLineBytes)
        while position < end {
            let byte = bytes[position]
            if byte == ASCII.space {
                guard position > tokenStart else { throw .malformedRequestLine }
                head.methodName = tokenStart..<position
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

    /// RFC 9112 §3.2: no white space in the target, and no byte outside the grammar of URIs; one that breaks this is
    /// refused, not repaired (RFC 9112 §3.2, SHOULD 400).
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

    /// RFC 9112 §2.3: `HTTP/` digit `.` digit, in upper case, then the line end at once.
    mutating func parseVersion(_ bytes: Span<UInt8>) throws(RequestRefusal) {
        while position < bytes.count {
            let byte = bytes[position]
            switch position - tokenStart {
            case 0: try require(byte == UInt8(ascii: "H"))
            case 1, 2: try require(byte == UInt8(ascii: "T"))
            case 3: try require(byte == UInt8(ascii: "P"))
            case 4: try require(byte == UInt8(ascii: "/"))
            case 5:
                try require(ASCII.digit(byte) != nil)
                major = byte
            case 6: try require(byte == UInt8(ascii: "."))
            case 7:
                try require(ASCII.digit(byte) != nil)
                minor = byte
            default:
                try require(byte == ASCII.carriageReturn)
                guard position - lineStart <= limits.requestLineBytes else { throw .targetTooLong }
                position += 1
                state = .requestLineFeed
                return
            }
            position += 1
        }
    }

    /// The request line is whole: judge its version and the form of its target.
    mutating func endRequestLine(_ bytes: Span<UInt8>) throws(RequestRefusal) {
        guard bytes[position] == ASCII.lineFeed else { throw .malformedLineEnd }
        position += 1
        // RFC 9110 §15.6.6: another major version cannot be answered in kind.
        guard major == UInt8(ascii: "1") else { throw .unsupportedVersion }
        // RFC 9110 §2.5: a higher minor version is handled as the highest this server knows.
        head.minorVersion = minor == UInt8(ascii: "0") ? 0 : 1
        head.keepAlive = head.minorVersion == 1
        try RequestTarget.split(bytes, target, needsCheck: targetNeedsCheck, into: &head)
        sectionStart = position
        state = .fieldStart
    }

    /// RFC 9112 §3: a request line longer than the server is willing to parse is 414.
    private func checkRequestLineLength() throws(RequestRefusal) {
        if position - lineStart >= limits.requestLineBytes { throw .targetTooLong }
    }

    private func require(_ condition: Bool) throws(RequestRefusal) {
        guard condition else { throw .malformedRequestLine }
    }
}
