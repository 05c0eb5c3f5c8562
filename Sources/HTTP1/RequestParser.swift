/// Parses one request head from bytes that may arrive in any pieces.
///
/// The parser remembers how far it came, so each byte is looked at once however the bytes are split, and what it
/// decides depends on the bytes alone: a request refused in one piece is refused, for the same reason, in any other.
/// Octets are parsed as octets, never as text (RFC 9112 §2.2).
package struct RequestParser: ~Copyable {
    /// The outcome of looking at the bytes there are.
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
    package internal(set) var head = RequestHead()
    /// The limits kept.
    package let limits: HTTPLimits

    var state = State.start
    /// The next byte to look at.
    var position = 0
    var emptyLines = 0
    var lineStart = 0
    var sectionStart = 0
    var tokenStart = 0
    var target = 0..<0
    var major: UInt8 = 0
    var minor: UInt8 = 0
    var targetNeedsCheck = false
    var fieldLines = 0
    var name = 0..<0
    var nameHasUnderscore = false
    var framing = Framing()

    package init(limits: HTTPLimits) {
        self.limits = limits
    }

    /// True once a byte of the request line was seen, beyond empty lines before it.
    package var hasBegun: Bool {
        switch state {
        case .start, .startLineFeed: false
        default: true
        }
    }

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

    /// Looks at the bytes that came since the last call.
    /// - Parameter bytes: All bytes of the request so far, from its first; at least as many as at the last call.
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
                    try finish(bytes)
                    return .complete
                case .complete: return .complete
                }
            }
            return state == .complete ? .complete : .needMore
        } catch {
            return .reject(error)
        }
    }

    /// RFC 9112 §2.2: empty lines before the request line are ignored, here a bounded number of them.
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
    private mutating func expectLineFeed(_ bytes: Span<UInt8>, then next: State) throws(RequestRefusal) {
        guard bytes[position] == ASCII.lineFeed else { throw .malformedLineEnd }
        position += 1
        state = next
    }
}
