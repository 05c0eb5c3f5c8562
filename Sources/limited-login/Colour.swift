internal import ArgumentParser
internal import FoundationEssentials
internal import Glibc

/// When the report is coloured.
enum ColourChoice: String, CaseIterable, ExpressibleByArgument {
    /// On a terminal that can, unless `NO_COLOR` is set.
    case auto
    case always
    case never

    /// Whether standard output is to be coloured.
    var isOn: Bool {
        switch self {
        case .always: return true
        case .never: return false
        case .auto:
            let environment = ProcessInfo.processInfo.environment
            return isatty(STDOUT_FILENO) == 1 && environment["NO_COLOR", default: ""].isEmpty
                && environment["TERM"] != "dumb"
        }
    }
}

/// The colours of the report (ECMA-48, SGR).
enum Colour: String {
    case green = "32"
    case red = "31"
    case dim = "2"
    case bold = "1"

    /// The text in this colour, or as it is.
    func paint(_ text: String, _ isOn: Bool) -> String { isOn ? "\u{1b}[\(rawValue)m\(text)\u{1b}[0m" : text }
}
