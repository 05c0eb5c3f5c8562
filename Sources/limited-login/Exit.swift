internal import ArgumentParser
internal import VerificationService

/// The exit codes of the program, after BSD's sysexits.
enum Exit {
    /// A configuration that cannot be used, a port in use, an unreadable file (EX_CONFIG).
    static let configuration = ExitCode(78)
    /// The token is refused (`verify`), or Graph refuses (`permissions`).
    static let rejected = ExitCode(1)
    /// `verify` was called wrongly.
    static let verifyUsage = ExitCode(2)
    /// The issuer's keys are not to be had (`verify`, `keys`).
    static let keysUnavailable = ExitCode(3)
    /// Graph cannot be asked now (`permissions`).
    static let graphUnavailable = ExitCode(3)
    /// A service that is asked for its health does not answer well.
    static let unhealthy = ExitCode(1)

    /// Says one sentence on standard error and ends with the configuration's exit code.
    static func refusing(_ sentence: String) -> ExitCode {
        StandardError.write("limited-login: \(sentence)")
        return configuration
    }
}
