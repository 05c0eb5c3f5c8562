internal import LLHTTP

/// A server on loopback that answers Redis commands as a test's script says.
package final class ScriptedRedis: Sendable {
    /// Returns the bytes that answer a command: empty for no answer, nil for the usual one.
    package typealias Script = @Sendable ([String]) -> String?

    package var port: UInt16 { listener.port }
    private let listener: ScriptedListener
    private let storage: Locked<(script: Script, keys: [String: String])>

    /// Listens at once on a free port of 127.0.0.1.
    package init(script: @escaping Script = { _ in nil }) throws {
        listener = try ScriptedListener()
        storage = Locked((script, [:]))
        listener.serve { self.serve($0) }
    }

    package var connectionCount: Int { listener.connectionCount }

    package func setScript(_ script: @escaping Script) { storage.withLock { $0.script = script } }

    package func stop() { listener.stop() }

    /// A string as an answer; ``array(_:)`` makes an array of answers.
    package static func string(_ text: String) -> String { "$\(text.utf8.count)\r\n\(text)\r\n" }
    package static func array(_ parts: [String]) -> String { "*\(parts.count)\r\n\(parts.joined())" }

    private func serve(_ peer: ScriptedPeer) {
        do {
            while true {
                let words = try Self.command(peer)
                let script = storage.withLock { $0.script }
                try peer.send(script(words) ?? usual(words))
            }
        } catch {
            // The client has gone.
        }
    }

    private func usual(_ words: [String]) -> String {
        switch words[0] {
        case "TIME":
            let now = WallClock.unixMilliseconds()
            return Self.array(["\(now / 1_000)", "\(now % 1_000 * 1_000)"].map(Self.string))
        // A cluster's primary. Its run has the name of its port, and its history the same with an `a`.
        case "INFO":
            return Self.string(
                "run_id:\(port)\r\nuptime_in_seconds:1000000\r\nredis_mode:cluster\r\nmaxmemory:0\r\nrole:master\r\n"
                    + "master_replid:\(port)a\r\nmaster_replid2:0\r\nsecond_repl_offset:-1\r\n"
            )
        case "GET": return storage.withLock { $0.keys[words[1]] }.map(Self.string) ?? "$-1\r\n"
        case "SET":
            return storage.withLock { storage in
                if words.contains("NX"), storage.keys[words[1]] != nil { return "$-1\r\n" }
                storage.keys[words[1]] = words[2]
                return "+OK\r\n"
            }
        case "ROLE": return Self.array([Self.string("master")])
        default: return "+OK\r\n"
        }
    }

    /// The next command: an array of strings.
    private static func command(_ peer: ScriptedPeer) throws -> [String] {
        func number() throws -> Int {
            var line: [UInt8] = []
            while line.last != UInt8(ascii: "\n") { line += try peer.receive(1) }
            return Int(String(decoding: line.dropFirst().dropLast(2), as: UTF8.self)) ?? 0
        }
        return try (0..<number()).map { _ in
            let count = try number() + 2
            var word: [UInt8] = []
            while word.count < count { word += try peer.receive(count - word.count) }
            return String(decoding: word.dropLast(2), as: UTF8.self)
        }
    }
}
