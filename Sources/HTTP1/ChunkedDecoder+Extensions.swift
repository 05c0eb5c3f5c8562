extension ChunkedDecoder {
    /// RFC 9112 §7.1.1: extensions are ignored, yet kept to their grammar and bounded over the whole message:
    /// `*( BWS ";" BWS token [ BWS "=" BWS ( token / quoted-string ) ] )`.
    mutating func receiveExtension(_ byte: UInt8) throws(RequestRefusal) {
        extensionBytes += 1
        guard extensionBytes <= limits.chunkExtensionBytes else { throw .chunkExtensionsTooLong }
        let isPadding = byte == ASCII.space || byte == ASCII.tab
        switch state {
        case .extensionPadding:
            if isPadding { return }
            guard byte == UInt8(ascii: ";") else { throw .malformedChunk }
            state = .extensionName
        case .extensionName:
            if isPadding { return }
            guard FieldGrammar.isTokenByte(byte) else { throw .malformedChunk }
            state = .extensionNameRest
        case .extensionNameRest:
            if FieldGrammar.isTokenByte(byte) { return }
            try endName(byte, isPadding)
        case .extensionAfterName:
            try endName(byte, isPadding)
        case .extensionValue:
            if isPadding { return }
            if byte == UInt8(ascii: "\"") {
                state = .extensionQuoted
            } else {
                guard FieldGrammar.isTokenByte(byte) else { throw .malformedChunk }
                state = .extensionToken
            }
        case .extensionToken:
            if FieldGrammar.isTokenByte(byte) { return }
            try endValue(byte, isPadding)
        case .extensionQuoted:
            // RFC 9110 §5.6.4: no control byte but tab, so that no line end can hide in a string.
            if byte == UInt8(ascii: "\"") {
                state = .extensionAfterValue
            } else if byte == UInt8(ascii: "\\") {
                state = .extensionEscape
            } else {
                guard FieldGrammar.isValueByte(byte) else { throw .malformedChunk }
            }
        case .extensionEscape:
            guard FieldGrammar.isValueByte(byte) else { throw .malformedChunk }
            state = .extensionQuoted
        default:
            try endValue(byte, isPadding)
        }
    }

    private mutating func endName(_ byte: UInt8, _ isPadding: Bool) throws(RequestRefusal) {
        if byte == UInt8(ascii: "=") {
            state = .extensionValue
        } else if isPadding {
            state = .extensionAfterName
        } else {
            try endValue(byte, isPadding)
        }
    }

    private mutating func endValue(_ byte: UInt8, _ isPadding: Bool) throws(RequestRefusal) {
        switch byte {
        case UInt8(ascii: ";"): state = .extensionName
        case ASCII.carriageReturn:
            // White space belongs before `;` or `=`, not before the line end.
            guard state != .extensionAfterName else { throw .malformedChunk }
            state = .sizeLineFeed
        default:
            guard isPadding else { throw .malformedChunk }
            state = .extensionPadding
        }
    }
}
