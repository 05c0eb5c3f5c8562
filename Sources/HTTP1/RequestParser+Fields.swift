extension RequestParser {
    /// The first byte of a field line, or of the empty line that ends the section.
    mutating func startField(_ bytes: Span<UInt8>) throws(RequestRefusal) {
        if bytes[position] == ASCII.carriageReturn {
            try checkSectionSize()
            position += 1
            state = .endLineFeed
            return
        }
        // RFC 9110 §5.4: a section larger than the server wishes to process is refused, 431 by RFC 6585 §5.
        guard fieldLines < limits.fieldCount else { throw .tooManyFields }
        // RFC 9112 §5.2 and §2.2: a line that begins with white space is an obsolete fold, or stands before the first
        // field; both are refused, as is any other byte outside a token.
        guard FieldGrammar.isTokenByte(bytes[position]) else { throw .malformedFieldLine }
        fieldLines += 1
        tokenStart = position
        nameHasUnderscore = false
        state = .fieldName
    }

    /// RFC 9110 §5.1: a field name is a token; RFC 9112 §5.1: no white space between it and the colon.
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

    /// RFC 9112 §5.1: optional white space around a value is no part of it.
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
        while end - position >= 16 {
            let count = bytes.vector16(at: position).marksOfControls.unmarkedCount
            position += count
            if count < 16 { break }
        }
        while position < end {
            let byte = bytes[position]
            if !FieldGrammar.isValueByte(byte) {
                // RFC 9112 §2.2: LF alone is no line end here.
                guard byte == ASCII.carriageReturn else {
                    throw byte == ASCII.lineFeed ? .malformedLineEnd : .malformedFieldValue
                }
                var valueEnd = position
                while valueEnd > tokenStart, bytes[valueEnd - 1] == ASCII.space || bytes[valueEnd - 1] == ASCII.tab {
                    valueEnd -= 1
                }
                try add(bytes, name, tokenStart..<valueEnd)
                position += 1
                state = .valueLineFeed
                return
            }
            position += 1
        }
        try checkSectionSize()
    }

    /// Keeps a field, unless its name holds an underscore: some gateways turn `-` into `_`, so such a name may pose as
    /// another field, and nothing behind this parser ever sees it.
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

    /// RFC 9110 §5.3: nothing is decided before the whole header section is there.
    mutating func finish(_ bytes: Span<UInt8>) throws(RequestRefusal) {
        try framing.judge(bytes, into: &head)
        head.byteCount = position
    }

    private func sectionEnd(_ bytes: Span<UInt8>) -> Int {
        min(bytes.count, sectionStart + limits.headerSectionBytes)
    }

    private func checkSectionSize() throws(RequestRefusal) {
        if position - sectionStart >= limits.headerSectionBytes { throw .headerSectionTooLarge }
    }
}
