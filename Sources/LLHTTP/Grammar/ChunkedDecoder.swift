internal import LLBytes

/// Removes chunked coding (RFC 9112 §7.1) from bytes that may arrive in any pieces. It copies no content, but returns its
/// ranges.
package struct ChunkedDecoder: Sendable {
    package enum Event: Equatable, Sendable {
        /// Content in this range of the given bytes.
        case data(Range<Int>)
        /// All given bytes are used up, and the message continues.
        case needMore
        /// The message is over; the position is the first byte after it.
        case complete
    }

    private enum State {
        case sizeStart, size, sizeLineFeed
        case data, dataReturn, dataLineFeed
        case extensionPadding, extensionStart, extensionText, extensionQuoted, extensionEscape
        case trailer, complete
    }

    private let bodyLimit: Int
    private let limits: HTTPLimits
    private var state = State.sizeStart
    private var sizeDigits = 0
    private var remaining = 0
    private var total = 0
    private var chunks = 0
    private var extensionBytes = 0
    /// The trailer section so far. Its fields are checked and dropped.
    private(set) var trailer: [UInt8] = []
    private var trailerPosition = 0
    private var trailerLines: FieldLines

    package init(limits: HTTPLimits, bodyLimit: Int) {
        self.limits = limits
        self.bodyLimit = bodyLimit
        // The two bytes of the last line end are not counted.
        trailerLines = FieldLines(countLimit: .max, byteLimit: limits.trailerSectionBytes + 1)
        trailerLines.begin(countingFrom: 0)
    }

    /// Continues from `position`, which it moves past the bytes it uses, to the next event.
    package mutating func next(in bytes: Span<UInt8>, from position: inout Int) throws(HTTPRefusal) -> Event {
        while position < bytes.count, state != .complete {
            switch state {
            case .data:
                let range = position..<position + min(remaining, bytes.count - position)
                position = range.upperBound
                remaining -= range.count
                if remaining == 0 { state = .dataReturn }
                return .data(range)
            case .trailer: try receiveTrailer(bytes, &position)
            default:
                try receiveFrame(bytes[position])
                position += 1
            }
        }
        return state == .complete ? .complete : .needMore
    }

    /// Reads the size, its extensions, and the line ends around the data.
    private mutating func receiveFrame(_ byte: UInt8) throws(HTTPRefusal) {
        switch (state, byte) {
        case (.sizeStart, _):
            guard let digit = Hexadecimal.value(byte) else { throw .malformedChunk }
            chunks += 1
            guard chunks <= limits.chunkCount else { throw .tooManyChunks }
            sizeDigits = 1
            remaining = Int(digit)
            state = .size
        case (.size, _):
            guard let digit = Hexadecimal.value(byte) else {
                // remaining < 2^62 and total <= bodyLimit, so the difference is at least 0 and the sum at most bodyLimit.
                guard remaining <= bodyLimit - total else { throw .bodyTooLarge }
                total += remaining
                state = byte == ASCII.carriageReturn ? .sizeLineFeed : .extensionPadding
                if state == .extensionPadding { try receiveExtension(byte) }
                return
            }
            // RFC 9112 §7.1: the size must not overflow. Below 2^58 another four bits fit, even after leading zeros.
            guard sizeDigits < 16, remaining >> 58 == 0 else { throw .malformedChunk }
            sizeDigits += 1
            remaining = remaining << 4 | Int(digit)
        case (.sizeLineFeed, ASCII.lineFeed): state = remaining == 0 ? .trailer : .data
        case (.sizeLineFeed, _): throw .malformedLineEnd
        // RFC 9112 §7.1: CRLF follows the data.
        case (.dataReturn, ASCII.carriageReturn): state = .dataLineFeed
        case (.dataLineFeed, ASCII.lineFeed): state = .sizeStart
        case (.dataReturn, _), (.dataLineFeed, _): throw .malformedChunk
        default: try receiveExtension(byte)
        }
    }

    /// RFC 9112 §7.1.1: extensions are ignored. Their length is bounded over the whole message. Each is a semicolon and a
    /// text of token bytes, `=` and quoted strings, with white space around the semicolon only.
    private mutating func receiveExtension(_ byte: UInt8) throws(HTTPRefusal) {
        let isSpace = byte == ASCII.space || byte == ASCII.tab
        if state == .extensionPadding, !isSpace, byte != UInt8(ascii: ";") { throw .malformedChunk }
        extensionBytes += 1
        guard extensionBytes <= limits.chunkExtensionBytes else { throw .chunkExtensionsTooLong }
        switch (state, byte) {
        case (.extensionPadding, _), (.extensionText, UInt8(ascii: ";")): if !isSpace { state = .extensionStart }
        case (.extensionStart, _) where isSpace: break
        case (.extensionText, _) where isSpace: state = .extensionPadding
        case (.extensionText, ASCII.carriageReturn): state = .sizeLineFeed
        case (.extensionText, UInt8(ascii: "=")): break
        case (.extensionText, UInt8(ascii: "\"")): state = .extensionQuoted
        case (.extensionQuoted, UInt8(ascii: "\"")): state = .extensionText
        case (.extensionQuoted, _), (.extensionEscape, _):
            // RFC 9110 §5.6.4: tab is the only control byte allowed, so a line end cannot hide in a string.
            guard FieldGrammar.isValueByte(byte) else { throw .malformedChunk }
            state = state == .extensionQuoted && byte == UInt8(ascii: "\\") ? .extensionEscape : .extensionQuoted
        default:
            guard FieldGrammar.isTokenByte(byte) else { throw .malformedChunk }
            state = .extensionText
        }
    }

    /// RFC 9112 §7.1.2 and RFC 9110 §6.5.1: trailer fields are checked, bounded and dropped, never merged into the
    /// header section. A trailer field that would frame or route the message is refused.
    private mutating func receiveTrailer(_ bytes: Span<UInt8>, _ position: inout Int) throws(HTTPRefusal) {
        let start = position - trailer.count
        trailer.append(bytes, position..<bytes.count)
        position = bytes.count
        // A second reference during the calls: the bytes do not change meanwhile, so nothing is copied.
        let section = trailer
        do throws(HTTPRefusal) {
            while true {
                switch try trailerLines.next(section.span, from: &trailerPosition) {
                case .needMore: return
                case .field(let field): if Self.isForbidden(section.span, field.name) { throw .malformedTrailer }
                case .end:
                    position = start + trailerPosition
                    trailer = []
                    return state = .complete
                }
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
