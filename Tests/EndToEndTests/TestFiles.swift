import Foundation
import LLSockets
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

/// A block of commands in a document.
enum DocumentedCommands {
    /// The block after `<!-- command: NAME -->` in the README or another document.
    static func text(_ name: String, in document: String = "README.md") throws -> String {
        let text = try ProjectFiles.text(document)
        let mark = try #require(text.range(of: "<!-- command: \(name) -->\n```sh\n")).upperBound
        let end = try #require(text[mark...].range(of: "```")).lowerBound
        return String(text[mark..<end])
    }

    /// Runs a block with free ports in place of the documented ones.
    /// - Parameter page: a page of the service's documentation; nil for the README.
    /// - Returns: The run, and the lines of it that are HTTP statuses.
    static func run(_ name: String, in page: String? = nil) throws -> (run: FinishedRun, statuses: [String]) {
        let document = page.map { "Sources/LLService/LLService.docc/\($0).md" } ?? "README.md"
        let ports = try (0..<3).map { _ in try FreePort.take() }
        let script = try text(name, in: document)
            .replacing("--issuer-listen 127.0.0.1:8090", with: "")
            .replacing(
                "swift run limited-login demo",
                with: "\(ServiceProcess.executable) demo --listen 127.0.0.1:8080 "
                    + "--admin-listen 127.0.0.1:8081 --issuer-listen 127.0.0.1:8090"
            )
            .replacing("swift run limited-login", with: ServiceProcess.executable)
            .replacing(":8080", with: ":\(ports[0])")
            .replacing(":8081", with: ":\(ports[1])")
            .replacing(":8090", with: ":\(ports[2])")
        let run = try FinishedRun(["-c", script], program: "/bin/bash")
        return (run, run.output.split(separator: "\n").map(String.init).filter { $0.count == 3 && Int($0) != nil })
    }
}
