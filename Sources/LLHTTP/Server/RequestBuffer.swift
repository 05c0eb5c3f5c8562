internal import LLBytes

/// The received bytes of a connection, with their parser and the exchange of the current request. A connection has one
/// only while a request is incomplete or parked, or while requests wait. As a value it needs one check of exclusive access
/// for all of an event's uses.
package struct RequestBuffer: ~Copyable {
    /// Storage; the bytes before `start` belong to answered requests.
    private(set) var bytes: [UInt8] = []
    private(set) var start = 0
    private var parser: RequestParser
    var exchange: HTTPExchange
    private var decoder: ChunkedDecoder
    /// Chunked: the length of the content found so far, which is moved to right behind the head.
    private var decodedCount = 0
    /// Chunked: the offset from `start` of the first byte not yet decoded.
    private var rawOffset = 0

    init(limits: HTTPLimits, _ exchange: consuming HTTPExchange) {
        self.exchange = exchange
        parser = RequestParser(limits: limits)
        decoder = ChunkedDecoder(limits: limits, bodyLimit: 0)
    }

    var count: Int { bytes.count - start }

    /// True after the first byte of a request line; empty lines before it do not count.
    var hasBegun: Bool { parser.hasBegun }

    var bodyRange: Range<Int> {
        let head = exchange.head.byteCount
        return head..<head + (exchange.head.isChunked ? decodedCount : exchange.head.contentLength ?? 0)
    }

    /// The first byte behind the complete request, from `start`.
    var requestEnd: Int {
        exchange.head.isChunked ? rawOffset : exchange.head.byteCount + (exchange.head.contentLength ?? 0)
    }

    /// The memory of the storage, of the head's list of fields and of an unfinished trailer section.
    var heldBytes: Int { bytes.capacity + Self.parserBytes + decoder.trailer.capacity }

    /// The greatest list of fields: 100 of 32 bytes each, rounded up as arrays grow.
    private static let parserBytes = 4_096

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

    /// Frees memory that earlier requests needed: a connection is about to keep the buffer.
    mutating func trim() {
        exchange.response = HTTPResponse()
        guard bytes.capacity - count > 8_192 else { return }
        bytes = Array(bytes[start...])
        start = 0
    }

    /// Skips the first `count` bytes of the current request: the next one begins behind them.
    mutating func advance(by count: Int) {
        start = min(start + count, bytes.count)
        parser.reset(&exchange.head)
        decodedCount = 0
        rawOffset = 0
    }

    /// Makes the head the whole request. Bytes behind a head that declares a body cannot be trusted to be that body or
    /// the next request (RFC 9112 §6.3, §11.2): they are dropped, and the connection is not to be kept.
    mutating func dropBody() {
        guard exchange.head.hasBody else { return }
        cut(at: min(start + exchange.head.byteCount, bytes.count))
        exchange.head.dropBody()
    }

    private mutating func cut(at end: Int) { bytes.removeLast(bytes.count - end) }

    mutating func clear() {
        bytes.removeAll(keepingCapacity: true)
        start = 0
        advance(by: 0)
    }

    /// - Returns: True once the head is complete.
    mutating func parseHead() throws(HTTPRefusal) -> Bool {
        let bytes = bytes
        return try parser.parse(bytes.span.extracting(start..<bytes.count), into: &exchange.head)
    }

    /// - Parameter end: The end of the bytes that the function gets, counted from `start`.
    @inline(__always)
    mutating func call<Answer>(upTo end: Int? = nil, _ function: (inout HTTPExchange, Span<UInt8>) -> Answer) -> Answer
    {
        // A second reference during the call: the bytes do not change meanwhile, so nothing is copied.
        let bytes = bytes
        return function(&exchange, bytes.span.extracting(start..<start + (end ?? count)))
    }

    private mutating func nextEvent() throws(HTTPRefusal) -> ChunkedDecoder.Event {
        let bytes = bytes
        var position = start + rawOffset
        let event = try decoder.next(in: bytes.span, from: &position)
        rawOffset = position - start
        return event
    }

    mutating func beginBody(atMost limit: Int) {
        rawOffset = exchange.head.byteCount
        decodedCount = 0
        if exchange.head.isChunked { decoder = ChunkedDecoder(limits: parser.limits, bodyLimit: limit) }
    }

    mutating func receiveBody() throws(HTTPRefusal) -> Bool {
        exchange.head.isChunked ? try decodeBody() : count >= requestEnd
    }

    /// Decodes the received bytes, and moves the content together right behind the head. It never moves forward, since
    /// coding only adds bytes.
    /// - Returns: True if the body is complete; it ends at ``rawOffset``.
    private mutating func decodeBody() throws(HTTPRefusal) -> Bool {
        while true {
            switch try nextEvent() {
            case .data(let range):
                moveDown(range, to: start + exchange.head.byteCount + decodedCount)
                decodedCount += range.count
            case .needMore:
                // All raw bytes are used; the next ones are received right behind the content.
                rawOffset = exchange.head.byteCount + decodedCount
                cut(at: start + rawOffset)
                return false
            case .complete: return true
            }
        }
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

/// A buffer that is handed between connections without a copy.
package final class HeldBuffer {
    var content: RequestBuffer

    init(_ content: consuming RequestBuffer) { self.content = content }
}
