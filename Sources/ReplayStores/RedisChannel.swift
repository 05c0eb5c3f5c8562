internal import Networking

/// Commands out, answers in, over one connection.
final class RedisChannel {
    let connection: OutboundConnection
    private let reader: RedisReplyReader
    private var output: [UInt8] = []
    private var sent = 0
    private var input = [UInt8](repeating: 0, count: 16_384)

    init(_ connection: OutboundConnection, answerBytes: Int) throws(RedisFailure) {
        self.connection = connection
        do throws(RedisProtocolError) {
            reader = try RedisReplyReader(limit: answerBytes)
        } catch {
            throw .connection("there is no memory")
        }
    }

    /// Adds a command to what is sent next.
    func command(_ words: [[UInt8]]) throws(RedisFailure) {
        guard RedisCommand.append(words, to: &output) else { throw .connection("there is no memory") }
    }

    /// Sends what the connection takes now.
    func flush() throws(RedisFailure) {
        do throws(HTTPSClientError) {
            while sent < output.count {
                let count = try connection.send(output, from: sent)
                if count == 0 { return }
                sent += count
            }
        } catch {
            throw RedisFailure(error)
        }
        output.removeAll(keepingCapacity: output.capacity <= 262_144)
        sent = 0
    }

    /// Takes what has come.
    func receive() throws(RedisFailure) {
        do {
            while true {
                let count = try connection.receive(into: &input)
                if count == 0 { return }
                try reader.feed(input, count: count)
                // A short read emptied the socket; the next wait tells of more.
                if count < input.count { return }
            }
        } catch let error as HTTPSClientError {
            throw RedisFailure(error)
        } catch {
            throw .malformedAnswer
        }
    }

    /// The next whole answer; nil where none is there.
    func next() throws(RedisFailure) -> RedisReply? {
        do throws(RedisProtocolError) {
            return try reader.next()
        } catch {
            throw .malformedAnswer
        }
    }

    /// One command and its answer, within a deadline.
    func call(_ words: [[UInt8]], until deadline: MonotonicInstant) throws(RedisFailure) -> RedisReply {
        try command(words)
        while true {
            try flush()
            try receive()
            if let reply = try next() { return reply }
            guard MonotonicClock.now() < deadline else { throw .timedOut }
            _ = connection.wait(until: deadline)
        }
    }

    /// As above, from text.
    func call(_ words: [String], until deadline: MonotonicInstant) throws(RedisFailure) -> RedisReply {
        try call(words.map { Array($0.utf8) }, until: deadline)
    }
}
