/// Removes chunked coding (RFC 9112 §7.1) from bytes that may arrive in any pieces.
///
/// Each byte is looked at once. Nothing is copied: the decoder says where content lies.
package struct ChunkedDecoder: Sendable {
    /// What the decoder found.
    package enum Event: Equatable, Sendable {
        /// Content: this range of the bytes given.
        case data(Range<Int>)
        /// All bytes given are used up and the message goes on.
        case needMore
        /// The message is over; the position is the first byte behind it.
        case complete
        /// The coding is broken, or a limit exceeded.
        case reject(RequestRefusal)
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
    var trailerMatch = TrailerMatch()

    /// - Parameters:
    ///   - limits: Bounds extensions, trailers and the number of chunks.
    ///   - bodyLimit: The greatest content length accepted, in bytes.
    package init(limits: HTTPLimits, bodyLimit: Int) {
        self.limits = limits
        self.bodyLimit = bodyLimit
    }

    /// Goes on from `position` to the next thing worth telling.
    /// - Parameters:
    ///   - bytes: Any bytes; those before `position` were used up by earlier calls.
    ///   - position: Moved behind what was used up.
    package mutating func next(in bytes: Span<UInt8>, from position: inout Int) -> Event {
        do throws(RequestRefusal) {
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
        } catch {
            return .reject(error)
        }
    }

    /// The size and the line ends around the data.
    private mutating func receiveFrame(_ byte: UInt8) throws(RequestRefusal) {
        switch state {
        case .sizeStart:
            guard let digit = ASCII.hexadecimalDigit(byte) else { throw .malformedChunk }
            chunks += 1
            guard chunks <= limits.chunkCount else { throw .tooManyChunks }
            sizeDigits = 1
            remaining = digit
            state = .size
        case .size:
            if let digit = ASCII.hexadecimalDigit(byte) {
                // RFC 9112 §7.1: the size must not overflow: below 2^58 four more bits fit, whatever zeros lead.
                guard sizeDigits < 16, remaining >> 58 == 0 else { throw .malformedChunk }
                sizeDigits += 1
                remaining = remaining << 4 | digit
            } else {
                try endSize(byte)
            }
        case .sizeLineFeed:
            guard byte == ASCII.lineFeed else { throw .malformedLineEnd }
            state = remaining == 0 ? .trailerStart : .data
        case .dataReturn:
            // RFC 9112 §7.1: the data is followed by CRLF, whatever its last bytes are.
            guard byte == ASCII.carriageReturn else { throw .malformedChunk }
            state = .dataLineFeed
        default:
            guard byte == ASCII.lineFeed else { throw .malformedChunk }
            state = .sizeStart
        }
    }

    private mutating func endSize(_ byte: UInt8) throws(RequestRefusal) {
        // remaining < 2^62 and total <= bodyLimit: the difference is at least 0, and the sum at most bodyLimit.
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
