internal import HTTP1

/// The bytes of a request as they come, with the parser that reads them. A worker has one to receive into; a connection
/// gets its own only while a request is incomplete or parked.
final class RequestBuffer {
    /// Storage; only `start ..< end` means anything.
    private(set) var bytes: [UInt8]
    /// Where the current request begins.
    private(set) var start = 0
    /// The end of what was received.
    private(set) var end = 0
    var parser: RequestParser
    /// What the parser's head says besides ranges, as far as it is known.
    private(set) var facts = RequestFacts()
    var decoder: ChunkedDecoder
    /// Chunked: content found so far, moved to right behind the head. Offsets are from `start`.
    private(set) var decodedCount = 0
    /// Chunked: the first byte not yet decoded, from `start`.
    private var rawOffset = 0
    /// Discarding a body of known length: what is still to come.
    var discardCount = 0

    init(limits: HTTPLimits, capacity: Int) {
        bytes = [UInt8](repeating: 0, count: capacity)
        parser = RequestParser(limits: limits)
        decoder = ChunkedDecoder(limits: limits, bodyLimit: 0)
    }

    /// Bytes from the current request on.
    var count: Int { end - start }

    /// Where the body lies once it is complete, from `start`.
    var bodyRange: Range<Int> {
        let facts = facts
        let head = facts.byteCount
        return head..<head + (facts.isChunked ? decodedCount : facts.contentLength ?? 0)
    }

    /// The first byte behind the request once it is complete, from `start`.
    var requestEnd: Int {
        let facts = facts
        return facts.isChunked ? rawOffset : facts.byteCount + (facts.contentLength ?? 0)
    }

    /// What the storage takes in memory, with the parser's list of fields where the buffer is a connection's own.
    var heldBytes: Int { bytes.capacity + Self.parserBytes }

    /// The greatest list of fields a parser keeps: 100 of 16 bytes each, rounded up as arrays grow.
    private static let parserBytes = 2_048

    /// Calls `body` with the storage to receive into; it returns how many bytes it put at the front.
    func receive(_ body: (inout [UInt8]) -> Int) {
        start = 0
        end = min(max(body(&bytes), 0), bytes.count)
    }

    /// Replaces what is there.
    func fill(_ source: Span<UInt8>) {
        receive { storage in
            let count = min(source.count, storage.count)
            unsafe source.extracting(0..<count).withUnsafeBufferPointer { part in
                // In bounds: the part has at most as many bytes as the storage, and `update` would stop at its end.
                _ = unsafe storage.withUnsafeMutableBufferPointer { unsafe $0.update(fromContentsOf: part) }
            }
            return count
        }
    }

    /// Adds the whole content of `other` at the end and empties it. Requests already answered make room first: each byte
    /// is moved once for it, since the next request then begins at the front.
    func append(contentsOf other: RequestBuffer) {
        if end < bytes.count { bytes.removeLast(bytes.count - end) }
        if start > 0 {
            bytes.removeFirst(start)
            start = 0
        }
        let needed = bytes.count + other.count
        // The buffer grows by whole pages, not to twice its size: it holds little more than the bytes that came.
        if needed > bytes.capacity { bytes.reserveCapacity((needed + 4_095) & ~4_095) }
        bytes.append(contentsOf: other.bytes[other.start..<other.end])
        end = bytes.count
        other.start = 0
        other.end = 0
    }

    /// Moves the request under way, its parser included, into `other`, which must be empty.
    func move(to other: RequestBuffer, reserving capacity: Int) {
        other.bytes.removeAll(keepingCapacity: true)
        other.bytes.reserveCapacity(max(count, capacity))
        other.bytes.append(contentsOf: bytes[start..<end])
        other.start = 0
        other.end = other.bytes.count
        swap(&parser, &other.parser)
        other.facts = facts
        other.decoder = decoder
        other.decodedCount = decodedCount
        other.rawOffset = rawOffset
        other.discardCount = discardCount
        clear()
    }

    /// Goes on behind the first `count` bytes of the current request: the next one begins there.
    func advance(by count: Int) {
        start = min(start + count, end)
        parser.reset()
        decodedCount = 0
        rawOffset = 0
    }

    /// Makes the head the whole request. Where it declares a body, nothing behind it can be trusted to be one or to be
    /// the next request (RFC 9112 §6.3, §11.2): it is dropped, and the connection is not to be kept.
    func dropBody() {
        guard facts.hasBody else { return }
        end = min(start + facts.byteCount, end)
        facts.isChunked = false
        facts.contentLength = nil
        facts.keepAlive = false
    }

    /// Forgets everything and keeps the storage.
    func clear() {
        start = 0
        end = 0
        parser.reset()
        decodedCount = 0
        rawOffset = 0
        discardCount = 0
    }

    /// Parses the head as far as its bytes are there.
    func parseHead() -> RequestParser.Outcome {
        // A second reference for the time of the call: nothing changes the bytes meanwhile, so nothing is copied.
        let bytes = bytes
        let outcome = parser.parse(bytes.span.extracting(start..<end))
        facts = RequestFacts(parser.head)
        return outcome
    }

    private func nextEvent() -> ChunkedDecoder.Event {
        let bytes = bytes
        var position = start + rawOffset
        let event = decoder.next(in: bytes.span.extracting(0..<end), from: &position)
        rawOffset = position - start
        return event
    }

    /// Prepares to decode a chunked body that begins behind the head (`offset` from `start`).
    func beginChunked(limits: HTTPLimits, bodyLimit: Int, at offset: Int) {
        decoder = ChunkedDecoder(limits: limits, bodyLimit: bodyLimit)
        rawOffset = offset
        decodedCount = 0
    }

    /// Decodes what is there, and moves the content together right behind the head: never forward, since coding only
    /// adds bytes.
    /// - Returns: Never `.data`.
    func decodeBody() -> ChunkedDecoder.Event {
        while true {
            let event = nextEvent()
            switch event {
            case .data(let range):
                moveDown(range, to: start + facts.byteCount + decodedCount)
                decodedCount += range.count
            case .needMore:
                // All raw bytes are used up; what follows is received right behind the content.
                end = start + facts.byteCount + decodedCount
                rawOffset = end - start
                return event
            case .complete, .reject: return event
            }
        }
    }

    /// Drops content of a chunked body; a whole one ends where ``requestEnd`` says.
    /// - Returns: Never `.data`.
    func discardChunked() -> ChunkedDecoder.Event {
        while true {
            let event = nextEvent()
            switch event {
            case .data: continue
            case .needMore:
                end = start
                rawOffset = 0
                return event
            case .complete, .reject: return event
            }
        }
    }

    /// The first byte behind a discarded chunked body, from `start`.
    var discardedEnd: Int { rawOffset }

    private func moveDown(_ range: Range<Int>, to target: Int) {
        guard target < range.lowerBound else { return }
        // target < range.lowerBound and range.upperBound <= end <= bytes.count, so both areas lie within the array;
        // copyMemory allows them to overlap.
        unsafe bytes.withUnsafeMutableBytes { all in
            guard let base = all.baseAddress else { return }
            unsafe (base + target).copyMemory(from: base + range.lowerBound, byteCount: range.count)
        }
    }
}

/// The small facts of a request head, in one value: read together, they cost one access to the buffer that holds them.
struct RequestFacts {
    var method = HTTPMethod.get
    var minorVersion: UInt8 = 1
    var keepAlive = true
    var isChunked = false
    var expectsContinue = false
    var contentLength: Int?
    var byteCount = 0

    init() {}

    init(_ head: borrowing RequestHead) {
        method = head.method
        minorVersion = head.minorVersion
        keepAlive = head.keepAlive
        isChunked = head.isChunked
        expectsContinue = head.expectsContinue
        contentLength = head.contentLength
        byteCount = head.byteCount
    }

    /// True where a body follows (perhaps an empty chunked one).
    var hasBody: Bool { isChunked || (contentLength ?? 0) > 0 }
}
