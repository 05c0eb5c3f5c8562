internal import LLBytes

/// The received bytes of a connection, with their parser. A connection has one only while a request is incomplete or
/// parked, or while requests wait.
///
/// It is a value for the same reason as ``ConnectionEngine``.
package struct RequestBuffer: ~Copyable {
    /// Storage; the bytes before `start` belong to answered requests.
    private(set) var bytes: [UInt8] = []
    /// The start of the current request.
    private(set) var start = 0
    private(set) var parser: RequestParser
    private var decoder: ChunkedDecoder
    /// Chunked: the length of the content found so far, which is moved to right behind the head.
    private(set) var decodedCount = 0
    /// Chunked: the offset from `start` of the first byte not yet decoded.
    private(set) var rawOffset = 0
    /// Discarding a body of known length: the number of bytes still to come; below 0 for a chunked one.
    var discardCount = 0

    init(limits: HTTPLimits) {
        parser = RequestParser(limits: limits)
        decoder = ChunkedDecoder(limits: limits, bodyLimit: 0)
    }

    var count: Int { bytes.count - start }

    /// The range of the complete body, from `start`.
    var bodyRange: Range<Int> {
        let head = parser.head.byteCount
        return head..<head + (parser.head.isChunked ? decodedCount : parser.head.contentLength ?? 0)
    }

    /// The first byte behind the complete request, from `start`.
    var requestEnd: Int {
        parser.head.isChunked ? rawOffset : parser.head.byteCount + (parser.head.contentLength ?? 0)
    }

    /// The memory of the storage, with the parser's list of fields if the buffer is a connection's own.
    var heldBytes: Int { bytes.capacity + Self.parserBytes }

    /// The greatest list of fields a parser keeps: 100 of 16 bytes each, rounded up as arrays grow.
    private static let parserBytes = 2_048

    /// Adds received bytes. Answered requests are removed first, which moves each byte at most once: the next request
    /// then begins at the front.
    mutating func append(_ received: Span<UInt8>) {
        if start > 0 {
            bytes.removeFirst(start)
            start = 0
        }
        let needed = bytes.count + received.count
        // The buffer grows by whole pages and does not double: it holds little more than the bytes that came.
        if needed > bytes.capacity { bytes.reserveCapacity((needed + 4_095) & ~4_095) }
        bytes.append(received)
    }

    /// Frees memory that an earlier, longer request needed: a connection is about to keep the buffer.
    mutating func trim() {
        guard bytes.capacity - count > 8_192 else { return }
        bytes = Array(bytes[start...])
        start = 0
    }

    /// Skips the first `count` bytes of the current request: the next one begins behind them.
    mutating func advance(by count: Int) {
        start = min(start + count, bytes.count)
        parser.reset()
        decodedCount = 0
        rawOffset = 0
    }

    /// Makes the head the whole request. Bytes behind a head that declares a body cannot be trusted to be that body or
    /// the next request (RFC 9112 §6.3, §11.2): they are dropped, and the connection is not to be kept.
    mutating func dropBody() {
        guard parser.head.hasBody else { return }
        cut(at: min(start + parser.head.byteCount, bytes.count))
        parser.dropBody()
    }

    private mutating func cut(at end: Int) { bytes.removeLast(bytes.count - end) }

    /// Hands out the head for a call of the handler; a second swap puts it back. A head that was not read completely
    /// stays here.
    mutating func swapHead(with head: inout RequestHead) {
        if parser.head.byteCount > 0 || head.byteCount > 0 { swap(&parser.head, &head) }
    }

    mutating func clear() {
        bytes.removeAll(keepingCapacity: true)
        start = 0
        discardCount = 0
        advance(by: 0)
    }

    mutating func parseHead() -> RequestParser.Outcome {
        // A second reference during the call: the bytes do not change meanwhile, so nothing is copied.
        let bytes = bytes
        return parser.parse(bytes.span.extracting(start...))
    }

    private mutating func nextEvent() throws(HTTPRefusal) -> ChunkedDecoder.Event {
        let bytes = bytes
        var position = start + rawOffset
        let event = try decoder.next(in: bytes.span, from: &position)
        rawOffset = position - start
        return event
    }

    /// Prepares to decode a chunked body that begins behind the head (`offset` from `start`).
    mutating func beginChunked(limits: HTTPLimits, bodyLimit: Int, at offset: Int) {
        decoder = ChunkedDecoder(limits: limits, bodyLimit: bodyLimit)
        rawOffset = offset
        decodedCount = 0
    }

    /// Decodes the received bytes, and moves the content together right behind the head. It never moves forward, since
    /// coding only adds bytes.
    /// - Parameter keepsContent: False if the content is dropped.
    /// - Returns: True if the body is complete; it ends at ``rawOffset``.
    mutating func decodeBody(keepsContent: Bool = true) throws(HTTPRefusal) -> Bool {
        while true {
            switch try nextEvent() {
            case .data(let range):
                guard keepsContent else { continue }
                moveDown(range, to: start + parser.head.byteCount + decodedCount)
                decodedCount += range.count
            case .needMore:
                // All raw bytes are used; the next ones are received right behind the content.
                rawOffset = parser.head.byteCount + decodedCount
                cut(at: start + rawOffset)
                return false
            case .complete: return true
            }
        }
    }

    /// Drops the received bytes of a body that is not read.
    /// - Returns: True if the whole body is dropped.
    mutating func discardBody() throws(HTTPRefusal) -> Bool {
        if discardCount < 0 {
            guard try decodeBody(keepsContent: false) else { return false }
            advance(by: rawOffset)
        } else {
            let count = min(self.count, discardCount)
            advance(by: count)
            discardCount -= count
            if discardCount > 0 { return false }
        }
        discardCount = 0
        return true
    }

    private mutating func moveDown(_ range: Range<Int>, to target: Int) {
        guard target < range.lowerBound else { return }
        // target < range.lowerBound and range.upperBound <= bytes.count, so both areas lie within the array;
        // copyMemory allows them to overlap.
        unsafe bytes.withUnsafeMutableBytes { all in
            guard let base = all.baseAddress else { return }
            unsafe (base + target).copyMemory(from: base + range.lowerBound, byteCount: range.count)
        }
    }
}

/// A buffer in an object of its own: most connections need none most of the time.
final class OwnedBuffer {
    var buffer: RequestBuffer

    init(limits: HTTPLimits) { buffer = RequestBuffer(limits: limits) }
}
