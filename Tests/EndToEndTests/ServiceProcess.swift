import Foundation
import LLHTTP
import LLTestSupport
import Testing

/// The built program as a separate process; it is killed when this value is released. Its output goes to files.
final class ServiceProcess {
    private let process = Process()
    private let folder: ShortFolder
    private var wasTerminated = false
    private var endIsKnown = false

    /// The program that was built with this test.
    static let executable: String = {
        let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        return URL(filePath: own).deletingLastPathComponent().appending(path: "limited-login").path
    }()

    /// Starts the program, or another one.
    ///
    /// - Parameter environment: added to a clean one, without the tests' own `LIMITED_LOGIN_…` variables. A name in lower
    ///   case is a setting.
    init(
        _ arguments: [String],
        environment: [String: String?] = [:],
        program: String = executable,
        input: String = "",
        directory: String? = nil
    ) throws {
        folder = try ShortFolder()
        process.executableURL = URL(filePath: program)
        process.arguments = arguments
        // The directory is not the project's folder, so that its example configuration is not read by accident.
        process.currentDirectoryURL = URL(filePath: directory ?? FileManager.default.temporaryDirectory.path)
        let inherited = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("LIMITED_LOGIN_") }
        let own = environment.compactMap { name, value in
            value.map { (name.first?.isLowercase == true ? "LIMITED_LOGIN_\(name.uppercased())" : name, $0) }
        }
        process.environment = inherited.merging(own) { $1 }
        process.standardInput = FileHandle(forReadingAtPath: try folder.write("input", input))
        process.standardOutput = FileHandle(forWritingAtPath: try folder.write("output", ""))
        process.standardError = FileHandle(forWritingAtPath: try folder.write("errors", ""))
        try process.run()
    }

    deinit { kill() }

    /// The standard output so far.
    var outputText: String { text("output") }
    /// The standard error so far.
    var errorText: String { text("errors") }

    private func text(_ name: String) -> String {
        String(decoding: FileManager.default.contents(atPath: "\(folder.path)/\(name)") ?? Data(), as: UTF8.self)
    }

    /// Waits until standard output holds a text; false if it never does.
    func waitForOutput(_ text: String) -> Bool { waits { outputText.contains(text) } }

    /// Waits until standard error holds a text; false if it never does.
    func waitForError(_ text: String) -> Bool { waitForErrors(1, of: text) }

    /// Waits until standard error holds a text at least `count` times; false if it never does.
    func waitForErrors(_ count: Int, of text: String) -> Bool { waits { errorText.ranges(of: text).count >= count } }

    private func waits(_ isSo: () -> Bool) -> Bool {
        let deadline = MonotonicClock.now() + patienceOfTests
        while !isSo() {
            // What a process wrote before its end is there.
            guard process.isRunning, MonotonicClock.now() < deadline else { return isSo() }
            usleep(10_000)
        }
        return true
    }

    /// Waits for the end and returns the exit code, or the negative number of the signal that ended the process.
    func waitForExit() -> Int32 {
        endIsKnown = true
        process.waitUntilExit()
        return process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
    }

    /// The process's number.
    var identifier: Int32 { process.processIdentifier }

    func signal(_ number: Int32) { Foundation.kill(process.processIdentifier, number) }

    /// Sends SIGTERM.
    func terminate() {
        wasTerminated = true
        process.terminate()
    }

    /// Stops the process with SIGTERM and expects exit code 0: only an orderly stop reports leaks and counts the lines
    /// that ran. Does nothing if the test already knows the end of the process. Reports a crash.
    func end() {
        guard !endIsKnown else { return }
        // A second SIGTERM would end it at once.
        if process.isRunning, !wasTerminated { terminate() }
        if !becomesTrue(within: .seconds(60), { !process.isRunning }) { kill() }
        #expect(waitForExit() == 0, "it does not stop in order: \(errorText)")
    }

    func kill() {
        guard process.isRunning else { return }
        endIsKnown = true
        signal(SIGKILL)
        process.waitUntilExit()
    }
}

/// A finished run of the program.
struct FinishedRun {
    let exitCode: Int32
    let output: String
    let errors: String

    /// The output as a JSON object.
    var object: [String: Any] { get throws { try jsonObject(output) } }

    /// The time after which a run is killed; far more than a sanitizer needs on a busy machine.
    private static let patience = 180.0

    init(
        _ arguments: [String],
        environment: [String: String?] = [:],
        program: String = ServiceProcess.executable,
        input: String = "",
        directory: String? = nil
    ) throws {
        let process = try ServiceProcess(
            arguments,
            environment: environment,
            program: program,
            input: input,
            directory: directory
        )
        // Kill a script that waits without end; the exit code is then the signal's.
        let overdue = DispatchWorkItem { [identifier = process.identifier] in _ = kill(identifier, SIGKILL) }
        DispatchQueue.global().asyncAfter(deadline: .now() + Self.patience, execute: overdue)
        exitCode = process.waitForExit()
        overdue.cancel()
        (output, errors) = (process.outputText, process.errorText)
    }
}

func jsonObject(_ text: String) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any], "\(text)")
}

extension ShortFolder {
    /// Writes a file of mode 0600 in one step and returns its path.
    @discardableResult
    func write(_ name: String, _ text: String) throws -> String {
        let file = "\(path)/\(name)"
        try Data(text.utf8).write(to: URL(filePath: file), options: .atomic)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
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

    /// A file with a new secret for nonces.
    func nonceSecret() throws -> String { try write("secret", FinishedRun(["nonce", "secret"]).output) }
}

/// A port without a listener at this moment, for a program that needs a fixed number. It is below the range from
/// which the system itself gives ports to others (`ip_local_port_range`).
enum FreePort {
    static func take() throws -> UInt16 {
        for _ in 0..<1_000 {
            let port = UInt16.random(in: 10_000..<32_768)
            if (try? Socket.listener(on: .loopback(port: port), backlog: 1, sharesPort: false)) != nil { return port }
        }
        throw TestSupportError("no port is free")
    }
}
