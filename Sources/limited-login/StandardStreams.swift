internal import ArgumentParser
internal import FoundationEssentials
internal import Glibc
internal import LLService

enum StandardStreams {
    /// Makes the descriptors safe to use; called first.
    ///
    /// A closed reader, and a file that may not grow (`RLIMIT_FSIZE`), cause an error of the write, never a signal that
    /// ends the program. Closed descriptors are opened on `/dev/null`: the number would otherwise go to the next file or
    /// socket, which would get the log.
    static func prepare() {
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

    /// Writes one sentence to standard error; the result is the configuration's exit code, or another one.
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
