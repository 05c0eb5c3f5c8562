import Foundation
import LLTestSupport
import Testing

/// What a process writes, gathered by two threads as it comes.
private final class ProcessOutput: @unchecked Sendable {
    // Guarded by `condition`: the output of both pipes and how many of them are open.
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

    /// Waits until both pipes have ended; false when they do not in time.
    func waitUntilClosed(_ seconds: Double) -> Bool {
        let _: Bool? = wait(seconds) { _, _ in nil }
        condition.lock()
        defer { condition.unlock() }
        return openPipes == 0
    }
}

/// The built program as a process of its own; it is killed when nobody holds the value any more.
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
        // Not the project's folder: its example configuration must not be read by accident.
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

    /// What was written to standard output so far.
    var outputText: String { written.wait(0) { output, _ in String(decoding: output, as: UTF8.self) } ?? "" }
    /// What was written to standard error so far.
    var errorText: String { written.wait(0) { _, errors in String(decoding: errors, as: UTF8.self) } ?? "" }

    private static let patience = Double(patienceOfTests.components.seconds)

    /// Waits until standard output holds a text; false when it never does.
    func waitForOutput(_ text: String, seconds: Double = ServiceProcess.patience) -> Bool {
        written.wait(seconds) { output, _ in String(decoding: output, as: UTF8.self).contains(text) ? true : nil }
            ?? false
    }

    /// Waits until standard error holds a text; false when it never does.
    func waitForError(_ text: String, seconds: Double = ServiceProcess.patience) -> Bool {
        written.wait(seconds) { _, errors in String(decoding: errors, as: UTF8.self).contains(text) ? true : nil }
            ?? false
    }

    /// Waits for the end and says the exit code; a signal's number is negative.
    func waitForExit() -> Int32 {
        endIsKnown = true
        process.waitUntilExit()
        _ = written.waitUntilClosed(10)
        return process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
    }

    /// Waits until standard error holds a text so many times; false when it never does.
    func waitForErrors(_ count: Int, of text: String, seconds: Double = ServiceProcess.patience) -> Bool {
        written.wait(seconds) { _, errors in
            String(decoding: errors, as: UTF8.self).components(separatedBy: text).count > count ? true : nil
        } ?? false
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

    /// Has it stop, as whoever runs it does, and expects that it does so in order: only then are its leaks reported and
    /// the lines it ran counted. One whose end the test has seen is left alone; a crash is told.
    func end(seconds: Double = 60) {
        guard !endIsKnown else { return }
        // A second SIGTERM ends it at once.
        if process.isRunning, !wasTerminated { terminate() }
        let hasEnded = written.waitUntilClosed(seconds)
        if !hasEnded { kill() }
        #expect(waitForExit() == 0, "it does not stop in order: \(errorText)")
    }

    /// Ends it at once.
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

    /// - Parameter seconds: after which it is ended; many times what any run takes under a sanitizer on a busy machine.
    init(
        _ arguments: [String],
        environment: [String: String] = [:],
        program: String = ServiceProcess.executable,
        input: String? = nil,
        directory: String? = nil,
        endedAfter seconds: Double = 180
    ) throws {
        let process = try ServiceProcess(
            arguments,
            environment: environment,
            program: program,
            input: input,
            directory: directory
        )
        let identifier = process.identifier
        // A script that waits for what does not come: its signal is then the exit code.
        let overdue = DispatchWorkItem { _ = kill(identifier, SIGKILL) }
        DispatchQueue.global().asyncAfter(deadline: .now() + seconds, execute: overdue)
        exitCode = process.waitForExit()
        overdue.cancel()
        output = process.outputText
        errors = process.errorText
    }
}
