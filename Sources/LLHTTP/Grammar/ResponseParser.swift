internal import LLBytes

/// Parses a response head from bytes that may arrive in any pieces. Interim responses (1xx) are skipped. Its decisions
/// depend on the bytes alone.
package struct ResponseParser: Sendable {
    private let headLimit: Int
    /// True if the request was CONNECT: a 2xx then has no body, and the tunnel follows (RFC 9112 §6.3).
    private let answersConnect: Bool
    /// The start of the first incomplete line.
    private var position = 0
    private var hasStatus = false
    private var lines: FieldLines
    private var framing = Framing()
    private var head = ResponseHead()

    /// - Parameter headLimit: Bytes of all heads together, including interim responses.
    package init(headLimit: Int, fieldLimit: Int, answersConnect: Bool = false) {
        self.headLimit = headLimit
        self.answersConnect = answersConnect
        lines = FieldLines(countLimit: fieldLimit, byteLimit: headLimit)
    }

    /// Reads all bytes of the response so far, from its first one on; at least as many as at the last call.
    /// - Returns: The head; nil if it needs more bytes.
    package mutating func parse(_ bytes: Span<UInt8>) throws(HTTPRefusal) -> ResponseHead? {
        while true {
            if !hasStatus {
                guard try readStatusLine(bytes) else { return nil }
                hasStatus = true
                framing = Framing()
                lines.begin(countingFrom: 0)
            }
            switch try lines.next(bytes, from: &position) {
            case .needMore: return nil
            case .field(let field):
                try framing.receive(bytes, field)
                head.fields.append(field)
            case .end:
                head.byteCount = position
                // RFC 9112 §6.3: 1xx, 204 and 304 have no body, whatever their fields say. A 2xx to CONNECT has none either.
                let hasNoBody = head.status < 200 || head.status == 204 || head.status == 304
                head.framing =
                    hasNoBody || answersConnect && head.status < 300
                    ? .length(0) : try framing.length(minorVersion: head.minorVersion)
                // RFC 9110 §15.2: interim responses come before the final one. 101 is only allowed after a request for
                // it.
                guard head.status < 200 else { return head }
                guard head.status != 101 else { throw .unexpectedUpgrade }
                hasStatus = false
            }
        }
    }

    /// RFC 9112 §4: `HTTP/1.x SP 3DIGIT SP reason`. The space before an empty reason may be missing, because many
    /// servers leave it out.
    /// - Returns: False if it needs more bytes.
    private mutating func readStatusLine(_ bytes: Span<UInt8>) throws(HTTPRefusal) -> Bool {
        let start = position
        let rest = start..<max(start, min(bytes.count, headLimit))
        for index in rest {
            let (byte, offset) = (bytes[index], index - start)
            if offset >= 12, byte == ASCII.carriageReturn {
                guard try FieldLines.endLine(bytes, index, &position) else { return false }
                guard bytes[start + 5] == UInt8(ascii: "1") else { throw .unsupportedVersion }
                head = ResponseHead()
                head.minorVersion = bytes[start + 7] == UInt8(ascii: "0") ? 0 : 1
                head.status = (start + 9..<start + 12).reduce(0) { $0 * 10 + Int(bytes[$1] - UInt8(ascii: "0")) }
                return true
            }
            let isRight =
                switch offset {
                case 0..<8: FieldGrammar.isVersionByte(byte, at: offset)
                case 8, 12: byte == ASCII.space
                // RFC 9110 §15: the first digit is 1 … 5.
                case 9: (UInt8(ascii: "1")...UInt8(ascii: "5")).contains(byte)
                case 10, 11: ASCII.digit(byte) != nil
                default: FieldGrammar.isValueByte(byte)
                }
            guard isRight else { throw byte == ASCII.lineFeed ? .malformedLineEnd : .malformedStatusLine }
        }
        guard rest.upperBound < headLimit else { throw .headerSectionTooLarge }
        return false
    }
}

/// The head of a response as ranges of the bytes it was parsed from.
package struct ResponseHead: Sendable, Equatable {
    /// The status, 200 … 599. Interim responses are skipped.
    package internal(set) var status = 0
    package internal(set) var minorVersion: UInt8 = 1
    package internal(set) var fields: [HeadField] = []
    package internal(set) var framing = BodyFraming.undeclared
    /// The start of the body: the length of the head and of the interim responses before it, in bytes.
    package internal(set) var byteCount = 0
}
