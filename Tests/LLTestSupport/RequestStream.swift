package import LLHTTP

/// Reads a stream of requests by the grammar alone, without a server, a handler or a socket.
package struct RequestStream: ~Copyable {
    /// The result of reading the bytes.
    package struct Verdict: Equatable, Sendable {
        /// Whole requests accepted.
        package var accepted = 0
        /// Why the next one was refused.
        package var refusal: HTTPRefusal?
        /// True if a request has begun and is not finished.
        package var isIncomplete = false

        /// `accept`, `reject`, `incomplete` or `accept+incomplete`, in the words of the case library.
        package var profile: String {
            if refusal != nil { return "reject" }
            if isIncomplete { return accepted > 0 ? "accept+incomplete" : "incomplete" }
            return accepted > 0 ? "accept" : "incomplete"
        }
    }

    private enum State {
        case head, fixedBody(remaining: Int), chunkedBody, over
    }

    private let limits: HTTPLimits
    private var parser: HeadReader
    private var decoder: ChunkedDecoder
    private var state = State.head
    private var start = 0
    /// The verdict so far.
    package private(set) var verdict = Verdict()
    /// The content of the requests accepted, one after another.
    package private(set) var content: [UInt8] = []

    package init(limits: HTTPLimits) {
        self.limits = limits
        parser = HeadReader(limits: limits)
        decoder = ChunkedDecoder(limits: limits, bodyLimit: limits.bodyBytes)
    }

    /// Reads on. `bytes` is the whole stream so far, from its first byte.
    package mutating func feed(_ bytes: Span<UInt8>) {
        while true {
            switch state {
            case .head:
                if start == bytes.count { return }
                switch parser.parse(bytes.extracting(start..<bytes.count)) {
                case .needMore:
                    verdict.isIncomplete = parser.hasBegun
                    return
                case .reject(let refusal):
                    refuse(refusal)
                    return
                case .complete: beginBody()
                }
            case .fixedBody(let remaining):
                let count = min(remaining, bytes.count - start)
                append(bytes, start..<start + count)
                start += count
                state = .fixedBody(remaining: remaining - count)
                if remaining > count { return }
                finish()
            case .chunkedBody:
                do throws(HTTPRefusal) {
                    switch try decoder.next(in: bytes, from: &start) {
                    case .data(let range): append(bytes, range)
                    case .needMore: return
                    case .complete: finish()
                    }
                } catch {
                    refuse(error)
                    return
                }
            case .over: return
            }
        }
    }

    private mutating func refuse(_ refusal: HTTPRefusal) {
        verdict.refusal = refusal
        verdict.isIncomplete = false
        state = .over
    }

    private mutating func beginBody() {
        start += parser.head.byteCount
        verdict.isIncomplete = true
        if parser.head.isChunked {
            decoder = ChunkedDecoder(limits: limits, bodyLimit: limits.bodyBytes)
            state = .chunkedBody
        } else if let length = parser.head.contentLength, length > limits.bodyBytes {
            refuse(.bodyTooLarge)
        } else {
            state = .fixedBody(remaining: parser.head.contentLength ?? 0)
        }
    }

    private mutating func finish() {
        verdict.accepted += 1
        verdict.isIncomplete = false
        state = parser.head.keepAlive ? .head : .over
        parser.reset()
    }

    private mutating func append(_ bytes: Span<UInt8>, _ range: Range<Int>) {
        for index in range { content.append(bytes[index]) }
    }
}

/// A parser with the head that it fills.
package struct HeadReader: ~Copyable {
    package private(set) var head = RequestHead()
    private var parser: RequestParser

    package init(limits: HTTPLimits = HTTPLimits()) { parser = RequestParser(limits: limits) }

    package var hasBegun: Bool { parser.hasBegun }

    package enum Outcome: Equatable, Sendable { case complete, needMore, reject(HTTPRefusal) }

    package mutating func parse(_ bytes: Span<UInt8>) -> Outcome {
        do throws(HTTPRefusal) {
            return try parser.parse(bytes, into: &head) ? .complete : .needMore
        } catch {
            return .reject(error)
        }
    }

    package mutating func reset() { parser.reset(&head) }
}
