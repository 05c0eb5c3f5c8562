import Foundation
import LLHTTP
import LLTestSupport
import Testing

@testable import LLService

@Suite("One thread writes the log lines, and no other thread waits for their reader")
struct LogWriterTests {
    /// A pipe that is read only on demand.
    private final class Pipe {
        let reading: Int32
        private(set) var writing: Int32

        init(isBlocking: Bool = true) throws {
            var ends: [Int32] = [0, 0]
            try #require(unsafe pipe(&ends) == 0)
            // A program started by another test must not inherit the pipe.
            for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
            (reading, writing) = (ends[0], ends[1])
            if !isBlocking { _ = fcntl(writing, F_SETFL, fcntl(writing, F_GETFL) | O_NONBLOCK) }
            // Writing without a reader must be an error, not a signal.
            signal(SIGPIPE, SIG_IGN)
        }

        deinit { _ = close(reading) }

        /// Reads until the lines satisfy `isEnough`.
        func lines(until isEnough: ([Substring]) -> Bool) -> [Substring] {
            var text = ""
            var buffer = [UInt8](repeating: 0, count: 65_536)
            while true {
                // Checks the lines only when the pipe is empty: checking after each read would take minutes.
                var interest = pollfd(fd: reading, events: Int16(POLLIN), revents: 0)
                if unsafe poll(&interest, 1, 20) == 0 {
                    if isEnough(text.split(separator: "\n")) { break }
                    continue
                }
                let count = unsafe read(reading, &buffer, buffer.count)
                guard count > 0 else { break }
                text += String(decoding: buffer[..<count], as: UTF8.self)
            }
            return text.split(separator: "\n")
        }
    }

    private static func line(_ number: Int) -> [UInt8] {
        Array("line \(number) \(String(repeating: "x", count: 200))\n".utf8)
    }

    private static func start(_ descriptor: Int32) -> LogWriter {
        let writer = LogWriter(descriptor: descriptor)
        writer.start { Array("dropped \($0)\n".utf8) }
        return writer
    }

    private static func told(_ lines: [Substring]) -> Int {
        lines.filter { $0.hasPrefix("dropped ") }.compactMap { Int($0.dropFirst(8)) }.reduce(0, +)
    }

    @Test("An unread pipe blocks no writer, and the written and the dropped lines add up", arguments: [true, false])
    func unread(isBlocking: Bool) throws {
        let pipe = try Pipe(isBlocking: isBlocking)
        let writer = Self.start(pipe.writing)
        let count = 10_000
        for number in 0..<count { writer.write(Self.line(number), isAudit: true) }
        let dropped = writer.droppedLines
        #expect(dropped > 0 && dropped < count - LogWriter.byteLimit / 300)
        let lines = pipe.lines { Self.told($0) == dropped && $0.count { $0.hasPrefix("line ") } == count - dropped }
        let written = lines.filter { $0.hasPrefix("line ") }
        #expect(written.count + dropped == count)
        // The lines are in order, and no line comes twice.
        let numbers = written.compactMap { Int($0.split(separator: " ")[1]) }
        #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 })
        writer.write(Self.line(count), isAudit: false)
        #expect(pipe.lines { !$0.isEmpty }.first?.hasPrefix("line \(count) ") == true)
        #expect(writer.droppedLines == dropped)
    }

    @Test("Audit lines may fill the queue; other lines may fill a quarter of it")
    func shares() throws {
        let pipe = try Pipe()
        let writer = Self.start(pipe.writing)
        /// Writes lines of one kind until one more is dropped, and returns their bytes.
        func fill(isAudit: Bool) -> Int {
            let (dropped, line) = (writer.droppedLines, Self.line(0))
            var bytes = 0
            while writer.droppedLines == dropped {
                writer.write(line, isAudit: isAudit)
                bytes += line.count
            }
            return bytes
        }
        // The pipe itself usually holds 64 KiB, and those bytes are written already.
        #expect((LogWriter.byteLimit / 4...LogWriter.byteLimit / 2).contains(fill(isAudit: false)))
        #expect(fill(isAudit: true) > LogWriter.byteLimit / 2)
    }

    @Test("Lines that the descriptor does not accept are counted", arguments: ["/dev/full", "no reader", "closed"])
    func refused(kind: String) throws {
        // A pipe without an owner has no reader.
        let noReader = try kind == "no reader" ? Pipe().writing : -1
        let descriptor = unsafe kind == "/dev/full" ? open(kind, O_WRONLY | O_CLOEXEC) : noReader
        let writer = Self.start(descriptor)
        for number in 0..<100 { writer.write(Self.line(number), isAudit: false) }
        writer.flush(until: MonotonicClock.now() + patienceOfTests)
        #expect(writer.droppedLines == 100)
    }

    @Test("A flush waits for the lines, but not for ever")
    func flush() throws {
        let pipe = try Pipe()
        let writer = Self.start(pipe.writing)
        writer.write(Self.line(0), isAudit: false)
        writer.flush(until: MonotonicClock.now() + patienceOfTests)
        #expect(pipe.lines { !$0.isEmpty }.count == 1)
        for number in 0..<1_000 { writer.write(Self.line(number), isAudit: false) }
        writer.flush(until: MonotonicClock.now() + .milliseconds(50))
        #expect(pipe.lines { $0.count == 1_000 }.count == 1_000)
    }
}
