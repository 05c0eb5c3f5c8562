import Foundation
import LLHTTP
import LLTestSupport
import Testing

extension ShortFolder {
    /// Writes a file in one step and returns its path.
    @discardableResult
    func write(_ name: String, _ text: String, mode: Int = 0o600) throws -> String {
        let file = "\(path)/\(name)"
        try Data(text.utf8).write(to: URL(filePath: file), options: .atomic)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file)
        return file
    }

    func makeFolder(_ name: String) throws {
        try FileManager.default.createDirectory(atPath: "\(path)/\(name)", withIntermediateDirectories: true)
    }

    /// Makes a client key, and a file `clients` that accepts it.
    func clientKey() throws -> (key: String, file: String) {
        let file = "\(path)/clients"
        let made = try FinishedRun(["client-key", "new", "backend", "--append", file])
        return (String(try #require(made.output.split(whereSeparator: \.isWhitespace).last)), file)
    }
}

/// A port without a listener at this moment, for a program that needs a fixed number. It is below the range from
/// which the system itself gives ports to others (`ip_local_port_range`).
enum FreePort {
    static func take() throws -> UInt16 {
        for _ in 0..<1_000 {
            let port = UInt16.random(in: 10_000..<32_768)
            if (try? Socket.listener(on: .loopback(port: port), backlog: 1, sharesPort: false)) != nil { return port }
        }
        return try Socket.listener(on: .loopback(port: 0), backlog: 1, sharesPort: false).localAddress().port
    }
}
