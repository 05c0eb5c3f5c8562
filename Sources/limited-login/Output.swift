internal import ArgumentParser
internal import FoundationEssentials
internal import Glibc
internal import LLBytes
internal import LLJOSE
internal import LLService

extension Main {
    /// Makes the standard streams safe to use; called first.
    ///
    /// A closed reader, and a file that may not grow (`RLIMIT_FSIZE`), cause an error of the write, never a signal that
    /// ends the program. Closed descriptors are opened on `/dev/null`: the number would otherwise go to the next file or
    /// socket, which would get the log.
    static func prepareStreams() {
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
            // open(2) takes the least free number. The root folder can be neither read nor written.
            if unsafe open("/dev/null", O_RDWR) < 0 { _ = unsafe open("/", O_RDONLY | O_DIRECTORY) }
        }
    }
}

/// Lines for people and scripts on standard error; standard output carries only results.
enum StandardError {
    static func write(_ line: String) { put(TerminalText.safe(line), STDERR_FILENO) }

    static func write(lines: String) { put(TerminalText.safe(lines: lines), STDERR_FILENO) }
}

enum StandardOutput {
    /// Writes text unchanged: colours and line feeds are the program's own.
    static func write(_ text: String) { put(text, STDOUT_FILENO) }

    static func write(line: String) { write(TerminalText.safe(line)) }

    /// Writes JSON; terminal control characters in its strings are escaped.
    static func write(json: JSON) { write(TerminalText.safe(json: json.text)) }
}

private func put(_ text: String, _ descriptor: Int32) { _ = LogWriter.write(Array("\(text)\n".utf8), to: descriptor) }

enum Exit {
    /// A configuration that cannot be used, also OpenSSL's, an unreadable file, too few threads or descriptors (EX_CONFIG).
    static let configuration = ExitCode(78)
    /// An address that is not available now: another process has it, or no interface has it yet (EX_TEMPFAIL).
    static let addressUnavailable = ExitCode(75)
    /// The token is refused (`verify`), Graph refuses (`permissions`), or the service is not well (`healthcheck`).
    static let rejected = ExitCode(1)
    static let verifyUsage = ExitCode(2)
    /// The issuer's keys are not available (`verify`, `keys`), or Graph cannot be asked now (`permissions`).
    static let unavailable = ExitCode(3)

    /// Writes one sentence to standard error and returns the exit code, by default ``configuration``.
    static func refusing(_ sentence: String, _ code: ExitCode = configuration) -> ExitCode {
        StandardError.write("limited-login: \(sentence)")
        return code
    }
}

enum Colour: String {
    case green = "32"
    case red = "31"
    case dim = "2"
    case bold = "1"

    /// True if standard output is a terminal that supports colours, unless `NO_COLOR` is set.
    private static let isOn = {
        let environment = ProcessInfo.processInfo.environment
        return isatty(STDOUT_FILENO) == 1 && environment["NO_COLOR", default: ""].isEmpty
            && environment["TERM"] != "dumb"
    }()

    /// The text in this colour, or unchanged.
    func paint(_ text: String) -> String { Self.isOn ? "\u{1b}[\(rawValue)m\(text)\u{1b}[0m" : text }
}

/// A JSON value. A literal stands for its own JSON; a member without a value is left out.
struct JSON: ExpressibleByStringInterpolation, ExpressibleByDictionaryLiteral {
    typealias Member = (name: String, value: JSON?)

    private(set) var bytes: [UInt8] = []

    init(_ write: (inout [UInt8]) -> Void) { write(&bytes) }

    init(_ text: String) { JSONWriter.string(text, to: &bytes) }

    init?(_ text: String?) {
        guard let text else { return nil }
        self.init(text)
    }

    init(_ number: some BinaryInteger) { bytes = Array("\(number)".utf8) }

    init(_ flag: Bool) { bytes.append(flag ? "true" : "false") }

    init(_ list: [JSON]) { JSONWriter.array(list, to: &bytes) { $1 += $0.bytes } }

    init(_ members: [Member]) {
        bytes.append("{")
        for case (let name, let value?) in members {
            if bytes.count > 1 { bytes.append(",") }
            bytes += JSON(name).bytes
            bytes.append(":")
            bytes += value.bytes
        }
        bytes.append("}")
    }

    init(stringLiteral text: String) { self.init(text) }

    init(dictionaryLiteral members: (String, JSON?)...) { self.init(members.map { ($0.0, $0.1) }) }

    var text: String { String(decoding: bytes, as: UTF8.self) }
}
