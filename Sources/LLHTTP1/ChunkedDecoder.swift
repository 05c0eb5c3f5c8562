internal import LLBytes

/// Removes chunked coding (RFC 9112 §7.1) from bytes that may arrive in any pieces.
///
/// It reads each byte once and copies nothing: it returns the ranges of the content.
package struct ChunkedDecoder: Sendable {
    package enum Event: Equatable, Sendable {
        /// Content in this range of the given bytes.
        case data(Range<Int>)
        /// All given bytes are used up, and the message continues.
        case needMore
        /// The message is over; the position is the first byte after it.
        case complete
    }

    enum State {
        case sizeStart, size, sizeLineFeed
        case data, dataReturn, dataLineFeed
        case extensionPadding, extensionName, extensionNameRest, extensionAfterName
        case extensionValue, extensionToken, extensionQuoted, extensionEscape, extensionAfterValue
        case trailerStart, trailerName, trailerValue, trailerLineFeed, endLineFeed
        case complete
    }

    let bodyLimit: Int
    let limits: HTTPLimits
    var state = State.sizeStart
    var sizeDigits = 0
    var remaining = 0
    var total = 0
    var chunks = 0
    var extensionBytes = 0
    var trailerBytes = 0
    /// The start of the trailer's name, long enough to recognise a refused name.
    var trailerName: [UInt8] = []

    /// - Parameters:
    ///   - limits: Bounds extensions, trailers and the number of chunks.
    ///   - bodyLimit: The greatest content length accepted, in bytes.
    package init(limits: HTTPLimits, bodyLimit: Int) {
        self.limits = limits
        self.bodyLimit = bodyLimit
    }

    /// Continues from `position` to the next event.
    /// - Parameters:
    ///   - bytes: Any bytes; earlier calls used up those before `position`.
    ///   - position: The first unused byte. The call moves it past the bytes it uses.
    /// - Throws: If the coding is broken or a limit is exceeded.
    package mutating func next(in bytes: Span<UInt8>, from position: inout Int) throws(RequestRefusal) -> Event {
        while position < bytes.count {
            switch state {
            case .data:
                let count = min(remaining, bytes.count - position)
                let range = position..<position + count
                position += count
                remaining -= count
                if remaining == 0 { state = .dataReturn }
                return .data(range)
            case .complete:
                return .complete
            case .trailerStart, .trailerName, .trailerValue, .trailerLineFeed, .endLineFeed:
                try receiveTrailer(bytes[position])
            case .sizeStart, .size, .sizeLineFeed, .dataReturn, .dataLineFeed:
                try receiveFrame(bytes[position])
            default:
                try receiveExtension(bytes[position])
            }
            position += 1
        }
        return state == .complete ? .complete : .needMore
    }

    /// Reads the size, and the line ends around the data.
    private mutating func receiveFrame(_ byte: UInt8) throws(RequestRefusal) {
        switch state {
        case .sizeStart:
            guard let digit = Hexadecimal.value(byte) else { throw .malformedChunk }
            chunks += 1
            guard chunks <= limits.chunkCount else { throw .tooManyChunks }
            sizeDigits = 1
            remaining = Int(digit)
            state = .size
        case .size:
            if let digit = Hexadecimal.value(byte) {
                // RFC 9112 §7.1: the size must not overflow. Below 2^58 another four bits fit, even after leading
                // zeros.
                guard sizeDigits < 16, remaining >> 58 == 0 else { throw .malformedChunk }
                sizeDigits += 1
                remaining = remaining << 4 | Int(digit)
            } else {
                try endSize(byte)
            }
        case .sizeLineFeed:
            guard byte == ASCII.lineFeed else { throw .malformedLineEnd }
            state = remaining == 0 ? .trailerStart : .data
        case .dataReturn:
            // RFC 9112 §7.1: CRLF follows the data.
            guard byte == ASCII.carriageReturn else { throw .malformedChunk }
            state = .dataLineFeed
        default:
            guard byte == ASCII.lineFeed else { throw .malformedChunk }
            state = .sizeStart
        }
    }

    private mutating func endSize(_ byte: UInt8) throws(RequestRefusal) {
        // remaining < 2^62 and total <= bodyLimit, so the difference is at least 0 and the sum at most bodyLimit.
        guard remaining <= bodyLimit - total else { throw .bodyTooLarge }
        total += remaining
        switch byte {
        case ASCII.carriageReturn: state = .sizeLineFeed
        case UInt8(ascii: ";"), ASCII.space, ASCII.tab:
            state = .extensionPadding
            try receiveExtension(byte)
        default: throw .malformedChunk
        }
    }
}

extension ChunkedDecoder {
    /// RFC 9112 §7.1.1: extensions are ignored, but their grammar is checked and their length is bounded over the whole
    /// message: `*( BWS ";" BWS token [ BWS "=" BWS ( token / quoted-string ) ] )`.
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
            // RFC 9110 §5.6.4: tab is the only control byte allowed, so a line end cannot hide in a string.
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
            // White space is allowed before `;` or `=`, not before the line end.
            guard state != .extensionAfterName else { throw .malformedChunk }
            state = .sizeLineFeed
        default:
            guard isPadding else { throw .malformedChunk }
            state = .extensionPadding
        }
    }
}

extension ChunkedDecoder {
    /// RFC 9112 §7.1.2 and RFC 9110 §6.5.1: trailer fields are checked, bounded and dropped, never merged into the
    /// header section. A trailer field that would frame or route the message is refused.
    mutating func receiveTrailer(_ byte: UInt8) throws(RequestRefusal) {
        trailerBytes += 1
        // The two bytes of the last line end are not counted.
        guard trailerBytes <= limits.trailerSectionBytes + 2 else { throw .trailersTooLarge }
        switch state {
        case .trailerStart:
            if byte == ASCII.carriageReturn {
                state = .endLineFeed
                return
            }
            guard FieldGrammar.isTokenByte(byte) else { throw .malformedTrailer }
            trailerName = [byte]
            state = .trailerName
        case .trailerName:
            if byte == UInt8(ascii: ":") {
                guard !trailerIsForbidden else { throw .malformedTrailer }
                state = .trailerValue
                return
            }
            guard FieldGrammar.isTokenByte(byte) else { throw .malformedTrailer }
            // The refused names have at most 17 bytes.
            if trailerName.count < 18 { trailerName.append(byte) }
        case .trailerValue:
            if byte == ASCII.carriageReturn {
                state = .trailerLineFeed
                return
            }
            guard FieldGrammar.isValueByte(byte) else { throw .malformedTrailer }
        case .trailerLineFeed:
            guard byte == ASCII.lineFeed else { throw .malformedLineEnd }
            state = .trailerStart
        default:
            guard byte == ASCII.lineFeed else { throw .malformedLineEnd }
            state = .complete
        }
    }
    private var trailerIsForbidden: Bool {
        let name = trailerName.span
        return name.equalIgnoringCase(name.indices, "content-length")
            || name.equalIgnoringCase(name.indices, "transfer-encoding") || name.equalIgnoringCase(name.indices, "host")
    }
}
