internal import CHiredis

/// Takes answers of the Redis protocol out of a stream of bytes, with hiredis' reader; what a peer can make it keep is
/// bounded here.
///
/// The one place that touches hiredis' replies. Every pointer below is hiredis' own and lives until the reply is freed,
/// which is done before ``next()`` returns; lengths are hiredis' own too.
@safe package final class RedisReplyReader {
    private let reader: UnsafeMutablePointer<redisReader>
    private let limit: Int
    /// Bytes that came since the last whole answer.
    private var pending = 0

    /// - Parameter limit: the most bytes of one answer.
    package init(limit: Int) throws(RedisProtocolError) {
        guard let reader = unsafe CHiredis_reader_create() else { throw .outOfMemory }
        unsafe self.reader = reader
        self.limit = limit
    }

    deinit { unsafe redisReaderFree(reader) }

    /// The first `count` bytes of `buffer` have come.
    package func feed(_ buffer: borrowing [UInt8], count: Int) throws(RedisProtocolError) {
        let count = min(count, buffer.count)
        guard count > 0 else { return }
        pending += count
        let result = unsafe buffer.withUnsafeBytes { bytes in
            // The reader copies `count` bytes from the base address on; the buffer has so many, see above.
            unsafe redisReaderFeed(reader, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), count)
        }
        guard result == REDIS_OK else { throw .outOfMemory }
    }

    /// The next whole answer; nil where more bytes are needed for it.
    package func next() throws(RedisProtocolError) -> RedisReply? {
        var pointer: UnsafeMutableRawPointer?
        guard unsafe redisReaderGetReply(reader, &pointer) == REDIS_OK else { throw .malformed }
        guard let reply = unsafe pointer?.assumingMemoryBound(to: redisReply.self) else {
            // What is whole was taken, so all that is left belongs to one answer.
            if pending > limit { throw .tooLong }
            return nil
        }
        defer { unsafe freeReplyObject(reply) }
        pending = unsafe Int(clamping: reader.pointee.len &- reader.pointee.pos)
        return try unsafe Self.reply(reply.pointee)
    }

    private static func reply(_ reply: redisReply) throws(RedisProtocolError) -> RedisReply {
        switch unsafe reply.type {
        case REDIS_REPLY_STRING: return .string(unsafe bytes(reply))
        case REDIS_REPLY_STATUS: return .status(String(decoding: unsafe bytes(reply), as: UTF8.self))
        case REDIS_REPLY_INTEGER: return .integer(unsafe reply.integer)
        case REDIS_REPLY_NIL: return .null
        case REDIS_REPLY_ERROR:
            let word = unsafe bytes(reply).prefix { $0 != UInt8(ascii: " ") }.prefix(32)
            // A code is upper-case letters; whatever else the server says is not repeated.
            let isCode = !word.isEmpty && word.allSatisfy { (0x41...0x5A).contains($0) }
            return .error(code: isCode ? String(decoding: word, as: UTF8.self) : "ERR")
        case REDIS_REPLY_ARRAY:
            var elements: [RedisReply] = []
            for index in 0..<(unsafe reply.elements) {
                // `elements` pointers are there, each to a reply of its own once the whole is.
                guard let element = unsafe reply.element?[Int(index)] else { throw .malformed }
                elements.append(try unsafe self.reply(element.pointee))
            }
            return .array(elements)
        default: throw .malformed
        }
    }

    private static func bytes(_ reply: redisReply) -> [UInt8] {
        guard let text = unsafe reply.str else { return [] }
        return unsafe UnsafeBufferPointer(start: text, count: Int(reply.len)).map { UInt8(bitPattern: $0) }
    }
}
