extension ChunkedDecoder {
    /// RFC 9112 §7.1.2 and RFC 9110 §6.5.1: trailer fields are checked, bounded and dropped, never merged into the
    /// header section; one that would frame or route the message is refused.
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
            trailerMatch = TrailerMatch()
            trailerMatch.receive(byte)
            state = .trailerName
        case .trailerName:
            if byte == UInt8(ascii: ":") {
                guard !trailerMatch.isForbidden else { throw .malformedTrailer }
                state = .trailerValue
                return
            }
            guard FieldGrammar.isTokenByte(byte) else { throw .malformedTrailer }
            trailerMatch.receive(byte)
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
}

/// Compares a trailer's name, byte by byte as it arrives, with the names that are refused.
struct TrailerMatch: Sendable {
    private var length = 0
    /// One bit for each name that still matches.
    private var candidates: UInt8 = 0b111

    mutating func receive(_ byte: UInt8) {
        let lowercase = ASCII.lowercased(byte)
        for index in 0..<3 {
            let name = Self.name(index)
            // Read only where length < utf8CodeUnitCount.
            let matches = unsafe length < name.utf8CodeUnitCount && name.utf8Start[length] == lowercase
            if !matches { candidates &= ~(1 << UInt8(index)) }
        }
        length += 1
    }

    /// True where the whole name was one of those refused.
    var isForbidden: Bool {
        for index in 0..<3 where candidates & (1 << UInt8(index)) != 0 {
            if length == Self.name(index).utf8CodeUnitCount { return true }
        }
        return false
    }

    private static func name(_ index: Int) -> StaticString {
        switch index {
        case 0: "content-length"
        case 1: "transfer-encoding"
        default: "host"
        }
    }
}
