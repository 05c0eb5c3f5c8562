internal import Foundation
internal import Glibc
internal import LLHTTP
package import Testing

/// A real `redis-server` on a loopback port, with its own folder. The process is a child of the test; `deinit` kills it.
///
/// Threads share only the process, and only start it and signal it; hence `@unchecked Sendable`.
package final class RedisServer: @unchecked Sendable {
    /// The program named by `REDIS_SERVER`, or else the installed one. Tests that need it are skipped if there is none.
    package static let program: String? =
        ProcessInfo.processInfo.environment["REDIS_SERVER"]
        ?? ["/usr/bin/redis-server", "/usr/bin/valkey-server", "/usr/local/bin/redis-server"]
        .first { unsafe access($0, X_OK) == 0 }
    fileprivate static let skipReason = "redis-server is not installed"

    package let port: UInt16
    /// The port for TLS; 0 if there is none.
    package let securePort: UInt16
    private let folder: ShortFolder
    private let arguments: [String]
    private var process = Process()

    /// Starts the server and waits until it answers.
    /// - Parameter options: Beyond the defaults, by which no file is written and only the loopback is bound.
    /// - Parameter identity: The certificate of a second port, for TLS.
    package init(_ options: [String] = [], identity: TestCertificates.Identity? = nil) throws {
        port = try Self.freePort()
        securePort = identity == nil ? 0 : try Self.freePort()
        folder = try ShortFolder()
        var arguments = [
            "--port", "\(port)", "--bind", "127.0.0.1", "--dir", folder.path, "--save", "", "--daemonize", "no",
            "--enable-debug-command", "local", "--repl-diskless-sync-delay", "0",
        ]
        if let identity {
            arguments += [
                "--tls-port", "\(securePort)", "--tls-cert-file", identity.certificateFile, "--tls-key-file",
                identity.keyFile, "--tls-auth-clients", "no", "--tls-ca-cert-file", identity.certificateFile,
            ]
        }
        // The default is the port and 10,000, which may be no port.
        if options.contains("--cluster-enabled") { arguments += ["--cluster-port", "\(try Self.freePort())"] }
        self.arguments = arguments + options
        try start()
    }

    deinit { kill() }

    /// Starts the server, also again; the folder stays the same.
    package func start() throws {
        guard let program = Self.program else { throw TestSupportError(Self.skipReason) }
        process = Process()
        process.executableURL = URL(filePath: program)
        process.arguments = arguments
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        let deadline = MonotonicClock.now() + patienceOfTests
        while MonotonicClock.now() < deadline {
            let answer = (try? self.send("PING", timeout: .seconds(2))) ?? ""
            if answer.hasPrefix("+") || answer.hasPrefix("-NOAUTH") { return }
            usleep(5_000)
        }
        throw TestSupportError("redis-server does not answer")
    }

    /// Sends one command line and returns the first bytes of the answer.
    @discardableResult
    package func send(_ line: String, timeout: Duration = patienceOfTests) throws -> String {
        let client = try BlockingClient(SocketAddress.loopback(port: port))
        client.send(line + "\r\n")
        let received = client.read(timeout: timeout) { $0.suffix(2).elementsEqual([13, 10]) }
        return String(decoding: received.bytes, as: UTF8.self)
    }

    /// The number of connections since the server's start, including the one of this call.
    package func connectionCount() throws -> Int {
        let name = "total_connections_received:"
        let line = try send("INFO stats").split(whereSeparator: \.isNewline).first { $0.hasPrefix(name) }
        guard let count = line.flatMap({ Int($0.dropFirst(name.count)) }) else {
            throw TestSupportError("redis-server counts no connections")
        }
        return count
    }

    /// Ends the server at once, as a crash would.
    package func kill() {
        guard process.isRunning else { return }
        Glibc.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// Makes the server hang. Its connections stay open.
    package func suspend() { Glibc.kill(process.processIdentifier, SIGSTOP) }

    /// Lets the server go on.
    package func resume() { Glibc.kill(process.processIdentifier, SIGCONT) }

    private static func freePort() throws -> UInt16 {
        try Socket.listener(on: .loopback(port: 0), backlog: 1, sharesPort: false).localAddress().port
    }
}

extension Trait where Self == ConditionTrait {
    /// Skips the test if no Redis server is installed.
    package static var needsRedis: Self {
        .enabled(if: RedisServer.program != nil, Comment(rawValue: RedisServer.skipReason))
    }
}
