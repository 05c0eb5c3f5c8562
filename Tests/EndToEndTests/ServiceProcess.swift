import Foundation
import LLTestSupport
import Testing

/// The output of a process, gathered by two threads.
private final class ProcessOutput: @unchecked Sendable {
    // Guarded by `condition`: the output of both pipes and the number of open pipes.
    private let condition = NSCondition()
    private var output = Data()
    private var errors = Data()
    private var openPipes = 2

    func read(_ pipe: Pipe, isError: Bool) {
        let handle = pipe.fileHandleForReading
        Thread.detachNewThread { [self] in
            while true {
                let data = handle.availableData
                condition.lock()
                if data.isEmpty {
                    openPipes -= 1
                } else if isError {
                    errors.append(data)
                } else {
                    output.append(data)
                }
                condition.broadcast()
                condition.unlock()
                if data.isEmpty { return }
            }
        }
    }

    /// Waits until `look` finds something in the output and the errors, or both have ended, or the time is over.
    func wait<Value>(_ seconds: Double, _ look: (Data, Data) -> Value?) -> Value? {
        let deadline = Date(timeIntervalSinceNow: seconds)
        condition.lock()
        defer { condition.unlock() }
        while true {
            if let value = look(output, errors) { return value }
            if openPipes == 0 || !condition.wait(until: deadline) { return look(output, errors) }
        }
    }

    /// Waits until both pipes have ended; false if they do not in time.
    func waitUntilClosed(_ seconds: Double) -> Bool {
        let _: Bool? = wait(seconds) { _, _ in nil }
        condition.lock()
        defer { condition.unlock() }
        return openPipes == 0
    }
}

/// The built program as a separate process; it is killed when this value is released.
final class ServiceProcess {
    private let written = ProcessOutput()
    private let process = Process()
    private var wasTerminated = false
    private var endIsKnown = false

    /// The program that was built with this test.
    static let executable: String = {
        let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        return URL(filePath: own).deletingLastPathComponent().appending(path: "limited-login").path
    }()

    /// Starts the program, or another one.
    ///
    /// - Parameter environment: added to a clean one; the tests' own `LIMITED_LOGIN_…` variables are not passed on.
    init(
        _ arguments: [String],
        environment: [String: String] = [:],
        program: String = executable,
        input: String? = nil,
        directory: String? = nil
    ) throws {
        process.executableURL = URL(filePath: program)
        process.arguments = arguments
        // The directory is not the project's folder, so that its example configuration is not read by accident.
        process.currentDirectoryURL = URL(filePath: directory ?? FileManager.default.temporaryDirectory.path)
        var inherited = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("LIMITED_LOGIN_") }
        inherited.merge(environment) { _, new in new }
        process.environment = inherited
        let outputPipe = Pipe()
        let errorPipe = Pipe()
        process.standardOutput = outputPipe
        process.standardError = errorPipe
        let inputPipe = Pipe()
        process.standardInput = inputPipe
        try process.run()
        written.read(outputPipe, isError: false)
        written.read(errorPipe, isError: true)
        if let input { inputPipe.fileHandleForWriting.write(Data(input.utf8)) }
        try inputPipe.fileHandleForWriting.close()
    }

    deinit { kill() }

    /// The standard output so far.
    var outputText: String { written.wait(0) { output, _ in String(decoding: output, as: UTF8.self) } ?? "" }
    /// The standard error so far.
    var errorText: String { written.wait(0) { _, errors in String(decoding: errors, as: UTF8.self) } ?? "" }

    private static let patience = Double(patienceOfTests.components.seconds)

    /// Waits until standard output holds a text; false if it never does.
    func waitForOutput(_ text: String) -> Bool {
        written.wait(Self.patience) { output, _ in String(decoding: output, as: UTF8.self).contains(text) ? true : nil }
            ?? false
    }

    /// Waits until standard error holds a text; false if it never does.
    func waitForError(_ text: String) -> Bool { waitForErrors(1, of: text) }

    /// Waits until standard error holds a text at least `count` times; false if it never does.
    func waitForErrors(_ count: Int, of text: String) -> Bool {
        written.wait(Self.patience) { _, errors in
            String(decoding: errors, as: UTF8.self).components(separatedBy: text).count > count ? true : nil
        } ?? false
    }

    /// Waits for the end and returns the exit code, or the negative number of the signal that ended the process.
    func waitForExit() -> Int32 {
        endIsKnown = true
        process.waitUntilExit()
        _ = written.waitUntilClosed(10)
        return process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
    }

    /// The process's number.
    var identifier: Int32 { process.processIdentifier }

    /// Sends a signal.
    func signal(_ number: Int32) { Foundation.kill(process.processIdentifier, number) }

    /// Sends SIGTERM.
    func terminate() {
        wasTerminated = true
        process.terminate()
    }

    /// Stops the process with SIGTERM and expects exit code 0: only an orderly stop reports leaks and counts the lines
    /// that ran. Does nothing if the test already knows the end of the process. Reports a crash.
    func end(seconds: Double = 60) {
        guard !endIsKnown else { return }
        // A second SIGTERM would end it at once.
        if process.isRunning, !wasTerminated { terminate() }
        let hasEnded = written.waitUntilClosed(seconds)
        if !hasEnded { kill() }
        #expect(waitForExit() == 0, "it does not stop in order: \(errorText)")
    }

    /// Kills the process.
    func kill() {
        guard process.isRunning else { return }
        endIsKnown = true
        Foundation.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }
}

/// A finished run of the program.
struct FinishedRun {
    let exitCode: Int32
    let output: String
    let errors: String

    /// The output as a JSON object.
    var object: [String: Any] {
        get throws { try #require(JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any]) }
    }

    /// The time after which a run is killed; far more than a sanitizer needs on a busy machine.
    private static let patience = 180.0

    init(
        _ arguments: [String],
        environment: [String: String] = [:],
        program: String = ServiceProcess.executable,
        input: String? = nil,
        directory: String? = nil
    ) throws {
        let process = try ServiceProcess(
            arguments,
            environment: environment,
            program: program,
            input: input,
            directory: directory
        )
        let identifier = process.identifier
        // Kill a script that waits without end; the exit code is then the signal's.
        let overdue = DispatchWorkItem { _ = kill(identifier, SIGKILL) }
        DispatchQueue.global().asyncAfter(deadline: .now() + Self.patience, execute: overdue)
        exitCode = process.waitForExit()
        overdue.cancel()
        output = process.outputText
        errors = process.errorText
    }
}
