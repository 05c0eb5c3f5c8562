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
        case extensionPadding, extensionStart, extensionText, extensionQuoted, extensionEscape
        case trailer, complete
    }

    let bodyLimit: Int
    let limits: HTTPLimits
    var state = State.sizeStart
    var sizeDigits = 0
    var remaining = 0
    var total = 0
    var chunks = 0
    var extensionBytes = 0
    /// The trailer section so far. Its fields are checked and dropped.
    var trailer: [UInt8] = []
    var trailerPosition = 0
    var trailerLines: FieldLines

    /// - Parameters:
    ///   - limits: Bounds extensions, trailers and the number of chunks.
    ///   - bodyLimit: The greatest content length accepted, in bytes.
    package init(limits: HTTPLimits, bodyLimit: Int) {
        self.limits = limits
        self.bodyLimit = bodyLimit
        // The two bytes of the last line end are not counted.
        trailerLines = FieldLines(countLimit: .max, byteLimit: limits.trailerSectionBytes + 1)
        trailerLines.begin(countingFrom: 0)
    }

    /// Continues from `position` to the next event.
    /// - Parameters:
    ///   - bytes: Any bytes; earlier calls used up those before `position`.
    ///   - position: The first unused byte. The call moves it past the bytes it uses.
    /// - Throws: If the coding is broken or a limit is exceeded.
    package mutating func next(in bytes: Span<UInt8>, from position: inout Int) throws(HTTPRefusal) -> Event {
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
            case .trailer: try receiveTrailer(bytes[position])
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
    private mutating func receiveFrame(_ byte: UInt8) throws(HTTPRefusal) {
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
            state = remaining == 0 ? .trailer : .data
        case .dataReturn:
            // RFC 9112 §7.1: CRLF follows the data.
            guard byte == ASCII.carriageReturn else { throw .malformedChunk }
            state = .dataLineFeed
        default:
            guard byte == ASCII.lineFeed else { throw .malformedChunk }
            state = .sizeStart
        }
    }

    private mutating func endSize(_ byte: UInt8) throws(HTTPRefusal) {
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
    /// RFC 9112 §7.1.1: extensions are ignored. Their length is bounded over the whole message. Each is a semicolon and a
    /// text of token bytes, `=` and quoted strings, with white space around the semicolon only.
    mutating func receiveExtension(_ byte: UInt8) throws(HTTPRefusal) {
        extensionBytes += 1
        guard extensionBytes <= limits.chunkExtensionBytes else { throw .chunkExtensionsTooLong }
        switch (state, byte) {
        case (.extensionPadding, ASCII.space), (.extensionPadding, ASCII.tab): break
        case (.extensionStart, ASCII.space), (.extensionStart, ASCII.tab): break
        case (.extensionPadding, UInt8(ascii: ";")), (.extensionText, UInt8(ascii: ";")): state = .extensionStart
        case (.extensionText, ASCII.space), (.extensionText, ASCII.tab): state = .extensionPadding
        case (.extensionText, ASCII.carriageReturn): state = .sizeLineFeed
        case (.extensionText, UInt8(ascii: "=")): break
        case (.extensionText, UInt8(ascii: "\"")): state = .extensionQuoted
        case (.extensionStart, _), (.extensionText, _):
            guard FieldGrammar.isTokenByte(byte) else { throw .malformedChunk }
            state = .extensionText
        case (.extensionQuoted, UInt8(ascii: "\"")): state = .extensionText
        case (.extensionQuoted, _), (.extensionEscape, _):
            // RFC 9110 §5.6.4: tab is the only control byte allowed, so a line end cannot hide in a string.
            guard FieldGrammar.isValueByte(byte) else { throw .malformedChunk }
            state = state == .extensionQuoted && byte == UInt8(ascii: "\\") ? .extensionEscape : .extensionQuoted
        default: throw .malformedChunk
        }
    }

    /// RFC 9112 §7.1.2 and RFC 9110 §6.5.1: trailer fields are checked, bounded and dropped, never merged into the
    /// header section. A trailer field that would frame or route the message is refused.
    mutating func receiveTrailer(_ byte: UInt8) throws(HTTPRefusal) {
        trailer.append(byte)
        // A second reference during the call: the bytes do not change meanwhile, so nothing is copied.
        let bytes = trailer
        do throws(HTTPRefusal) {
            switch try trailerLines.next(bytes.span, from: &trailerPosition) {
            case .needMore: break
            case .field(let field): if Self.isForbidden(bytes.span, field.name) { throw .malformedTrailer }
            case .end: state = .complete
            }
        } catch {
            switch error {
            case .headerSectionTooLarge: throw .trailersTooLarge
            case .malformedLineEnd: throw error
            default: throw .malformedTrailer
            }
        }
    }

    private static func isForbidden(_ bytes: Span<UInt8>, _ name: Range<Int>) -> Bool {
        bytes.equalIgnoringCase(name, "content-length") || bytes.equalIgnoringCase(name, "transfer-encoding")
            || bytes.equalIgnoringCase(name, "host")
    }
}
