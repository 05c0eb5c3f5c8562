internal import LLHTTP

/// One connection to a server: commands, and answers in their order.
final class RedisChannel {
    let node: RedisNode
    private let stream: ClientStream
    private let signal: WakeSignal
    private let configuration: RedisReplayStore.Configuration
    private var reader: RESPReader
    private var output: [UInt8] = []
    private var sent = 0
    private var input = [UInt8](repeating: 0, count: 16_384)
    /// True if a broken connection may mean that the server speaks TLS: such a server ends it before any answer.
    private var mayExpectTLS: Bool

    /// - Parameters:
    ///   - signal: ends waits from other threads.
    ///   - node: the server at the other end.
    init(
        _ stream: ClientStream,
        _ signal: WakeSignal,
        _ node: RedisNode,
        _ configuration: RedisReplayStore.Configuration
    ) {
        (self.stream, self.signal, self.node, self.configuration) = (stream, signal, node, configuration)
        reader = RESPReader(from: configuration.url.kind == .cluster ? node : nil)
        mayExpectTLS = configuration.tls == nil
    }

    func command(_ words: [String]) { RESPCommand.append(words.map(\.utf8), to: &output) }

    /// Sends as many bytes as the connection accepts now.
    func flush() throws(RedisFailure) {
        do throws(ClientError) {
            while sent < output.count {
                guard case .bytes(let count) = try stream.send(output, from: sent) else { return }
                sent += count
            }
        } catch {
            throw mayExpectTLS ? .perhapsTLS : RedisFailure(error)
        }
        output.removeAll(keepingCapacity: output.capacity <= 262_144)
        sent = 0
    }

    /// Takes the received bytes, at most as many as the longest answer. The next wait reports any more.
    func receive() throws(RedisFailure) {
        do throws(ClientError) {
            while reader.waitingCount < RESPReader.byteLimit {
                switch try stream.receive(into: &input) {
                case .bytes(let count):
                    reader.feed(input, count: count)
                    // A short read means that the socket is empty.
                    if count < input.count { return }
                case .closed: throw .closed
                default: return
                }
            }
        } catch {
            throw mayExpectTLS ? .perhapsTLS : RedisFailure(error)
        }
    }

    func next() throws(RedisFailure) -> RedisReply? { try reader.next() }

    /// Waits until the connection is ready, the signal is given, or the deadline passes.
    func wait(until deadline: MonotonicInstant) {
        if stream.wait(or: signal, until: deadline) == .signal { signal.clear() }
    }

    func call(_ words: [String], until deadline: MonotonicInstant) throws(RedisFailure) -> RedisReply {
        command(words)
        return try answer(until: deadline)
    }

    /// Sends credentials, which may hold any bytes.
    /// - Parameter user: empty for the default user.
    func authenticate(
        _ user: [UInt8],
        _ password: [UInt8],
        until deadline: MonotonicInstant
    ) throws(RedisFailure) -> RedisReply {
        RESPCommand.append([Array("AUTH".utf8)] + (user.isEmpty ? [] : [user]) + [password], to: &output)
        return try answer(until: deadline)
    }

    /// Sends the commands that wait and returns the next answer.
    private func answer(until deadline: MonotonicInstant) throws(RedisFailure) -> RedisReply {
        while true {
            try flush()
            if let reply = try next() { return reply }
            try receive()
            if let reply = try next() {
                mayExpectTLS = false
                return reply
            }
            guard MonotonicClock.now() < deadline else { throw .timedOut }
            wait(until: deadline)
        }
    }

    /// Sends the credentials, chooses the database, and returns this connection.
    func introduced(until deadline: MonotonicInstant) throws(RedisFailure) -> RedisChannel {
        if let password = configuration.password {
            let reply = try authenticate(configuration.url.user, password, until: deadline)
            if reply == .error(code: "ERR") { throw .needsNoPassword }
            // Any other refusal here concerns the credentials, whatever its code.
            guard case .status("OK") = reply else { throw .unauthenticated }
        }
        if configuration.url.database != 0 {
            let reply = try call(["SELECT", String(configuration.url.database)], until: deadline)
            if reply == .error(code: "ERR") { throw .noDatabase(configuration.url.database) }
            _ = try reply.orFailure(of: "SELECT")
        }
        return self
    }

    /// The sections of INFO that matter here, each with a command of its own: servers before Redis 7 accept no list of
    /// sections. Other sections may have any length: errorstats has a line for each error name that a client made up.
    func info(until deadline: MonotonicInstant) throws(RedisFailure) -> String {
        let sections = ["server", "memory", "persistence", "replication"]
        for section in sections { command(["INFO", section]) }
        var info = ""
        for _ in sections {
            guard let text = try answer(until: deadline).orFailure(of: "INFO").text else { throw .malformedAnswer }
            info += text + "\r\n"
        }
        return info
    }
}
